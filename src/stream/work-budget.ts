/**
 * How much work the media of a stream may make. A clean stream takes about 2.3 µs a transport packet from the datagram
 * to the segment, 0.4 µs of it behind SRT; the media of one that is not clean may take 2.3 µs more, so that the whole
 * costs at most twice as much. What is over is dropped; a publisher that stays over is to be disconnected.
 *
 * It is kept by the stream and not by the connection: whoever comes back finds it as it was left.
 *
 * @module
 */
import type { Fact } from '../diagnosis/warnings.ts'
import { PACKET_BYTES } from '../mpegts/packet.ts'

const US_PER_BYTE = 2.7 / PACKET_BYTES

/** Beside that 1 % of a core: 24 renditions at the lowest bitrates take half of it. */
const US_PER_SEC = 10_000

/** Work that may be done at once, 0.1 s: a stream of 24 renditions begins, a burst after an outage arrives. */
const MAX_BALANCE_US = 100_000

/** Media is dropped until so much work may be done again, so that what is kept is in one piece. */
const REOPENING_US = 20_000

/** No media is dropped for so long: it was another time. */
const PAUSE_US = 5_000_000

const DISCONNECT_AFTER_US = 10_000_000

/** `admit` each payload, `spend` what it cost. Sans-IO: times are microseconds of a clock that never goes back. */
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

  /** Payloads that were dropped. */
  get dropped(): number {
    return this.#dropped
  }

  /** Nominal microseconds so far. */
  get spentUs(): number {
    return this.#spentUs
  }

  /** Nominal microseconds that may be spent at once; negative: more was spent than there was. */
  get balanceUs(): number {
    return this.#balanceUs
  }

  /** @returns whether the payload is to be used; if not, it counts as dropped */
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

  /** Media has been dropped for 10 s: the publisher is to be disconnected. */
  isExhausted(nowUs: number): boolean {
    const lastedUs = this.#droppedUs - this.#droppingSinceUs
    return lastedUs >= DISCONNECT_AFTER_US && nowUs - this.#droppedUs <= PAUSE_US
  }

  /** A new publisher has 10 s of its own. */
  restart(): void {
    this.#droppedUs = -Infinity
  }

  /** Facts about media that is being dropped. */
  factsAt(nowUs: number): readonly Fact[] {
    if (nowUs - this.#droppedUs > PAUSE_US) return []
    return [{ code: 'INGEST_TOO_COSTLY', dropped: this.#dropped - this.#droppedBefore }]
  }
}
