/**
 * Replacement of child processes that die: when, and when no more. Times are in milliseconds of a monotonic clock.
 *
 * @module
 */

/** Deaths of all children within a minute at which the service ends. */
export const MAX_DEATHS = 5
const DEATHS_WITHIN_MS = 60_000

/** Age below which a replacement has died early. */
const EARLY_MS = 10_000

/** Pause before a child that died early is replaced. */
const PAUSE_MS = 1000

export interface Death {
  /** Time at which the child was started. */
  readonly startedMs: number
  /** Whether the child was itself a replacement. */
  readonly wasReplacement: boolean
}

export class ReplacementPolicy {
  #deathsMs: readonly number[] = []

  /** @returns pause before the replacement in milliseconds; undefined if the service is to end */
  pauseAfter({ startedMs, wasReplacement }: Death, nowMs: number): number | undefined {
    const recentMs = this.#deathsMs.filter((deathMs) => nowMs - deathMs < DEATHS_WITHIN_MS)
    this.#deathsMs = [...recentMs, nowMs]
    if (this.#deathsMs.length >= MAX_DEATHS) return undefined
    return wasReplacement && nowMs - startedMs < EARLY_MS ? PAUSE_MS : 0
  }
}
