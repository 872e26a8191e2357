/**
 * Readers that wait for files of a stream.
 *
 * @module
 */

interface Waiter {
  readonly isOver: () => boolean
  readonly resolve: () => void
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

  /**
   * Waits until a change of the file after which `isOver` holds; does not wait if it holds now, or if too many readers
   * wait.
   *
   * @throws the reason of the signal
   */
  async wait(name: string, isOver: () => boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (isOver() || this.#count >= this.#max) return
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        this.#remove(name, waiter)
        reject(signal.reason as Error)
      }
      const waiter = {
        isOver,
        resolve: () => {
          signal.removeEventListener('abort', abort)
          resolve()
        },
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#add(name, waiter)
    })
  }

  /** Ends the waits for a file that are over. The readers continue in a microtask, after the synchronous call. */
  wake(name: string): void {
    for (const waiter of this.#byName.get(name) ?? []) {
      if (!waiter.isOver()) continue
      this.#remove(name, waiter)
      waiter.resolve()
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
