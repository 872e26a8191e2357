/**
 * Loss reports (NAK, draft-sharabayko-srt 4.8.2). A gap is reported as soon as it is no longer attributed to
 * reordering, then periodically until it closes; to a bonded sender, each loss once in a round trip.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'
import type { ReadProgress } from '../read-progress.ts'
import type { RttEstimator } from '../rtt-estimator.ts'
import { MIN_NAK_INTERVAL_US } from '../timers.ts'
import type { Transmitter } from '../transmitter.ts'
import { encodeLossList, MAX_LOSS_RANGES, type LossRange } from '../wire/loss-list.ts'
import { ControlType, HEADER_BYTES } from '../wire/packet.ts'
import type { ReceiveBuffer } from './receive-buffer.ts'
import { ReorderTolerance } from './reorder-tolerance.ts'

/**
 * Max rate of NAKs in bytes, as a share of the receiving rate, but at least `MIN_NAK_BYTES_PER_SEC`. Reports of 10 %
 * loss need less. Without a limit, a sender of tiny packets that skips every other sequence number would get more bytes
 * back than it sends.
 */
const NAK_SHARE = 0.1
const MIN_NAK_BYTES_PER_SEC = 64_000

/** Min latency, in round trips, to wait for reordered packets; a shorter latency has time for retransmission only. */
const MIN_PATIENT_ROUND_TRIPS = 3

/** Share of the latency for which a bonded sender's packets may overtake each other: lines differ by more than RTT / 4. */
const BONDED_PATIENCE = 1 / 4

/**
 * Max share of the latency for which a retransmission of a bonded sender is awaited, though at least a round trip: the
 * variance of the RTT is that of the lines. At 10 % loss, RTTs of 40 and 500 ms and latency 2 s, 3e-6 of the packets stay
 * missing instead of 1e-3.
 */
const BONDED_RESPONSE = 1 / 8

/** Number of losses of a bonded sender that await another report: above it, losses are reported once. */
const MAX_REPORTED = 8192

export interface LossReporterOptions {
  readonly buffer: Pick<ReceiveBuffer, 'next' | 'end' | 'hasGap' | 'missing'>
  readonly latencyUs: number
  /** Read progress of the process: `behind` while retransmissions may lie unread in the socket. */
  readonly progress: Pick<ReadProgress, 'behind'>
  /** Whether the sender retransmits a packet at most once per round trip, so that frequent NAKs cause no duplicates. */
  readonly eagerNak: boolean
  /** Whether packets come over several lines. The sender sends less over a line for each NAK of a packet sent there. */
  readonly isBonded: boolean
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
  readonly nowUs: number
}

export class LossReporter {
  readonly #buffer: LossReporterOptions['buffer']
  readonly #latencyUs: number
  readonly #progress: Pick<ReadProgress, 'behind'>
  readonly #eagerNak: boolean
  readonly #isBonded: boolean
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #budget: TokenBucket
  readonly #tolerance: ReorderTolerance
  #sentReports = 0
  #reportedPackets = 0
  #withheldReports = 0
  /** Time of the next periodic report. */
  #dueUs = 0

  /** Whether a packet missing from `#reportedTo` on may be reordered, and still arrive. */
  #hasFresh = false
  /** Time at which the wait for reordered packets began. */
  #freshUs = 0
  /** Sequence number before which all missing packets have been reported. */
  #reportedTo: number
  /** Losses of a bonded sender by their latest report, oldest first; at most `MAX_REPORTED`. */
  #reported: { readonly range: LossRange; readonly atUs: number }[] = []

  constructor(options: LossReporterOptions) {
    this.#buffer = options.buffer
    this.#latencyUs = options.latencyUs
    this.#progress = options.progress
    this.#eagerNak = options.eagerNak
    this.#isBonded = options.isBonded
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#budget = new TokenBucket(MIN_NAK_BYTES_PER_SEC, options.nowUs)
    this.#tolerance = new ReorderTolerance(options.nowUs, options.isBonded)
    this.#reportedTo = options.buffer.next
  }

  get sentReports(): number {
    return this.#sentReports
  }

  /** Number of packets reported, each once. */
  get reportedPackets(): number {
    return this.#reportedPackets
  }

  /** Number of reports not sent because of the rate limit. */
  get withheldReports(): number {
    return this.#withheldReports
  }

  get tolerancePackets(): number {
    return this.#tolerance.packets
  }

