/**
 * Facts about the SRT connection of an encoder: latency against round-trip time, and packets that could not be
 * repaired, decrypted or buffered; and lines that a bonded encoder has lost.
 *
 * Sans-IO: `observe` takes the counters of the connection 4 times a second.
 *
 * @module
 */
import type { ConnectionReport, PublisherReport, SrtCounters } from '../api/records.ts'
import type { WarningFact } from './warnings.ts'

/** Interval of the samples, and window over which the counters are compared. */
const SAMPLE_US = 1_000_000
const WINDOW_US = 10_000_000
const WINDOW_SEC = WINDOW_US / 1e6

/** Number of samples, usually over 5 s, whose minimum is the steady round-trip time. */
const RTT_SAMPLES = 6

/** Number of samples, over 15 s: a line that goes on from another port counts twice for up to 10 s. */
const LINE_SAMPLES = 16

type SrtReport = ConnectionReport & SrtCounters

interface Sample {
  readonly report: SrtReport
  readonly atUs: number
}

/** Monitor of one connection. */
export class LinkMonitor {
  /** Samples, oldest first. The first is the last sample before the window, or the oldest of the connection. */
  readonly #samples: Sample[] = []
  /** Latest `RTT_SAMPLES` round-trip times, oldest first. */
  readonly #rttsMs: number[] = []
  /** Latest `LINE_SAMPLES` numbers of lines, oldest first. */
  readonly #lineCounts: number[] = []
  /** Most lines that the encoder has had for that long. */
  #mostLines = 0
  #latency: readonly WarningFact[] = []
  #facts: readonly WarningFact[] = []

  /** @returns all current facts; none without counters of SRT */
  observe(report: PublisherReport, nowUs: number): readonly WarningFact[] {
    if (report.packetsReceived === undefined) return []
    const last = this.#samples.at(-1)
    if (last !== undefined && nowUs - last.atUs < SAMPLE_US) return this.#facts
    this.#samples.push({ report, atUs: nowUs })
    while ((this.#samples[1]?.atUs ?? Infinity) <= nowUs - WINDOW_US) this.#samples.shift()
    // The RTT is measured only while packets arrive. It is 100 ms before the first packet, and stale after the last.
    const isMeasured = last !== undefined && report.packetsReceived !== last.report.packetsReceived
    if (isMeasured) this.#observeLatency(report)
    this.#facts = [
      ...this.#latency,
      ...this.#countLines(report),
      ...this.#countLosses(report, nowUs),
    ]
    return this.#facts
  }

  #observeLatency({ latencyMs, rttMs }: SrtReport): void {
    this.#rttsMs.push(rttMs)
    if (this.#rttsMs.length > RTT_SAMPLES) this.#rttsMs.shift()
    if (this.#rttsMs.length < RTT_SAMPLES) return
    const steadyRttMs = Math.min(...this.#rttsMs)
    this.#latency = [{ code: 'LATENCY_TOO_LOW', latencyMs, rttMs, steadyRttMs }]
  }

  #countLines({ lines }: PublisherReport): WarningFact[] {
    if (lines === undefined) return []
    this.#lineCounts.push(lines.length)
    if (this.#lineCounts.length > LINE_SAMPLES) {
      this.#lineCounts.shift()
      this.#mostLines = Math.max(this.#mostLines, Math.min(...this.#lineCounts))
    }
    return [{ code: 'LINE_GONE', gone: this.#mostLines - lines.length, lines: this.#mostLines }]
  }

  #countLosses(report: SrtReport, nowUs: number): WarningFact[] {
    const oldest = this.#samples[0]!
    const { latencyMs, rttMs, bitrateBps } = report
    const { sent, lost, dropped, undecryptable, overflowed } = rise(oldest.report, report)
    const spanSec = WINDOW_SEC
    const facts: WarningFact[] = [
      { code: 'PACKETS_UNDECRYPTABLE', count: undecryptable, spanSec },
      { code: 'WINDOW_OVERFLOW', count: overflowed, spanSec, latencyMs, bitrateBps },
    ]
    if (nowUs - oldest.atUs < WINDOW_US) return facts
    const losses = { count: dropped, spanSec, sent, lost, latencyMs, rttMs, bitrateBps }
    return [...facts, { code: 'LOSSES_NOT_REPAIRED', ...losses }]
  }
}

/** Number of packets in the window, by outcome. */
interface Rise {
  /** Packets sent, without retransmissions. At least `dropped`, which may include packets sent before the window. */
  readonly sent: number
  readonly lost: number
  readonly dropped: number
  readonly undecryptable: number
  readonly overflowed: number
}

function rise(from: SrtCounters, to: SrtCounters): Rise {
  const received = to.packetsReceived - from.packetsReceived
  const retransmitted = to.packetsRetransmitted - from.packetsRetransmitted
  const lost = to.packetsLost - from.packetsLost
  const dropped = to.packetsDropped - from.packetsDropped
  return {
    sent: Math.max(received - retransmitted + lost, dropped),
    lost,
    dropped,
    undecryptable: to.packetsUndecryptable - from.packetsUndecryptable,
    overflowed: to.packetsOverflowed - from.packetsOverflowed,
  }
}
