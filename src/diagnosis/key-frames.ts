/**
 * The key frames of a video track: how far apart they come, and whether a player that joins at one sees all that
 * follows.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { JUMP_TICKS } from './track-times.ts'

const INTERVALS_REMEMBERED = 16
const LEAST_INTERVALS = 5

/** So many closed groups of pictures one after the other: the encoder was told. */
const CLOSED_IN_A_ROW = 5

/** `push` each unit. */
export class KeyFrames {
  /** Recovery points of intra refresh; only goes up. */
  gradual = 0
  /** Open groups of pictures since so many closed ones came in a row. */
  openGops = 0
  #closedInRow = 0
  #keyTicks = NaN
  #isOpen = false
  /** Presentation times between key frames, a ring. */
  readonly #intervals = new Float64Array(INTERVALS_REMEMBERED)
  #remembered = 0

  push({ ptsTicks, randomAccess, gradualRefresh, decodableLeading }: PesUnit): void {
    if (gradualRefresh) this.gradual++
    if (randomAccess) this.#startGop(ptsTicks)
    // Shown before the key frame that it follows: it was made from pictures before that one as well.
    else if (ptsTicks < this.#keyTicks && !decodableLeading) this.#isOpen = true
  }

  /** Pictures were lost: how far the next key frame is from the last says nothing. */
  skip(): void {
    this.#keyTicks = NaN
    this.#isOpen = false
  }

  /**
   * The range of the newest intervals, without the shortest and the longest of all: one that differs is an accident.
   * Undefined until there are enough.
   */
  get intervals(): { readonly shortTicks: number; readonly longTicks: number } | undefined {
    const count = Math.min(this.#remembered, INTERVALS_REMEMBERED)
    if (count < LEAST_INTERVALS) return undefined
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
