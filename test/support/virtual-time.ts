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
  /** The first one at the end; of several at the same time, the one that was added first. */
  readonly #due: Due[] = []
  readonly #settle: () => Promise<void>
  readonly #timers = this.timersOf((task) => task())

  readonly clock: Clock = {
    nowUs: () => this.#nowMs * 1000,
    wallMs: () => Date.UTC(2026, 11, 1) + this.#nowMs,
  }

  /** @param settle  waits for all that needs no time. Default: promises, and sockets do some of their work */
  constructor(settle: () => Promise<void> = nextTurn) {
    this.#settle = settle
  }

  get nowMs(): number {
    return this.#nowMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<unknown> {
    return this.#timers.sleep(ms, signal)
  }

  every(intervalMs: number, task: () => void): () => void {
    return this.#timers.every(intervalMs, task)
  }

  /** Timers of a process. @param run  runs a task that is due, maybe later, or never */
  timersOf(run: (task: () => void) => void): Timers {
    return {
      sleep: (ms, signal) =>
        new Promise<void>((resolve, reject) => {
          signal?.throwIfAborted()
          const abort = () => {
            cancel()
            reject(signal!.reason as Error)
          }
          const end = () => {
            signal?.removeEventListener('abort', abort)
            resolve()
          }
          const cancel = this.after(ms, () => run(end), true)
          signal?.addEventListener('abort', abort)
        }),
      every: (intervalMs, task) => {
        let isOver = false
        let cancel: () => void
        const due = () => {
          if (isOver) return
          wait()
          task()
        }
        const wait = () => (cancel = this.after(intervalMs, () => run(due)))
        wait()
        return () => {
          isOver = true
          cancel()
        }
      },
    }
  }

  /** Number of those that sleep. */
  get sleepers(): number {
    return this.#due.filter(({ isSleep }) => isSleep).length
  }

  /** Lets time pass. All that is due is done in order, with what follows from it without a socket. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    for (;;) {
      await this.#settle()
      const next = this.#due.at(-1)
      if (next === undefined || next.atMs > endMs) break
      this.#due.pop()
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
      await this.#settle()
      if (isOver) return promise
      const next = this.#due.findLast(({ isSleep }) => isSleep)
      if (next !== undefined) await this.pass(next.atMs - this.#nowMs)
    }
  }

  /** @returns cancels it */
  after(ms: number, run: () => void, isSleep = false): () => void {
    const due = { atMs: this.#nowMs + ms, isSleep, run }
    this.#due.splice(this.#due.findLastIndex(({ atMs }) => atMs > due.atMs) + 1, 0, due)
    return () => {
      const at = this.#due.indexOf(due)
      if (at >= 0) this.#due.splice(at, 1)
    }
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
