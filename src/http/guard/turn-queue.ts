/**
 * A queue of which each turn of the event loop takes a few, so that a crowd that waits together does not act together.
 *
 * @module
 */

/** Replies of 400 KB to 600 connections in one turn held the loop for 100 ms; these take 3 ms. */
const MAX_PER_TURN = 16

/** Turns given at once after which the count begins anew in the next turn. */
const TURN_CHECK = 8

export class TurnQueue {
  readonly #waiting = new Set<() => void>()
  #isScheduled = false
  /** Turns given at once since the last turn of the loop. */
  #taken = 0

  /** Whether one that does not wait may act at once; if not, it is to be added. */
  take(): boolean {
    if (this.#taken === MAX_PER_TURN) return false
    // Not at each: a turn of the loop brings a few requests as a rule, and a timer for them would cost as much as they do.
    if (++this.#taken === TURN_CHECK) this.#schedule()
    return true
  }

  /** Calls `act` in a later turn; once, however often it is added until then. */
  add(act: () => void): void {
    this.#waiting.add(act)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    this.#taken = 0
    // Taken out first: who adds itself again acts in another turn.
    for (const act of [...this.#waiting].slice(0, MAX_PER_TURN)) {
      this.#waiting.delete(act)
      act()
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}