  /** Records a new gap. To be called before the buffer holds the packet after the gap. */
  handleGap(nowUs: number): void {
    if (!this.#buffer.hasGap) this.#dueUs = nowUs + this.#intervalUs
    // Without an open gap, `#hasFresh` is out of date: all gaps have closed.
    else if (this.#hasFresh) return
    this.#hasFresh = true
    this.#freshUs = nowUs
    this.#reportedTo = this.#buffer.end
  }

  /** Records a reordered packet: it fills a gap and is not a retransmission. */
  handleReordered(sequence: number): void {
    this.#tolerance.push(sequenceDistance(sequence, this.#buffer.end) - 1)
  }

  /** Reports new gaps no longer attributed to reordering. To be called for every packet while there is a gap. */
  reportFresh(nowUs: number): void {
    if (!this.#hasFresh) return
    const { end } = this.#buffer
    const patient = nowUs - this.#freshUs < this.#patienceUs
    const until = patient ? addToSequence(end, -1 - this.#tolerance.packets) : end
    if (sequenceDistance(this.#reportedTo, until) <= 0) return
    const ranges = this.#buffer.missing(this.#reportedTo, until, MAX_LOSS_RANGES)
    for (const { first, last } of ranges) this.#reportedPackets += sequenceDistance(first, last) + 1
    this.#send(ranges, nowUs)
    this.#reportedTo =
      ranges.length < MAX_LOSS_RANGES ? until : addToSequence(ranges.at(-1)!.last, 1)
    this.#hasFresh = this.#buffer.missing(this.#reportedTo, end, 1).length > 0
    this.#freshUs = nowUs
  }

  /** Max time for which a gap is attributed to reordering. */
  get #patienceUs(): number {
    if (this.#isBonded) return this.#latencyUs * BONDED_PATIENCE
    const { rttUs } = this.#rtt
    return this.#latencyUs < MIN_PATIENT_ROUND_TRIPS * rttUs ? 0 : rttUs / 4
  }

  /** @param bytesPerSec  receiving rate */
  tick(bytesPerSec: number, nowUs: number): void {
    this.#budget.perSec = Math.max(MIN_NAK_BYTES_PER_SEC, bytesPerSec * NAK_SHARE)
    this.#tolerance.tick(nowUs)
    this.reportFresh(nowUs)
    if (this.#isBonded) {
      this.#repeat(nowUs)
      return
    }
    if (!this.#buffer.hasGap || nowUs < this.#dueUs) return
    const { next, end } = this.#buffer
    const until = this.#hasFresh ? this.#reportedTo : end
    this.#send(this.#buffer.missing(next, until, MAX_LOSS_RANGES), nowUs)
    this.#dueUs = nowUs + this.#intervalUs
  }

  /** Reports losses again whose latest report is a round trip old. */
  #repeat(nowUs: number): void {
    const { rttUs, responseTimeoutUs } = this.#rtt
    const responseUs = Math.min(responseTimeoutUs, this.#latencyUs * BONDED_RESPONSE)
    const untilUs = nowUs - Math.max(responseUs, rttUs, MIN_NAK_INTERVAL_US)
    const kept = this.#reported.findIndex(({ atUs }) => atUs > untilUs)
    const overdue = kept === 0 ? [] : this.#reported.splice(0, kept === -1 ? Infinity : kept)
    const ranges = overdue.flatMap(({ range: { first, last } }) =>
      this.#buffer.missing(first, addToSequence(last, 1), Infinity),
    )
    for (let i = 0; i < ranges.length; i += MAX_LOSS_RANGES) {
      this.#send(ranges.slice(i, i + MAX_LOSS_RANGES), nowUs)
    }
  }

  /**
   * Interval of periodic reports: (RTT + 4 x variance) / 2, but at least `MIN_NAK_INTERVAL_US` (4.8.2). Eager NAKs use
   * the minimum: at 10 % loss, RTT 100 ms and latency 500 ms, 1.5e-5 of the packets stay missing instead of 1.4e-4.
   *
   * While the process is behind, the interval is RTT + 4 x variance. The RTT then includes the time for which ACKACKs,
   * like retransmissions, lie unread. An earlier NAK would only cause duplicates, and load the process even more.
   */
  get #intervalUs(): number {
    const { responseTimeoutUs } = this.#rtt
    if (this.#progress.behind) return Math.max(responseTimeoutUs, MIN_NAK_INTERVAL_US)
    return this.#eagerNak
      ? MIN_NAK_INTERVAL_US
      : Math.max(responseTimeoutUs / 2, MIN_NAK_INTERVAL_US)
  }

  #send(ranges: readonly LossRange[], nowUs: number): void {
    if (ranges.length === 0) return
    if (this.#isBonded && this.#reported.length < MAX_REPORTED) {
      for (const range of ranges) this.#reported.push({ range, atUs: nowUs })
    }
    const list = encodeLossList(ranges)
    if (this.#budget.take(nowUs, HEADER_BYTES + list.length)) {
      this.#sentReports++
      this.#transmitter.sendControl(ControlType.NAK, 0, list, nowUs)
    } else this.#withheldReports++
  }
}
