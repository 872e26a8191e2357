/**
 * Edge: streams of other nodes as sources of playback, without and with playback tokens.
 *
 *     viewer ──► playback/routes ──► playback/handler ──► edge-streams ──► edge-files: has the file, or the viewer waits
 *     first to wait ──► followed-playlist, for a playlist: one request after the other, until 10 s without a reader
 *                   └─► hls/store/fetched-files, for media: one request
 *     request ──► stream-origin: which node? registry-owners, or `EDGE_OF` ──► node-client
 *     at the owner ──► playback/routes: in a cluster its fence, or 421 ──► playback/handler: the file, or a wait for the next version
 *     response ──► stream-origin: not of an earlier owner ──► origin-file: bytes and facts
 *       ──► followed-playlist: fetches the parts that are new, if somebody reads parts
 *       ──► edge-files: wakes who waits ──► playback/file-response ──► viewer
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { signPlaybackToken } from '../../auth/playback-token.ts'
import { machineClock, type Clock } from '../../timing/clock.ts'
import type { PlaybackSource } from '../../playback/playback-source.ts'
import { MillraceError } from '../../errors.ts'
import type { IsKnown } from '../../playback/routes.ts'
import { NODE_TOKEN } from '../../playback/access.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'
import { Audience } from './audience.ts'
import type { NewestMedia } from '../../service/viewers/edges.ts'
import { createMediaCache, newestOf } from './edge-files.ts'
import { EdgeStreams } from './edge-streams.ts'
import type { NodeClient } from './node-client.ts'
import { ServedFences, StreamOrigin, type OwnerLookup } from './stream-origin.ts'

interface EdgeOptions {
  readonly client: NodeClient
  readonly owners: OwnerLookup
  /** Maximum size of media in memory. */
  readonly maxBytes: number
  /** Reads `PLAYBACK_SECRET`, newest first; empty: without. */
  readonly readPlaybackSecrets?: () => readonly string[]
  readonly clock?: Clock
  /** Interval at which the owner of a silent node's stream is looked up; default: 2000. */
  readonly silentMs?: number | undefined
}

/** Interval at which an edge signs new tokens for its origin, and their minimum lifetime. */
const TOKEN_RENEWAL_SEC = 60 * 60
const MIN_TOKEN_SEC = 3 * 60 * 60

/**
 * Requests at the origin for files that no followed playlist lists, so that clients who guess names do not load it: further
 * ones get 503. The first request for a playlist is one. More than one client may have, see `playback/routes.ts`.
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
    const shared = { clock, audience: this.audience, media: createMediaCache(maxBytes) }
    const token = (id: string) =>
      client.signs ? NODE_TOKEN : signToken(id, readPlaybackSecrets(), clock.wallMs())
    /** Viewers without a token do not learn which ids exist: see `accessOf`. */
    const refuseUnknown = (error: unknown): never => {
      const isUnknown = error instanceof MillraceError && error.code === 'STREAM_NOT_FOUND'
      const needsToken = isUnknown && readPlaybackSecrets().length > 0
      throw needsToken ? new MillraceError('PLAYBACK_TOKEN_MISSING') : error
    }
    const open = new EdgeStreams({
      ...shared,
      name: 'open',
      unlisted: bucket(),
      ask: async (id, file, options) => {
        const request = { ...options, path: `/video/${id}/${file}` }
        return this.#originOf(id).get(request).catch(refuseUnknown)
      },
    })
    const guarded = new EdgeStreams({
      ...shared,
      name: 'protected',
      unlisted: bucket(),
      ask: async (id, file, options) =>
        this.#originOf(id).get({ ...options, path: `/t/${token(id)}/video/${id}/${file}` }),
    })
    this.#unlisted = bucket()
    this.open = open
    this.protected = guarded
    this.#sources = [open, guarded]
    this.#ticker = setInterval(() => this.#sources.forEach((each) => each.tick()), TICK_MS)
  }

  /** Files in memory, from both sources; nothing is requested, and no read counts. */
  get memory(): PlaybackSource {
    return {
      findStream: (streamId) => {
        const streams = this.#sources.flatMap((each) => each.inUse(streamId) ?? [])
        const get = (name: string) => streams.map(({ files }) => files.peek(name)).find(Boolean)
        return streams[0] && { status: 'STREAMING', live: true, files: { get } }
      },
    }
  }

  /** See `IsKnown`. */
  readonly isKnown: IsKnown = (streamId, name) =>
    this.#sources.some((each) => each.inUse(streamId)?.files.isKnown(name) === true)

  /** Media playlist of a stream with the latest end; undefined for a stream that nobody reads. */
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

  #originOf(streamId: string): StreamOrigin {
    const known = this.#origins.get(streamId)
    if (known !== undefined) return known
    const { client, owners, clock = machineClock, silentMs } = this.#options
    const fences = this.#fences
    const origin = new StreamOrigin({ streamId, client, owners, fences, clock, silentMs })
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
