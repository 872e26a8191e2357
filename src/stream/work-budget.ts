/**
 * CPU budget of a stream's media. Clean media costs about 2.3 µs per transport packet from datagram to segment, of
 * which 0.4 µs are after SRT. Hostile media may cost 2.3 µs more, so that a stream costs at most twice as much.
 * Payloads above the budget are dropped; an encoder that stays above it is to be disconnected.
 *
 * The budget belongs to the stream and not to the connection: reconnecting does not reset it.
 *
 * @module
 */
import type { Fact } from '../diagnosis/warnings.ts'
import { PACKET_BYTES } from '../mpegts/packet.ts'

const US_PER_BYTE = 2.7 / PACKET_BYTES

/** Fixed part of the budget, 1 % of a core: 24 renditions at the lowest bitrates take half of it. */
const US_PER_SEC = 10_000

/** Maximum saved budget, 0.1 s of CPU time: enough to start 24 renditions, or for the burst after an outage. */
const MAX_BALANCE_US = 100_000

/** Balance above which dropping ends: enough for the media that follows to be contiguous. */
const REOPENING_US = 20_000

/** Time without a drop after which the next drop starts a new period of dropping. */
const PAUSE_US = 5_000_000

const DISCONNECT_AFTER_US = 10_000_000

/** Calling order: `admit` each payload, then `spend` its cost. Sans-IO: times are microseconds of a monotonic clock. */
export class WorkBudget {
  #balanceUs = MAX_BALANCE_US
  #filledUs: number
  #open = true
  #spentUs = 0
  #dropped = 0
  #droppedBefore = 0
  #droppingSinceUs = -Infinity
  #droppedUs = -Infinity

  constructor(nowUs: number) {
    this.#filledUs = nowUs
  }

  /** Number of dropped payloads. */
  get dropped(): number {
    return this.#dropped
  }

  /** Cost so far, in nominal microseconds. */
  get spentUs(): number {
    return this.#spentUs
  }

  /** Balance in nominal microseconds; negative if more was spent than earned. */
  get balanceUs(): number {
    return this.#balanceUs
  }

  /** @returns whether to demux the payload; otherwise it counts as dropped */
  admit(sizeBytes: number, nowUs: number): boolean {
    const earnedUs = ((nowUs - this.#filledUs) * US_PER_SEC) / 1e6 + sizeBytes * US_PER_BYTE
    this.#filledUs = nowUs
    this.#balanceUs = Math.min(MAX_BALANCE_US, this.#balanceUs + earnedUs)
    this.#open = this.#balanceUs > (this.#open ? 0 : REOPENING_US)
    if (this.#open) return true
    if (nowUs - this.#droppedUs > PAUSE_US) {
      this.#droppingSinceUs = nowUs
      this.#droppedBefore = this.#dropped
    }
    this.#dropped++
    this.#droppedUs = nowUs
    return false
  }

  /** @param workUs  nominal microseconds, see `work.ts` */
  spend(workUs: number): void {
    this.#balanceUs -= workUs
    this.#spentUs += workUs
  }

  /** Whether the current period of dropping has lasted 10 s: the encoder is to be disconnected. */
  isExhausted(nowUs: number): boolean {
    const lastedUs = this.#droppedUs - this.#droppingSinceUs
    return lastedUs >= DISCONNECT_AFTER_US && nowUs - this.#droppedUs <= PAUSE_US
  }

  /** Ends the current period of dropping, for a new encoder. */
  restart(): void {
    this.#droppedUs = -Infinity
  }

  /** Facts about the current period of dropping; none once 5 s have passed since its last drop. */
  factsAt(nowUs: number): readonly Fact[] {
    if (nowUs - this.#droppedUs > PAUSE_US) return []
    return [{ code: 'INGEST_TOO_COSTLY', dropped: this.#dropped - this.#droppedBefore }]
  }
}
