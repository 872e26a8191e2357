/**
 * Streams of other nodes as a source of playback.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import type { PlayableStream, PlaybackSource, ViewerIdentity } from '../contract/streams.ts'
import type { Audience } from './audience.ts'
import { EdgeFiles } from './edge-files.ts'
import type { MediaCache } from './media-cache.ts'
import type { StreamOrigin } from './stream-origin.ts'
import type { TokenBucket } from '../token-bucket.ts'

export interface EdgeStreamsOptions {
  /** Returns the origin of a stream. */
  readonly originOf: (streamId: string) => Pick<StreamOrigin, 'get'>
  /** Shared by all sources of an edge. */
  readonly media: MediaCache
  /** Name of the source in `media`. */
  readonly name: string
  /** See `EdgeFilesOptions`. */
  readonly unlisted: TokenBucket
  readonly audience: Audience
  readonly clock: Clock
  /** Returns the path of a stream at the origin, with a slash at the end; it may change while the stream is in use. */
  readonly pathOf: (streamId: string) => string
}

/** Time without a request after which an edge stops following a stream. */
const IDLE_US = 10 * 1_000_000

/** Maximum number of streams with requests in the last 10 s; unknown ids count too. */
const MAX_STREAMS = 20_000

export interface EdgeStream extends PlayableStream {
  readonly id: string
  readonly files: EdgeFiles
}

/** Call `tick` about once a second. */
export class EdgeStreams implements PlaybackSource {
  readonly #options: EdgeStreamsOptions
  readonly #streams = new Map<string, EdgeStream>()

  constructor(options: EdgeStreamsOptions) {
    this.#options = options
  }

  /** @returns a stream for every id, since only the origin knows which exist; kept from its first request there on */
  findStream(streamId: string): EdgeStream {
    return this.inUse(streamId) ?? this.#create(streamId)
  }

  /** Stream with requests in the last 10 s. */
  inUse(streamId: string): EdgeStream | undefined {
    return this.#streams.get(streamId)
  }

  #create(streamId: string): EdgeStream {
    const { pathOf, originOf, ...options } = this.#options
    const files = new EdgeFiles({
      ...options,
      originOf: () => originOf(streamId),
      name: `${options.name}/${streamId}/`,
      readPath: () => pathOf(streamId),
      keep: () => this.#keep(stream),
    })
    // The origin decides which streams need a token.
    const terms = { playbackToken: false }
    const stream: EdgeStream = { id: streamId, status: 'STREAMING', live: true, terms, files }
    return stream
  }

  #keep(stream: EdgeStream): boolean {
    if (this.#streams.has(stream.id)) return true
    if (this.#streams.size >= MAX_STREAMS) return false
    this.#streams.set(stream.id, stream)
    return true
  }

  countViewer({ id }: EdgeStream, viewer: ViewerIdentity): void {
    this.#options.audience.addViewer(id, viewer)
  }

  /** Ends requests for what nobody reads. */
  tick(): void {
    const idleSinceUs = this.#options.clock.nowUs() - IDLE_US
    for (const [streamId, { files }] of this.#streams) {
      files.tick()
      if (files.usedUs > idleSinceUs) continue
      files.close()
      this.#streams.delete(streamId)
    }
  }

  close(): void {
    for (const { files } of this.#streams.values()) files.close()
    this.#streams.clear()
  }
}
