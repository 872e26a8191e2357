/**
 * Rate limit of one event per interval, for each name separately.
 *
 * @module
 */
export class IntervalLimiter {
  readonly #intervalUs: number
  /** Time of the last event by name, oldest first; entries older than the interval are removed. */
  readonly #takenUs = new Map<string, number>()

  constructor(intervalUs: number) {
    this.#intervalUs = intervalUs
  }

  /** @returns whether the event may pass now */
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
