/**
 * Queue that spreads the work of a crowd over turns of the event loop, a bounded amount in each.
 *
 * @module
 */

/** Maximum number of requests parsed, or small responses written, per turn of the event loop: 16 responses take 1 ms. */
export const MAX_REQUESTS_PER_TURN = 16

/** Inputs: `take` a turn at once, or `add` work for a later one. The owner chooses the unit of costs. */
export class TurnQueue {
  readonly #maxCost: number
  /** Waiting work with its cost, oldest first. */
  readonly #waiting = new Map<() => void, number>()
  #isScheduled = false
  /** Cost of the work since the latest `#turn`; several turns of the event loop may have passed without one. */
  #spent = 0

  /** @param maxCost  limit of one turn; work that costs more has a turn of its own */
  constructor(maxCost: number) {
    this.#maxCost = maxCost
  }

  /** @returns whether work may be done at once; if not, `add` it */
  take(cost = 1): boolean {
    if (!this.#fits(cost)) return false
    this.#spent += cost
    // Not at each call: most turns bring a few requests, and an immediate costs as much as they do.
    if (this.#spent * 2 >= this.#maxCost) this.#schedule()
    return true
  }

  /** Calls `act` in a later turn, once even if it is added several times. */
  add(act: () => void, cost = 1): void {
    this.#waiting.set(act, cost)
    this.#schedule()
  }

  #fits(cost: number): boolean {
    return this.#spent === 0 || this.#spent + cost <= this.#maxCost
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    this.#spent = 0
    const due: (() => void)[] = []
    for (const [act, cost] of this.#waiting) {
      if (!this.#fits(cost)) break
      this.#spent += cost
      due.push(act)
    }
    // Removed first, so that an act that adds itself again is called in another turn.
    for (const act of due) this.#waiting.delete(act)
    // Before the acts, one of which may throw.
    if (this.#waiting.size > 0) this.#schedule()
    for (const act of due) act()
  }
}
