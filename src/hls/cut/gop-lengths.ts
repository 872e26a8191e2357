/**
 * Durations of the newest GOPs, to predict the next random access point.
 *
 * @module
 */

/** Number of newest GOPs; their maximum predicts the next GOP, since encoders shorten some GOPs at scene changes. */
const GOPS_REMEMBERED = 3

export class GopLengths {
  #startTicks: number | undefined
  #lengths: readonly number[] = []

  /** Maximum duration of the newest GOPs; 0 before the first complete GOP. */
  get longestTicks(): number {
    return Math.max(0, ...this.#lengths)
  }

  /** Time since the newest random access point of the timeline; 0 before the first. */
  lengthAt(ticks: number): number {
    return ticks - (this.#startTicks ?? ticks)
  }

  /**
   * Whether a random access point is due at `ticks`.
   *
   * @param frameTicks  expected duration of a frame
   */
  isOverAt(ticks: number, frameTicks: number): boolean {
    return this.lengthAt(ticks) + frameTicks / 2 > this.longestTicks
  }

  /** Adds the next random access point of a timeline. */
  push(ticks: number): void {
    if (this.#startTicks !== undefined) {
      this.#lengths = [...this.#lengths.slice(1 - GOPS_REMEMBERED), ticks - this.#startTicks]
    }
    this.#startTicks = ticks
  }

  /** Adds a key frame that is repeated, of which the length of the open GOP tells nothing. */
  restart(ticks: number): void {
    this.#startTicks = ticks
  }

  /** Ends the timeline: ignores the open GOP, whose length is unknown. */
  endTimeline(): void {
    this.#startTicks = undefined
  }
}
