/**
 * Distances between random access points, which tell whether the next one can be expected in time.
 *
 * @module
 */

/** Encoders cut a GOP short where the scene changes: the longest of these is to be expected. */
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

  /** The next random access point of a timeline. */
  push(ticks: number): void {
    if (this.#startTicks !== undefined) {
      this.#lengths = [...this.#lengths.slice(1 - GOPS_REMEMBERED), ticks - this.#startTicks]
    }
    this.#startTicks = ticks
  }

  /** The timeline ended: the open GOP has no length. */
  endTimeline(): void {
    this.#startTicks = undefined
  }
}
