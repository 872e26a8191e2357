/**
 * Child process as the supervisor sees it.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import type { Config } from '../../config/schema.ts'
import { MillraceError } from '../../errors.ts'
import type { ChildNotice, ChildOptions, Failure, Order } from './messages.ts'

/** Exit code or signal. */
export type Exit = number | NodeJS.Signals

export class Child {
  readonly name: string
  /** Settles when the process serves, or has failed to. */
  readonly ready: Promise<void>
  /** Resolves when the process has ended. */
  readonly ended: Promise<Exit>
  readonly #process: ChildProcess
  #options: ChildOptions
  #isLoaded = false
  /** Settles with the latest order to reload. */
  #reloading: Promise<unknown> = Promise.resolve()

  constructor(child: ChildProcess, options: ChildOptions) {
    this.name = options.name
    this.#options = options
    this.#process = child
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? code ?? 1))
      // A process that could not be created has no exit.
      child.on('error', () => child.pid === undefined && resolve(1))
    })
    this.ready = this.#reply('ready', 'failed')
    // Node drops what is sent to a worker before its program has loaded.
    child.once('message', () => {
      this.#isLoaded = true
      this.send({ type: 'start', options: this.#options })
    })
  }

  /** Sends nothing to a process that has ended. */
  send(order: Order): void {
    if (this.#process.connected) this.#process.send(order, () => undefined)
  }

  /** @throws {MillraceError} see `Server.reload`, or `PROCESS_LOST` */
  reload(config: Config): Promise<void> {
    // One at a time, since an answer does not tell which order it is for.
    const reloaded = this.#reloading.then(() => this.#reload(config))
    this.#reloading = reloaded.catch(() => undefined)
    return reloaded
  }

  async #reload(config: Config): Promise<void> {
    if (!this.#isLoaded) {
      this.#options = { ...this.#options, config }
      return
    }
    const settled = this.#reply('reloaded', 'refused')
    this.send({ type: 'reload', config })
    await settled
  }

  /** Ends the process by an order, or with SIGKILL after a time limit. */
  async end(order: Order, limitMs: number): Promise<void> {
    const deadline = setTimeout(() => this.kill(), this.#isLoaded ? limitMs : 0)
    this.send(order)
    await this.ended
    clearTimeout(deadline)
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  /** Waits for one of two notices; the second one rejects, as does the end of the process. */
  #reply(success: ChildNotice['type'], refusal: 'failed' | 'refused'): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = (notice: ChildNotice) => {
        if (notice.type !== success && notice.type !== refusal) return
        this.#process.off('message', take)
        if (notice.type === refusal && 'failure' in notice) reject(toError(notice.failure))
        else resolve()
      }
      this.#process.on('message', take)
      const rejectAtEnd = async () => {
        const message = `${this.name} ended (${await this.ended}): its log has the cause`
        reject(new MillraceError('PROCESS_LOST', { message }))
      }
      void rejectAtEnd()
    })
  }
}

function toError({ code, message }: Failure): MillraceError {
  return new MillraceError(code ?? 'INTERNAL', { message })
}
