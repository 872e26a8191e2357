/**
 * Asks the sender for what is missing (NAK, draft-sharabayko-srt 4.8.2): for a new gap as soon as it can be no mere
 * reordering, and from then on periodically.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'
import type { ReceiveBuffer } from './receive-buffer.ts'
import { ReorderTolerance } from './reorder-tolerance.ts'
import type { RttEstimator } from '../rtt.ts'
import { MIN_NAK_INTERVAL_US } from '../timers.ts'
import { TokenBucket } from '../../token-bucket.ts'
import type { Transmitter } from '../transmitter.ts'
import { encodeLossList, MAX_LOSS_RANGES, type LossRange } from '../wire/loss-list.ts'
import { ControlType, HEADER_BYTES } from '../wire/packet.ts'

/**
 * What NAKs may take of the way back: a tenth of what arrives, or this much (bytes a second). The worst that 10 % loss asks
 * for stays below; a sender that leaves out every other number of tiny packets would get more back than it sends.
 */
const NAK_SHARE = 0.1
const MIN_NAK_BYTES_PER_SEC = 64_000

/** With less latency than so many round trips, what is waited for reordering is missing for repairs. */
const PATIENT_ROUND_TRIPS = 3

export interface LossReporterOptions {
  readonly buffer: ReceiveBuffer
  readonly latencyUs: number
  /** The sender does not send a packet twice because it was asked for twice: asking often makes up for lost NAKs. */
  readonly eagerNak: boolean
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
  readonly nowUs: number
}

export class LossReporter {
  readonly #buffer: ReceiveBuffer
  readonly #latencyUs: number
  readonly #eagerNak: boolean
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #budget: TokenBucket
  readonly #tolerance: ReorderTolerance
  #sentReports = 0
  #withheldReports = 0
  #dueUs = 0

  /** Some gap may be mere reordering yet: noticed at `#freshUs`, and not before `#reportedTo` in the sequence. */
  #hasFresh = false
  #freshUs = 0
  #reportedTo: number

  constructor(options: LossReporterOptions) {
    this.#buffer = options.buffer
    this.#latencyUs = options.latencyUs
    this.#eagerNak = options.eagerNak
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#budget = new TokenBucket(MIN_NAK_BYTES_PER_SEC, options.nowUs)
    this.#tolerance = new ReorderTolerance(options.nowUs)
    this.#reportedTo = options.buffer.next
  }

  get sentReports(): number {
    return this.#sentReports
  }

  /** Not sent, because they would take too much of the way back. */
  get withheldReports(): number {
    return this.#withheldReports
  }

  get tolerancePackets(): number {
    return this.#tolerance.packets
  }

  /** To be called before a packet is held that leaves out others, from the buffer's end on. */
  noticeGap(nowUs: number): void {
    if (!this.#buffer.hasGap) this.#dueUs = nowUs + this.#intervalUs
    // Where nothing is missing, what was fresh came in time.
    else if (this.#hasFresh) return
    this.#hasFresh = true
    this.#freshUs = nowUs
    this.#reportedTo = this.#buffer.end
  }

  /** To be called of a packet that fills a gap and was not sent again. */
  noticeLate(sequence: number): void {
    this.#tolerance.learn(sequenceDistance(sequence, this.#buffer.end) - 1)
  }

  /** Reports new gaps once they are old enough; to be called with every packet while there is one. */
  reportFresh(nowUs: number): void {
    if (!this.#hasFresh) return
    const { end } = this.#buffer
    const patient = nowUs - this.#freshUs < this.#patienceUs
    const until = patient ? addToSequence(end, -1 - this.#tolerance.packets) : end
    if (sequenceDistance(this.#reportedTo, until) <= 0) return
    this.#send(this.#buffer.missing(this.#reportedTo, until, MAX_LOSS_RANGES), nowUs)
    this.#reportedTo = until
    this.#hasFresh = this.#buffer.missing(until, end, 1).length > 0
    this.#freshUs = nowUs
  }

  /** How long a gap may be mere reordering. */
  get #patienceUs(): number {
    const { rttUs } = this.#rtt
    return this.#latencyUs < PATIENT_ROUND_TRIPS * rttUs ? 0 : rttUs / 4
  }

  /** @param bytesPerSec  what arrives */
  tick(bytesPerSec: number, nowUs: number): void {
    this.#budget.perSec = Math.max(MIN_NAK_BYTES_PER_SEC, bytesPerSec * NAK_SHARE)
    this.#tolerance.tick(nowUs)
    this.reportFresh(nowUs)
    if (!this.#buffer.hasGap || nowUs < this.#dueUs) return
    const { next, end } = this.#buffer
    const until = this.#hasFresh ? this.#reportedTo : end
    this.#send(this.#buffer.missing(next, until, MAX_LOSS_RANGES), nowUs)
    this.#dueUs = nowUs + this.#intervalUs
  }

  /** 4.8.2 has half an answer's time. Asking at the lower bound leaves 1.5e-5 instead of 1.4e-4 (10 % loss, RTT 100 ms, 500 ms). */
  get #intervalUs(): number {
    return this.#eagerNak
      ? MIN_NAK_INTERVAL_US
      : Math.max(this.#rtt.answerUs / 2, MIN_NAK_INTERVAL_US)
  }

  #send(ranges: readonly LossRange[], nowUs: number): void {
    if (ranges.length === 0) return
    const list = encodeLossList(ranges)
    if (this.#budget.take(nowUs, HEADER_BYTES + list.length)) {
      this.#sentReports++
      this.#transmitter.sendControl(ControlType.NAK, 0, list, nowUs)
    } else this.#withheldReports++
  }
}
