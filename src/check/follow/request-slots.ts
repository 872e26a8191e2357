/**
 * Limit of simultaneous requests. Requests that a server may hold (blocking reloads and hinted parts) leave slots for
 * the others.
 *
 * @module
 */

/** Maximum number of requests at once, in total and held: the connections that browsers open to one host. */
const MAX_REQUESTS = 6
const MAX_HELD_REQUESTS = 4

interface Waiting {
  readonly held: boolean
  readonly start: () => void
}

export class RequestSlots {
  #active = 0
  #held = 0
  #waiting: readonly Waiting[] = []

  /** Resolves when the request may be sent; `release` frees the slot. */
  async take(held: boolean): Promise<void> {
    if (this.#isFree(held)) return this.#add(held, 1)
    await new Promise<void>((start) => {
      this.#waiting = [...this.#waiting, { held, start }]
    })
  }

  release(held: boolean): void {
    this.#add(held, -1)
    const next = this.#waiting.find((waiting) => this.#isFree(waiting.held))
    if (next === undefined) return
    this.#waiting = this.#waiting.filter((waiting) => waiting !== next)
    this.#add(next.held, 1)
    next.start()
  }

  #isFree(held: boolean): boolean {
    return this.#active < MAX_REQUESTS && (!held || this.#held < MAX_HELD_REQUESTS)
  }

  #add(held: boolean, count: 1 | -1): void {
    this.#active += count
    if (held) this.#held += count
  }
}
