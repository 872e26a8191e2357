/**
 * Lets what is of one name through once in an interval.
 *
 * @module
 */
export class IntervalLimiter {
  readonly #intervalUs: number
  /** When each name was last let through; no older than the interval, oldest first. */
  readonly #takenUs = new Map<string, number>()

  constructor(intervalUs: number) {
    this.#intervalUs = intervalUs
  }

  /** @returns whether it goes through now */
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
