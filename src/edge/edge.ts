/**
 * Edge: streams of other nodes as sources of playback, without and with playback tokens.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { signPlaybackToken } from '../auth/playback-token.ts'
import { machineClock, type Clock } from '../clock.ts'
import type { PlaybackSource } from '../contract/streams.ts'
import { MillraceError } from '../errors.ts'
import type { IsKnown } from '../http/guesses.ts'
import { NODE_TOKEN } from '../http/playback-access.ts'
import { TokenBucket } from '../token-bucket.ts'
import { Audience } from './audience.ts'
import { newestOf, type NewestMedia } from './edge-files.ts'
import { EdgeStreams } from './edge-streams.ts'
import { MediaCache } from './media-cache.ts'
import type { NodeClient } from './node-client.ts'
import type { OwnerLookup } from './owner-lookup.ts'
import { ServedFences } from './served-fences.ts'
import { StreamOrigin } from './stream-origin.ts'

export interface EdgeOptions {
  readonly client: NodeClient
  readonly owners: OwnerLookup
  /** Maximum size of media in memory. */
  readonly maxBytes: number
  /** Reads `PLAYBACK_SECRET`, newest first; empty: without. */
  readonly readPlaybackSecrets?: () => readonly string[]
  readonly clock?: Clock
}

/** Interval at which an edge signs new tokens for its origin, and their minimum lifetime. */
const TOKEN_RENEWAL_SEC = 60 * 60
const MIN_TOKEN_SEC = 3 * 60 * 60

/**
 * Requests at the origin for files that no followed playlist lists, so that clients who guess names do not load it: further
 * ones get 503. The first request for a playlist is one. More than one client may have, see `http/guesses.ts`.
 */
const UNLISTED_PER_SEC = 1000
const UNLISTED_AT_ONCE = 3000

/** Maximum number of streams whose owner is remembered; the one without a request for longest is forgotten. */
const MAX_ORIGINS = 20_000

const TICK_MS = 1000

export class Edge {
  /** Requests since the last report. */
  readonly audience = new Audience()
  /** Streams for viewers without a token: the origin decides which are public. */
  readonly open: PlaybackSource
  /** Streams for viewers whose token the edge has verified; requires `PLAYBACK_SECRET`. */
  readonly protected: PlaybackSource
  readonly #sources: readonly EdgeStreams[]
  readonly #origins = new LRUCache<string, StreamOrigin>({ max: MAX_ORIGINS })
  readonly #fences = new ServedFences()
  readonly #options: EdgeOptions
  readonly #unlisted: TokenBucket
  readonly #ticker: NodeJS.Timeout

  constructor(options: EdgeOptions) {
    const { client, maxBytes, readPlaybackSecrets = () => [], clock = machineClock } = options
    this.#options = options
    const bucket = () => new TokenBucket(UNLISTED_PER_SEC, clock.nowUs(), UNLISTED_AT_ONCE)
    this.#unlisted = bucket()
    const shared = {
      clock,
      audience: this.audience,
      media: new MediaCache(maxBytes),
    }
    const token = (streamId: string) =>
      client.signs ? NODE_TOKEN : signToken(streamId, readPlaybackSecrets(), clock.wallMs())
    const [open, guarded] = [
      new EdgeStreams({
        ...shared,
        originOf: (id) => this.#openOriginOf(id),
        unlisted: bucket(),
        name: 'open',
        pathOf: (id) => `/video/${id}/`,
      }),
      new EdgeStreams({
        ...shared,
        originOf: (id) => this.#originOf(id),
        unlisted: bucket(),
        name: 'protected',
        pathOf: (id) => `/t/${token(id)}/video/${id}/`,
      }),
    ]
    this.open = open
    this.protected = guarded
    this.#sources = [open, guarded]
    this.#ticker = setInterval(() => this.#sources.forEach((each) => each.tick()), TICK_MS)
  }

  /** Files in memory, from both sources; nothing is requested. */
  get memory(): PlaybackSource {
    return {
      findStream: (streamId) => {
        const streams = this.#sources.flatMap((each) => each.inUse(streamId) ?? [])
        const get = (name: string) => streams.map(({ files }) => files.get(name)).find(Boolean)
        return streams[0] && { status: 'STREAMING', live: true, files: { get } }
      },
    }
  }

  /** See `IsKnown`. */
  readonly isKnown: IsKnown = (streamId, name) =>
    this.#sources.some((each) => each.inUse(streamId)?.files.isKnown(name) === true)

  /** What the edge has of a stream that is read. */
  newest(streamId: string): NewestMedia | undefined {
    return newestOf(this.#sources.flatMap((each) => each.inUse(streamId)?.files.newest ?? []))
  }

  /**
   * @returns URL of the node that owns a stream
   * @throws {MillraceError} `STREAM_NOT_FOUND`, or `ORIGIN_UNREACHABLE` if no node can be asked now
   */
  async findOwner(streamId: string): Promise<string> {
    const { clock = machineClock } = this.#options
    const mayLookUp = this.#origins.has(streamId) || this.#unlisted.take(clock.nowUs())
    if (!mayLookUp) throw new MillraceError('ORIGIN_UNREACHABLE')
    return this.#originOf(streamId).findUrl()
  }

  /** Origin for viewers without a token, who do not learn which ids exist: see `accessOf`. */
  #openOriginOf(streamId: string): Pick<StreamOrigin, 'get'> {
    const { readPlaybackSecrets = () => [] } = this.#options
    const origin = this.#originOf(streamId)
    const refuse = (error: unknown): never => {
      const isUnknown = error instanceof MillraceError && error.code === 'STREAM_NOT_FOUND'
      const needsToken = isUnknown && readPlaybackSecrets().length > 0
      throw needsToken ? new MillraceError('PLAYBACK_TOKEN_MISSING') : error
    }
    return { get: (request) => origin.get(request).catch(refuse) }
  }

  #originOf(streamId: string): StreamOrigin {
    const known = this.#origins.get(streamId)
    if (known !== undefined) return known
    const { client, owners, clock = machineClock } = this.#options
    const origin = new StreamOrigin({ streamId, client, owners, fences: this.#fences, clock })
    this.#origins.set(streamId, origin)
    return origin
  }

  /** Stops following. The client stays open. */
  close(): void {
    clearInterval(this.#ticker)
    for (const source of this.#sources) source.close()
  }
}

/** Token of the edge itself, the same for all requests of an hour, so that the origin verifies it once. */
function signToken(streamId: string, secrets: readonly string[], nowMs: number): string {
  const renewals = Math.ceil((nowMs / 1000 + MIN_TOKEN_SEC) / TOKEN_RENEWAL_SEC)
  const expiresAt = new Date(renewals * TOKEN_RENEWAL_SEC * 1000)
  return signPlaybackToken({ streamId, secret: secrets[0] ?? '', expiresAt })
}
