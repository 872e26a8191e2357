/**
 * What the figures of an encoder's connection say of the way it takes, in words for whoever runs the encoder: a latency
 * that leaves no time for repairs, losses that no latency repairs, packets that cannot be read or kept.
 *
 * Sans-IO: `observe` takes the figures now and then (4 times a second is plenty); `warnings` are those that hold.
 *
 * @module
 */
import type { PublisherReport, Warning } from '../contract/report.ts'
import { MAX_LATENCY_MS } from '../srt/wire/limits.ts'

/** Figures are looked at so often, and counters by what they rose in the time of the window. */
const SAMPLE_US = 1_000_000
const WINDOW_US = 10_000_000

/** A loss is found, asked for and sent again within two round trips; four leave time for a second try. */
const LEAST_ROUND_TRIPS = 4
/** Whoever is told to raise the latency shall not be told again when the round trip trembles. */
const ENOUGH_ROUND_TRIPS = 4.5
/** A round trip time counts once it has stood for so long. */
const RTT_STANDS_US = 5_000_000

/** Of the packets sent. Beyond it viewers see it; the warning ends at half of it. */
const MAX_DROPPED_SHARE = 0.001

interface Sample {
  readonly report: PublisherReport
  readonly atUs: number
}

/** Of one connection. */
export class LinkHealth {
  /** Oldest first: the newest that lies a whole window back, where there is one, and all since. */
  readonly #samples: Sample[] = []
  #latencyIsShort = false
  #latencyShortSinceUs: number | undefined
  #warnings: readonly Warning[] = []

  /** Those that hold, with the figures of now. */
  get warnings(): readonly Warning[] {
    return this.#warnings
  }

  /** @returns the warnings that begin to hold */
  observe(report: PublisherReport, nowUs: number): readonly Warning[] {
    const last = this.#samples.at(-1)
    if (last !== undefined && nowUs - last.atUs < SAMPLE_US) return []
    this.#samples.push({ report, atUs: nowUs })
    while ((this.#samples[1]?.atUs ?? Infinity) <= nowUs - WINDOW_US) this.#samples.shift()
    if (last !== undefined) this.#watchLatency(last.report, report, nowUs)
    const held = this.#warnings
    this.#warnings = this.#judge(report, nowUs)
    return this.#warnings.filter(({ code }) => !held.some((each) => each.code === code))
  }

  #watchLatency(last: PublisherReport, report: PublisherReport, nowUs: number): void {
    // Round trips are measured where packets arrive: before them the time is a preset, and without them an old one.
    if (report.packetsReceived === last.packetsReceived) return
    const roundTrips = this.#latencyIsShort ? ENOUGH_ROUND_TRIPS : LEAST_ROUND_TRIPS
    const isEnough = report.latencyMs >= Math.min(roundTrips * report.rttMs, MAX_LATENCY_MS)
    this.#latencyShortSinceUs = isEnough ? undefined : (this.#latencyShortSinceUs ?? nowUs)
    this.#latencyIsShort = nowUs - (this.#latencyShortSinceUs ?? nowUs) >= RTT_STANDS_US
  }

  #judge(report: PublisherReport, nowUs: number): Warning[] {
    const oldest = this.#samples[0]!
    const recent = rise(oldest.report, report)
    const warnings: Warning[] = []
    if (this.#latencyIsShort) warnings.push(latencyTooLow(report))
    if (recent.undecryptable > 0) warnings.push(packetsUndecryptable(recent))
    if (recent.overflowed > 0) warnings.push(windowOverflow(report, recent))
    // Any of those is reason enough for packets that are given up.
    const isFull = nowUs - oldest.atUs >= WINDOW_US
    const isHeld = this.#warnings.some(({ code }) => code === 'LOSSES_NOT_REPAIRED')
    const limit = isHeld ? MAX_DROPPED_SHARE / 2 : MAX_DROPPED_SHARE
    if (warnings.length === 0 && isFull && recent.dropped > limit * recent.sent) {
      warnings.push(lossesNotRepaired(report, recent))
    }
    return warnings
  }
}

/** Packets by what became of them within the window. */
interface Recent {
  /** By the sender, each once; no less than `dropped`, some of which may have been sent before. */
  readonly sent: number
  readonly lost: number
  readonly dropped: number
  readonly undecryptable: number
  readonly overflowed: number
}

function rise(from: PublisherReport, to: PublisherReport): Recent {
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

function latencyTooLow({ latencyMs, rttMs }: PublisherReport): Warning {
  const neededMs = Math.min(Math.ceil((ENOUGH_ROUND_TRIPS * rttMs) / 10) * 10, MAX_LATENCY_MS)
  return {
    code: 'LATENCY_TOO_LOW',
    message: `the SRT latency is ${latencyMs} ms and the round trip takes ${Math.ceil(rttMs)} ms: what is lost can hardly be sent again in time, which takes ${LEAST_ROUND_TRIPS} round trips; set latency=${neededMs * 1000} (microseconds) in the URL of ffmpeg or OBS, ${neededMs} (milliseconds) in other encoders, or SRT_LATENCY_MS=${neededMs} here`,
  }
}

function lossesNotRepaired(
  { latencyMs, rttMs, bitrateBps }: PublisherReport,
  { sent, lost, dropped }: Recent,
): Warning {
  return {
    code: 'LOSSES_NOT_REPAIRED',
    message: `of the packets of the last 10 s ${percent(lost / sent)} were lost on the way and ${percent(dropped / sent)} could not be repaired, though the SRT latency of ${latencyMs} ms is enough for round trips of ${Math.ceil(rttMs)} ms: the line does not carry what the encoder sends (${megabits(bitrateBps)} arrive), or fails for seconds; lower the bitrate of the encoder, or raise the latency`,
  }
}

function packetsUndecryptable({ undecryptable }: Recent): Warning {
  return {
    code: 'PACKETS_UNDECRYPTABLE',
    message: `packets could not be decrypted, ${undecryptable} in the last 10 s: the encoder changed its key and the new one did not arrive, or they are in clear and somebody else's; let the encoder connect again`,
  }
}

function windowOverflow(
  { latencyMs, bitrateBps }: PublisherReport,
  { overflowed }: Recent,
): Warning {
  return {
    code: 'WINDOW_OVERFLOW',
    message: `packets came too far ahead of a missing one to be kept, ${overflowed} in the last 10 s: ${megabits(bitrateBps)} over a latency of ${latencyMs} ms are more than the encoder was told it may send ahead; lower the bitrate or the latency of the encoder`,
  }
}

/** With two digits that count. */
function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`
}

function megabits(bitsPerSec: number): string {
  return `${(bitsPerSec / 1e6).toFixed(1)} Mbit/s`
}
