/**
 * So many a second, and as many at once after a second of quiet. Needs no timer: it fills when it is asked.
 *
 * @module
 */

export class TokenBucket {
  /** May change while it is in use. */
  perSec: number
  #tokens: number
  #filledUs: number

  constructor(perSec: number, nowUs: number) {
    this.perSec = perSec
    this.#tokens = perSec
    this.#filledUs = nowUs
  }

  /** @returns whether there were as many; if not, none is taken */
  take(nowUs: number, tokens = 1): boolean {
    const filled = this.#tokens + ((nowUs - this.#filledUs) * this.perSec) / 1e6
    this.#tokens = Math.min(this.perSec, filled)
    this.#filledUs = nowUs
    if (this.#tokens < tokens) return false
    this.#tokens -= tokens
    return true
  }
}
