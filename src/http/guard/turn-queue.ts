/**
 * A queue of which each turn of the event loop takes a bounded amount of work, so that a crowd that waits together does not
 * act together.
 *
 * @module
 */

/** `take` a turn at once, or `add` what is to be done in a later one. Costs are in a unit of the owner's choice. */
export class TurnQueue {
  readonly #maxCost: number
  /** Cost by what waits, in order. */
  readonly #waiting = new Map<() => void, number>()
  #isScheduled = false
  /** Cost of what was done since the last turn of the loop. */
  #spent = 0

  /** @param maxCost  of one turn of the loop; an act that costs more has a turn of its own */
  constructor(maxCost: number) {
    this.#maxCost = maxCost
  }

  /** @returns whether an act that does not wait may be done at once; if not, it is to be added */
  take(cost = 1): boolean {
    if (!this.#fits(cost)) return false
    this.#spent += cost
    // Not at each: a turn of the loop brings a few requests as a rule, and a timer for them would cost as much as they do.
    if (this.#spent * 2 >= this.#maxCost) this.#schedule()
    return true
  }

  /** Calls `act` in a later turn; once, however often it is added until then. */
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
    // Taken out first: an act that adds itself again is done in another turn.
    for (const act of due) this.#waiting.delete(act)
    for (const act of due) act()
    if (this.#waiting.size > 0) this.#schedule()
  }
}
