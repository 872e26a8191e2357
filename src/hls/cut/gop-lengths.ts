/**
 * Intervals between random access points, to predict the next one.
 *
 * @module
 */

/** Number of GOPs whose longest is the prediction: encoders shorten a GOP at a scene change. */
const GOPS_REMEMBERED = 3

export class GopLengths {
  #startTicks: number | undefined
  #lengths: readonly number[] = []

  /** Longest of the newest GOPs; 0 before one was seen from start to end. */
  get longestTicks(): number {
    return Math.max(0, ...this.#lengths)
  }

  /** Time since the newest random access point; 0 before the first of a timeline. */
  lengthAt(ticks: number): number {
    return ticks - (this.#startTicks ?? ticks)
  }

  /** Adds the next random access point of a timeline. */
  push(ticks: number): void {
    if (this.#startTicks !== undefined) {
      this.#lengths = [...this.#lengths.slice(1 - GOPS_REMEMBERED), ticks - this.#startTicks]
    }
    this.#startTicks = ticks
  }

  /** Ends the timeline: ignores the open GOP, which has no length. */
  endTimeline(): void {
    this.#startTicks = undefined
  }
}
