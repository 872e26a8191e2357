/**
 * All streams by id. A stopped stream stays until its linger is over or its id is started anew.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import { LiveStream, type LiveStreamOptions } from './live-stream.ts'
import type { StopReason } from './state.ts'

export type RegistryOptions = Omit<LiveStreamOptions, 'epoch'> & {
  /** A new name for a start of a stream, never given before. */
  readonly createEpoch: () => string
}

export class StreamRegistry extends EventEmitter<{ stream: [stream: LiveStream] }> {
  readonly #options: RegistryOptions
  readonly #streams = new Map<string, LiveStream>()

  constructor(options: RegistryOptions) {
    super()
    this.#options = options
  }

  /** The running stream of that id, or a new one. */
  start(id: string): LiveStream {
    const present = this.#streams.get(id)
    if (present !== undefined && present.status !== 'STOPPED') return present
    present?.discard()
    const stream = new LiveStream(id, { ...this.#options, epoch: this.#options.createEpoch() })
    this.#streams.set(id, stream)
    this.emit('stream', stream)
    return stream
  }

  /** undefined where the id was never started or is forgotten. */
  find(id: string): LiveStream | undefined {
    const stream = this.#streams.get(id)
    return stream?.forgotten === true ? undefined : stream
  }

  /** Lets time pass for every stream and forgets those whose linger is over. */
  tick(): void {
    for (const [id, stream] of this.#streams) {
      stream.tick()
      if (!stream.forgotten) continue
      stream.discard()
      // Whoever heard of its end may have started the id anew.
      if (this.#streams.get(id) === stream) this.#streams.delete(id)
    }
  }

  stopAll(reason: StopReason): void {
    for (const stream of this.#streams.values()) stream.stop(reason)
  }

  [Symbol.iterator](): MapIterator<LiveStream> {
    return this.#streams.values()
  }
}
