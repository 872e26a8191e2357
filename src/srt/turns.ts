/**
 * Turns of tasks: a bounded number runs at a time, a bounded number of others waits.
 *
 * @module
 */
import { RejectCode } from './wire/reject-code.ts'

/** Max number of tasks that wait: derivations of keys of a tenth of a second. */
const MAX_WAITING = 256

/** The task was not begun, since too many wait. */
export class BacklogError extends Error {
  readonly rejectCode = RejectCode.BACKLOG
}

export class Turns {
  readonly #maxRunning: number
  /** Begins a task, oldest first. */
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(maxRunning: number) {
    this.#maxRunning = maxRunning
  }

  /** Whether no task runs or waits. */
  get isIdle(): boolean {
    return this.#running === 0
  }

  /**
   * Runs a task when it is its turn.
   *
   * @param signal  aborts a task that has not begun, and its place is free at once
   * @throws {BacklogError} if as many wait as may
   * @throws the signal's reason, and what the task throws
   */
  async run<Result>(task: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted()
    if (this.#running < this.#maxRunning) this.#running++
    else await this.#wait(signal)
    try {
      return await task()
    } finally {
      // The place of this task goes to the next one.
      const [begin] = this.#waiting
      if (begin === undefined) this.#running--
      else begin()
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    const waiting = this.#waiting
    if (waiting.size === MAX_WAITING)
      throw new BacklogError(`${MAX_WAITING} tasks wait: expected fewer`)
    return new Promise((resolve, reject) => {
      const end = () => {
        waiting.delete(begin)
        signal.removeEventListener('abort', abort)
      }
      const begin = () => {
        end()
        resolve()
      }
      const abort = () => {
        end()
        reject(signal.reason)
      }
      waiting.add(begin)
      signal.addEventListener('abort', abort)
    })
  }
}
