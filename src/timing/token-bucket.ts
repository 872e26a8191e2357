/**
 * Token bucket: a rate per second, and a burst after a quiet time. Needs no timer: it is filled at each call.
 *
 * @module
 */

export class TokenBucket {
  /** Tokens added per second; may change while the bucket is in use. */
  perSec: number
  readonly #burst: number | undefined
  #tokens: number
  #filledUs: number

  /** @param burst  capacity in tokens; default one second's worth */
  constructor(perSec: number, nowUs: number, burst?: number) {
    this.perSec = perSec
    this.#burst = burst
    this.#tokens = burst ?? perSec
    this.#filledUs = nowUs
  }

  /** @returns whether the bucket has that many tokens; takes none */
  has(nowUs: number, tokens = 1): boolean {
    const filled = this.#tokens + ((nowUs - this.#filledUs) * this.perSec) / 1e6
    this.#tokens = Math.min(this.#burst ?? this.perSec, filled)
    this.#filledUs = nowUs
    return this.#tokens >= tokens
  }

  /** @returns whether the tokens were taken; takes none if the bucket has too few */
  take(nowUs: number, tokens = 1): boolean {
    if (!this.has(nowUs, tokens)) return false
    this.#tokens -= tokens
    return true
  }
}
