/**
 * Events that pass once in an interval, each name by itself.
 *
 * @module
 */
export class IntervalLimiter {
  readonly #intervalUs: number
  /** Time at which each name last passed; no older than the interval, oldest first. */
  readonly #takenUs = new Map<string, number>()

  constructor(intervalUs: number) {
    this.#intervalUs = intervalUs
  }

  /** @returns whether it passes now */
  take(name: string, nowUs: number): boolean {
    for (const [each, takenUs] of this.#takenUs) {
      if (nowUs - takenUs < this.#intervalUs) break
      this.#takenUs.delete(each)
    }
    if (this.#takenUs.has(name)) return false
    this.#takenUs.set(name, nowUs)
    return true
  }
}
