/**
 * So many a second, and a burst after a time of quiet. Needs no timer: it fills when it is asked.
 *
 * @module
 */

export class TokenBucket {
  /** May change while it is in use. */
  perSec: number
  readonly #burst: number | undefined
  #tokens: number
  #filledUs: number

  /** @param burst  tokens that a full bucket has; a second's worth unless told */
  constructor(perSec: number, nowUs: number, burst?: number) {
    this.perSec = perSec
    this.#burst = burst
    this.#tokens = burst ?? perSec
    this.#filledUs = nowUs
  }

  /** @returns whether there are as many; none is taken */
  has(nowUs: number, tokens = 1): boolean {
    const filled = this.#tokens + ((nowUs - this.#filledUs) * this.perSec) / 1e6
    this.#tokens = Math.min(this.#burst ?? this.perSec, filled)
    this.#filledUs = nowUs
    return this.#tokens >= tokens
  }

  /** @returns whether there were as many; if not, none is taken */
  take(nowUs: number, tokens = 1): boolean {
    if (!this.has(nowUs, tokens)) return false
    this.#tokens -= tokens
    return true
  }
}
