/**
 * EXT-X-PROGRAM-DATE-TIME (RFC 8216bis 4.4.4.6): the wall clock at the start of a timeline, then advanced by EXTINF.
 *
 * The clocks of encoder and server drift apart: 50 ppm are 4.3 s per day. So dates are slewed toward the server's
 * clock, by at most 1 ms per second. Players, which expect each date to be the previous one plus EXTINF, tolerate that.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Maximum slew per second of media. */
const MAX_SLEW_MS = 1

/** Time constant of the slew: at 50 ppm dates stay 5 ms off; jitter of 20 ms moves them by 0.2 ms per second. */
const SETTLE_SEC = 100

/** Smallest difference that is a jump of the wall clock, a burst or a pause instead of drift: it is not slewed. */
const MAX_DRIFT_MS = 1000

/** Number of newest random access points compared. The network hardly ever delays all, so the smallest lag counts. */
const ARRIVALS = 16

/** Inputs: `anchor` when a timeline begins, `arrive` at each random access point, `advance` after each segment. */
export class ProgramDate {
  #startMs: number
  /** Arrival times of the newest random access points minus their dates without slew, oldest first. */
  #lagsMs: number[] = []
  /** Sum of all slew since the anchor. */
  #slewMs = 0

  /** @param earliestMs  earliest date, milliseconds since 1970 */
  constructor(earliestMs = 0) {
    this.#startMs = earliestMs
  }

  /** Start of the open segment, milliseconds since 1970. */
  get startMs(): number {
    return this.#startMs
  }

  /**
   * Date within the open segment, milliseconds since 1970.
   *
   * @param ticks  media time from the start of the segment, 90 kHz
   */
  after(ticks: number): number {
    return this.#startMs + (ticks / TICKS_PER_SEC) * 1000
  }

  /** Starts a timeline at the wall clock or, if later, at the end of the previous segment: dates never overlap. */
  anchor(wallMs: number): void {
    this.#startMs = Math.max(wallMs, this.#startMs)
    this.#lagsMs = [wallMs - this.#startMs]
    this.#slewMs = 0
  }

  /** @param sinceStartSec  media time from the start of the open segment to the random access point that arrived */
  arrive(sinceStartSec: number, wallMs: number): void {
    this.#lagsMs.push(wallMs - (this.#startMs - this.#slewMs + sinceStartSec * 1000))
    if (this.#lagsMs.length > ARRIVALS) this.#lagsMs.shift()
  }

  /** Advances to the next segment of the timeline. */
  advance(durationSec: number): void {
    const slewMs = this.#slewRateMs() * durationSec
    this.#slewMs += slewMs
    this.#startMs += durationSec * 1000 + slewMs
  }

  /** Slew in milliseconds per second of media. */
  #slewRateMs(): number {
    if (this.#lagsMs.length < ARRIVALS) return 0
    const differenceMs = Math.min(...this.#lagsMs) - this.#slewMs
    if (Math.abs(differenceMs) >= MAX_DRIFT_MS) return 0
    return Math.max(-MAX_SLEW_MS, Math.min(differenceMs / SETTLE_SEC, MAX_SLEW_MS))
  }
}
