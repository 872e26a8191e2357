/**
 * Key frames of a video track: their intervals, and open GOPs, in which a player that joins cannot decode all frames.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { JUMP_TICKS } from './track-times.ts'

const INTERVALS_REMEMBERED = 16
const MIN_INTERVALS = 5

/** Number of consecutive closed GOPs after which the encoder counts as reconfigured, and open GOPs are forgotten. */
const CLOSED_IN_A_ROW = 5

/** Inputs: `push` each frame. */
export class KeyFrames {
  /** Number of recovery points of intra refresh; only increases. */
  intraRefreshes = 0
  /** Number of open GOPs since the latest run of `CLOSED_IN_A_ROW` closed GOPs. */
  openGops = 0
  #closedInRow = 0
  /** PTS of the latest key frame; NaN without one. */
  #keyTicks = NaN
  /** Whether the current GOP is open. */
  #isOpen = false
  /** Ring of the newest intervals between PTS, in ticks of 90 kHz. */
  readonly #intervals = new Float64Array(INTERVALS_REMEMBERED)
  #remembered = 0

  push({ ptsTicks, randomAccess, gradualRefresh, decodableLeading }: PesUnit): void {
    if (gradualRefresh) this.intraRefreshes++
    if (randomAccess) this.#startGop(ptsTicks)
    // A leading frame that is not decodable from its key frame refers to frames of the previous GOP.
    else if (ptsTicks < this.#keyTicks && !decodableLeading) this.#isOpen = true
  }

  /** Excludes the current GOP, in which packets were dropped, from the intervals. */
  skip(): void {
    this.#keyTicks = NaN
    this.#isOpen = false
  }

  /**
   * Range of the newest intervals without the shortest and the longest, which may be outliers; undefined with fewer
   * than 5 intervals.
   */
  get intervals(): { readonly shortTicks: number; readonly longTicks: number } | undefined {
    const count = Math.min(this.#remembered, INTERVALS_REMEMBERED)
    if (count < MIN_INTERVALS) return undefined
    const sorted = this.#intervals.subarray(0, count).toSorted()
    return { shortTicks: sorted[1]!, longTicks: sorted[count - 2]! }
  }

  #startGop(ptsTicks: number): void {
    const intervalTicks = ptsTicks - this.#keyTicks
    // Key frames 60 s or more apart, or not in sequence, are a timestamp discontinuity.
    if (intervalTicks > 0 && intervalTicks < 6 * JUMP_TICKS) {
      this.#intervals[this.#remembered++ % INTERVALS_REMEMBERED] = intervalTicks
    }
    if (this.#isOpen) {
      this.openGops++
      this.#closedInRow = 0
    } else if (++this.#closedInRow === CLOSED_IN_A_ROW) this.openGops = 0
    this.#keyTicks = ptsTicks
    this.#isOpen = false
  }
}
