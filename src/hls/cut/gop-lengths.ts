/**
 * Intervals between random access points, to predict the next one.
 *
 * @module
 */

/** Number of newest GOPs, the longest of which predicts the next: encoders shorten a GOP at a scene change. */
const GOPS_REMEMBERED = 3

export class GopLengths {
  #startTicks: number | undefined
  #lengths: readonly number[] = []

  /** Duration of the longest of the newest GOPs; 0 before the first complete one. */
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

  /** Ends the timeline: ignores the open GOP, whose length is unknown. */
  endTimeline(): void {
    this.#startTicks = undefined
  }
}
