/**
 * Attempts that wait for the accept hook, at most `MAX_ATTEMPTS`. No single network can fill the backlog.
 *
 * @module
 */
import { attemptKey, type Attempt } from './attempt.ts'
import { networkOf } from './source-limiter.ts'

const MAX_ATTEMPTS = 256

/** Calling order: `hasRoomFor`, `push`; then `take` when the host decides, or `takeExpired` if it has not in time. */
export class Backlog {
  /** Attempts by key, oldest first. */
  readonly #attempts = new Map<string, Attempt>()

  get size(): number {
    return this.#attempts.size
  }

  has(key: string): boolean {
    return this.#attempts.has(key)
  }

  /**
   * Whether the backlog admits an attempt from the address. A network must hold fewer places than are free, so one
   * network alone gets at most half of the backlog.
   */
  hasRoomFor(address: string): boolean {
    const free = MAX_ATTEMPTS - this.size
    if (this.size < free) return true
    const network = networkOf(address)
    const held = [...this.#attempts.values()].filter(
      ({ remoteAddress }) => networkOf(remoteAddress) === network,
    )
    return held.length < free
  }

  push(attempt: Attempt): void {
    this.#attempts.set(attemptKey(attempt), attempt)
  }

  /** @returns whether the attempt was still waiting */
  take(attempt: Attempt): boolean {
    const key = attemptKey(attempt)
    return this.#attempts.get(key) === attempt && this.#attempts.delete(key)
  }

  /** @returns attempts that arrived at `untilUs` or before, removed from the backlog */
  takeExpired(untilUs: number): Attempt[] {
    const expired = [...this.#attempts.values()].filter(({ arrivedUs }) => arrivedUs <= untilUs)
    for (const attempt of expired) this.take(attempt)
    return expired
  }
}
