/**
 * A clock and timers whose time passes only when the test lets it, for drivers that take both as arguments.
 *
 * @module
 */
import type { Clock, Timers } from '../../src/timing/clock.ts'

interface Due {
  readonly atMs: number
  readonly isSleep: boolean
  readonly run: () => void
}

export class VirtualTime implements Timers {
  #nowMs = 0
  readonly #due = new Set<Due>()

  readonly clock: Clock = {
    nowUs: () => this.#nowMs * 1000,
    wallMs: () => Date.UTC(2026, 11, 1) + this.#nowMs,
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const abort = () => {
        cancel()
        reject(signal!.reason as Error)
      }
      const end = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      const cancel = this.#add(ms, end, true)
      signal?.addEventListener('abort', abort)
    })
  }

  every(intervalMs: number, task: () => void): () => void {
    let cancel: () => void
    const wait = () => {
      cancel = this.#add(intervalMs, () => {
        wait()
        task()
      })
    }
    wait()
    return () => cancel()
  }

  /** Number of those that sleep. */
  get sleepers(): number {
    return [...this.#due].filter(({ isSleep }) => isSleep).length
  }

  /** Lets time pass. All that is due is done in order, with what follows from it without a socket. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    for (;;) {
      await settled()
      const next = first(this.#due)
      if (next === undefined || next.atMs > endMs) break
      this.#due.delete(next)
      this.#nowMs = next.atMs
      next.run()
    }
    this.#nowMs = endMs
  }

  /** Lets time pass as long as somebody sleeps, until the promise settles. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let isOver = false
    const end = () => (isOver = true)
    promise.then(end, end)
    for (;;) {
      await settled()
      if (isOver) return promise
      const next = first([...this.#due].filter(({ isSleep }) => isSleep))
      if (next !== undefined) await this.pass(next.atMs - this.#nowMs)
    }
  }

  /** @returns cancels it */
  #add(ms: number, run: () => void, isSleep = false): () => void {
    const due = { atMs: this.#nowMs + ms, isSleep, run }
    this.#due.add(due)
    return () => this.#due.delete(due)
  }
}

/** The earliest, and of several the one that was added first. */
function first(due: Iterable<Due>): Due | undefined {
  return [...due].toSorted((a, b) => a.atMs - b.atMs)[0]
}

/** Lets promises settle, and sockets do some of their work. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
