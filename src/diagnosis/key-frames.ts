/**
 * The key frames of a video track: their intervals, and whether a player that joins at one can decode all that follows.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { JUMP_TICKS } from './track-times.ts'

const INTERVALS_REMEMBERED = 16
const MIN_INTERVALS = 5

/** After so many closed GOPs one after the other, the encoder was mended. */
const CLOSED_IN_A_ROW = 5

/** `push` each frame. */
export class KeyFrames {
  /** Recovery points of intra refresh; only goes up. */
  intraRefreshes = 0
  /** Open GOPs since so many closed ones came in a row. */
  openGops = 0
  #closedInRow = 0
  #keyTicks = NaN
  #isOpen = false
  /** Presentation times between key frames, a ring. */
  readonly #intervals = new Float64Array(INTERVALS_REMEMBERED)
  #remembered = 0

  push({ ptsTicks, randomAccess, gradualRefresh, decodableLeading }: PesUnit): void {
    if (gradualRefresh) this.intraRefreshes++
    if (randomAccess) this.#startGop(ptsTicks)
    // Shown before the key frame that it follows: it refers to frames before that one as well.
    else if (ptsTicks < this.#keyTicks && !decodableLeading) this.#isOpen = true
  }

  /** Frames were lost: the interval to the next key frame says nothing. */
  skip(): void {
    this.#keyTicks = NaN
    this.#isOpen = false
  }

  /**
   * Range of the newest intervals, without the shortest and the longest: one that differs is an accident. Undefined
   * until there are 5.
   */
  get intervals(): { readonly shortTicks: number; readonly longTicks: number } | undefined {
    const count = Math.min(this.#remembered, INTERVALS_REMEMBERED)
    if (count < MIN_INTERVALS) return undefined
    const sorted = this.#intervals.subarray(0, count).toSorted()
    return { shortTicks: sorted[1]!, longTicks: sorted[count - 2]! }
  }

  #startGop(ptsTicks: number): void {
    const intervalTicks = ptsTicks - this.#keyTicks
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
