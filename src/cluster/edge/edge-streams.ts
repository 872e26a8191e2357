/**
 * Streams of other nodes as one source of playback, each from its first request at the origin until nobody reads it.
 *
 * @module
 */
import type {
  PlayableStream,
  PlaybackSource,
  ViewerIdentity,
} from '../../playback/playback-source.ts'
import type { FetchedFiles } from '../../hls/store/fetched-files.ts'
import type { Clock } from '../../timing/clock.ts'
import type { TokenBucket } from '../../timing/token-bucket.ts'
import type { Audience } from './audience.ts'
import { EdgeFiles } from './edge-files.ts'
import type { AskOwner, OwnerResponse } from './stream-origin.ts'

interface EdgeStreamsOptions {
  /** Asks the owner of a stream. */
  readonly ask: (streamId: string, ...request: Parameters<AskOwner>) => Promise<OwnerResponse>
  /** Shared by all sources of an edge. */
  readonly media: FetchedFiles
  /** Name of the source in `media`. */
  readonly name: string
  /** See `EdgeFilesOptions`. */
  readonly unlisted: TokenBucket
  readonly audience: Audience
  readonly clock: Clock
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
    const { ask, ...options } = this.#options
    const files = new EdgeFiles({
      ...options,
      ask: (...request) => ask(streamId, ...request),
      name: `${options.name}/${streamId}/`,
      keep: () => this.#keep(stream),
    })
    // The origin decides which streams need a token.
    const policy = { playbackToken: false }
    const stream: EdgeStream = {
      id: streamId,
      status: 'STREAMING',
      live: true,
      isRemote: true,
      policy,
      files,
    }
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
