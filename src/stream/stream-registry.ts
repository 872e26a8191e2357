/**
 * Streams by id. A stopped stream stays until its linger is over, its id is started again, or too many others linger.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import { MillraceError } from '../errors.ts'
import type { MediaOptions } from '../hls/media-options.ts'
import { LiveStream } from './live-stream.ts'
import type { ContinuedStream, LiveStreamOptions } from './live-stream-options.ts'
import { SequenceStarts } from './sequence-starts.ts'
import type { StopReason, StreamState } from '../api/records.ts'

export type RegistryOptions = Omit<LiveStreamOptions, 'epoch' | 'sequenceStart'> & {
  /** Maximum number of running streams. As many more may linger; above that, the one that stopped first is dropped. */
  readonly maxStreams: number
  /** Creates a unique name for what one process makes of one run of a stream: its files bear it. */
  readonly createEpoch: () => string
}

export interface StreamFilter {
  readonly after?: string
  readonly limit: number
  readonly status?: StreamState
}

/**
 * Max number of streams without an encoder so far that one tick checks. To check 100,000 takes 4 minutes, often enough
 * for keys that last two hours.
 */
const READY_STREAMS_PER_TICK = 100

interface StartOptions {
  readonly media?: Partial<MediaOptions>
  readonly resumed?: boolean
  readonly continued?: ContinuedStream | undefined
}

export class StreamRegistry extends EventEmitter<{ stream: [stream: LiveStream] }> {
  readonly #options: RegistryOptions
  readonly #sequences: SequenceStarts
  readonly #streams = new Map<string, LiveStream>()
  /** Streams without an encoder so far, in the order of their next check. */
  readonly #ready = new Set<LiveStream>()
  /** Streams that have, or had, an encoder or a slate, by the time at which their latest encoder connected. */
  readonly #active = new Set<LiveStream>()
  /** Streams that linger, in the order in which they stopped. */
  readonly #stopped = new Set<LiveStream>()

  constructor(options: RegistryOptions) {
    super()
    this.#options = options
    this.#sequences = new SequenceStarts(options.clock.wallMs())
  }

  /** Number of streams that may run besides those that do. */
  get room(): number {
    return this.#options.maxStreams - this.#ready.size - this.#active.size
  }

  /**
   * Finds the running stream of this id, or creates one.
   *
   * @param options.media  options of a stream that is created; default: those of all streams
   * @param options.resumed  whether the stream ran recently, in the previous process
   * @param options.continued  stream of another process, which the created one continues with its options
   * @throws {MillraceError} `TOO_MANY_STREAMS`
   */
  start(id: string, { media = {}, resumed = false, continued }: StartOptions = {}): LiveStream {
    const present = this.#streams.get(id)
    if (present !== undefined && present.status !== 'STOPPED') return present
    const { createEpoch, clock } = this.#options
    if (this.room <= 0) throw new MillraceError('TOO_MANY_STREAMS')
    if (present !== undefined) this.#forget(present)
    const sequenceStart = this.#sequences.next(id, clock.wallMs(), { resumed })
    const epoch = createEpoch()
    const own = { ...media, ...continued?.checkpoint.media }
    const stream = new LiveStream(id, { ...this.#options, ...own, epoch, sequenceStart, continued })
    this.#streams.set(id, stream)
    if (continued?.ended !== undefined) {
      stream.stop(continued.ended)
      this.#linger(stream)
      return stream
    }
    if (stream.status === 'READY') this.#ready.add(stream)
    else this.#active.add(stream)
    stream.on('publish', () => this.activate(stream))
    stream.once('end', () => this.#linger(stream))
    this.emit('stream', stream)
    return stream
  }

  /** Advances the timers of a stream each time: one with an encoder, or with a slate. */
  activate(stream: LiveStream): void {
    this.#ready.delete(stream)
    this.#active.delete(stream)
    if (stream.status !== 'STOPPED') this.#active.add(stream)
  }

  /** @returns undefined for an id that was never started or is forgotten */
  find(id: string): LiveStream | undefined {
    const stream = this.#streams.get(id)
    return stream?.forgotten === true ? undefined : stream
  }

  /** Forgets a stream that another process continues, see `LiveStream.leave`. */
  leave(stream: LiveStream): void {
    stream.leave()
    this.#ready.delete(stream)
    this.#active.delete(stream)
    this.#forget(stream)
  }

  /** Advances the timers of the active streams and of the next READY streams; forgets streams whose linger is over. */
  tick(): void {
    for (const stream of this.#active) stream.tick()
    let visits = Math.min(READY_STREAMS_PER_TICK, this.#ready.size)
    for (const stream of this.#ready) {
      if (visits-- === 0) break
      this.#ready.delete(stream)
      this.#ready.add(stream)
      stream.tick()
    }
    this.#options.cache.settle(this.#options.clock.nowUs() / 1000)
    for (const stream of this.#stopped) {
      if (!stream.forgotten) break
      this.#forget(stream)
    }
  }

  /** Streams with an encoder, the one that connected last at the end. */
  get published(): readonly LiveStream[] {
    return [...this.#active].filter(({ encoder }) => encoder !== undefined)
  }

  /**
   * Streams in the order of their ids, for pages.
   *
   * @param after  id before the first one
   * @param limit  maximum number of streams
   */
  list({ after = '', limit, status }: StreamFilter): readonly LiveStream[] {
    const page: LiveStream[] = []
    for (const stream of this.#streams.values()) {
      const isWanted = !stream.forgotten && (status === undefined || stream.status === status)
      const last = page.length === limit ? page.at(-1) : undefined
      if (!isWanted || stream.id <= after || (last !== undefined && stream.id > last.id)) continue
      // Bounded, since there may be 100,000 streams.
      page.splice(page.findLastIndex(({ id }) => id < stream.id) + 1, 0, stream)
      if (page.length > limit) page.pop()
    }
    return page
  }

  stopAll(reason: StopReason): void {
    for (const stream of this.#streams.values()) stream.stop(reason)
  }

  [Symbol.iterator](): MapIterator<LiveStream> {
    return this.#streams.values()
  }

  #linger(stream: LiveStream): void {
    this.#ready.delete(stream)
    this.#active.delete(stream)
    // The id may have been started again before this event.
    if (this.#streams.get(stream.id) !== stream) return
    this.#stopped.add(stream)
    const [first = stream] = this.#stopped
    if (this.#stopped.size > this.#options.maxStreams) this.#forget(first)
  }

  #forget(stream: LiveStream): void {
    this.#sequences.leave(stream.id, stream.freeSequence, this.#options.clock.wallMs())
    stream.discard()
    this.#stopped.delete(stream)
    if (this.#streams.get(stream.id) === stream) this.#streams.delete(stream.id)
  }
}
