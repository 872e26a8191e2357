/**
 * Departure of the encoders of a node that goes away: one after the other, so that the other nodes take them in turn.
 *
 * @module
 */
import type { LiveStream } from '../../../stream/live-stream.ts'
import type { Timers } from '../../../timing/clock.ts'

/** Time between two encoders, in milliseconds. */
const SPACING_MS = 2000

/** Calling order: `run` any number of times, the last of which counts. */
export class Drain {
  readonly #listPublished: () => readonly Pick<LiveStream, 'disconnect'>[]
  readonly #timers: Pick<Timers, 'sleep'>
  #run: AbortController | undefined

  /** @param listPublished  lists the streams with an encoder */
  constructor(
    listPublished: () => readonly Pick<LiveStream, 'disconnect'>[],
    timers: Pick<Timers, 'sleep'>,
  ) {
    this.#listPublished = listPublished
    this.#timers = timers
  }

  get hasBegun(): boolean {
    return this.#run !== undefined
  }

  /** @param limitMs  time in which all encoders are sent away, shorter than 2 s each if need be */
  async run(limitMs = Infinity): Promise<void> {
    this.#run?.abort()
    const { signal } = (this.#run = new AbortController())
    const streams = this.#listPublished()
    const spacingMs = Math.min(SPACING_MS, limitMs / streams.length)
    for (const stream of streams) {
      stream.disconnect('draining')
      await this.#timers.sleep(spacingMs, signal).catch(() => undefined)
      if (signal.aborted) break
    }
  }
}
