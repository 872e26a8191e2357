/**
 * Loads the media of one playlist one after the other, so that neighbors are judged in order.
 *
 * @module
 */

export type MediaTask = () => Promise<unknown>

/** Tasks that may wait; the newest are dropped when loading is slower than the stream. */
const MAX_WAITING = 30

export class MediaQueue {
  #waiting: MediaTask[] = []
  #running: Promise<void> | undefined

  push(...tasks: readonly MediaTask[]): void {
    this.#waiting = [...this.#waiting, ...tasks].slice(0, MAX_WAITING)
    this.#running ??= this.#run()
  }

  /** Resolves when all that was pushed is loaded. */
  async drain(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await next()
    }
    this.#running = undefined
  }
}
