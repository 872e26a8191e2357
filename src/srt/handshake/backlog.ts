/**
 * Attempts that wait for the accept hook, at most `MAX_ATTEMPTS`. No single network can fill the backlog.
 *
 * @module
 */
import { attemptKey, type Attempt } from './attempt.ts'
import { networkOf } from './source-limiter.ts'

const MAX_ATTEMPTS = 256

/** Max time between two sweeps that counts as waiting; the rest is a stall, in which the host could not decide. */
const MAX_STEP_US = 300_000

interface Waiting {
  readonly attempt: Attempt
  /** Time that the attempt has waited, without stalls. */
  waitedUs: number
  sweptUs: number
}

/** Calling order: `hasRoomFor`, `push`; then `take` when the host decides, or `takeExpired` if it has not in time. */
export class Backlog {
  /** Attempts by key, oldest first. */
  readonly #attempts = new Map<string, Waiting>()

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
      ({ attempt }) => networkOf(attempt.remoteAddress) === network,
    )
    return held.length < free
  }

  push(attempt: Attempt): void {
    const waiting = { attempt, waitedUs: 0, sweptUs: attempt.arrivedUs }
    this.#attempts.set(attemptKey(attempt), waiting)
  }

  /** @returns whether the attempt was still waiting */
  take(attempt: Attempt): boolean {
    const key = attemptKey(attempt)
    return this.#attempts.get(key)?.attempt === attempt && this.#attempts.delete(key)
  }

  /** @returns attempts that have waited for `timeoutUs` without stalls, removed from the backlog */
  takeExpired(timeoutUs: number, nowUs: number): Attempt[] {
    const expired: Attempt[] = []
    for (const [key, waiting] of this.#attempts) {
      waiting.waitedUs += Math.min(nowUs - waiting.sweptUs, MAX_STEP_US)
      waiting.sweptUs = nowUs
      if (waiting.waitedUs < timeoutUs) continue
      this.#attempts.delete(key)
      expired.push(waiting.attempt)
    }
    return expired
  }
}
