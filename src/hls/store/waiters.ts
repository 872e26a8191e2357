/**
 * Readers that wait for files of a stream.
 *
 * @module
 */

interface Waiter {
  readonly isOver: () => boolean
  readonly onOver: () => void
}

/** `wait` for a file; `wake` when it has changed. A reader that leaves is forgotten in constant time. */
export class Waiters {
  readonly #max: number
  readonly #byName = new Map<string, Set<Waiter>>()
  #count = 0

  /** @param max  maximum number of waiting readers */
  constructor(max: number) {
    this.#max = max
  }

  get count(): number {
    return this.#count
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  /**
   * Waits until a change of the file after which `isOver` holds.
   *
   * @param onOver  called once, by `wake`
   * @returns forgets the reader; undefined if it does not wait: `isOver` holds now, or too many readers wait
   */
  wait(name: string, isOver: () => boolean, onOver: () => void): (() => void) | undefined {
    if (this.#count >= this.#max || isOver()) return undefined
    const waiter = { isOver, onOver }
    this.#add(name, waiter)
    return () => this.#remove(name, waiter)
  }

  /** Ends the waits for a file that are over. */
  wake(name: string): void {
    for (const waiter of this.#byName.get(name) ?? []) {
      if (!waiter.isOver()) continue
      this.#remove(name, waiter)
      waiter.onOver()
    }
  }

  wakeAll(): void {
    for (const name of this.#byName.keys()) this.wake(name)
  }

  #add(name: string, waiter: Waiter): void {
    const waiters = this.#byName.get(name) ?? new Set()
    this.#byName.set(name, waiters)
    waiters.add(waiter)
    this.#count++
  }

  #remove(name: string, waiter: Waiter): void {
    const waiters = this.#byName.get(name)
    if (waiters?.delete(waiter) !== true) return
    this.#count--
    if (waiters.size === 0) this.#byName.delete(name)
  }
}
