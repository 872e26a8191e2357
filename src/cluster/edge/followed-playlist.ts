/**
 * Copy of a playlist that an edge keeps current, by one request after the other at the origin, which answers with the next
 * version. So the load of the origin does not depend on the number of viewers, and the edge answers them from memory.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../timing/clock.ts'
import type {
  Availability,
  DeliveryDirectives,
  StreamFile,
} from '../../playback/playback-source.ts'
import type { MillraceError } from '../../errors.ts'
import { availabilityAt } from '../../hls/store/delivery-directives.ts'
import { FAILURE_MS } from '../../hls/store/fetched-files.ts'
import { withTimeout } from '../../timing/time-limit.ts'
import { endOfMedia } from '../../hls/playlist/playlist-format.ts'
import { namesIn, originRefusal, playlistOf, refusalOf, type PlaylistFacts } from './origin-file.ts'
import type { NodeFileRequest } from './node-client.ts'
import type { OwnerResponse } from './stream-origin.ts'

/** Time for which the copy answers while the origin is away, in target durations. */
const MAX_STALE_TARGETS = 3

/** Time for which a request for a part shows that there are readers of parts, in target durations. */
const READER_TARGETS = 3

/** Minimum time between two requests of which the second brings nothing new: an ended playlist does not make it wait. */
const QUIET_MS = 1000

interface FollowedPlaylistOptions {
  /** Asks the owner of the stream, see `AskOwner`. */
  readonly ask: (options: Pick<NodeFileRequest, 'etag' | 'signal'>) => Promise<OwnerResponse>
  readonly clock: Pick<Clock, 'nowUs'>
  /** Called after each change of `availability`. */
  readonly onChange: () => void
  /**
   * Fetches parts and init segments that the next version is the first to name, while readers of parts are there.
   *
   * @returns whether all are there
   */
  readonly fetchParts?: (names: readonly string[]) => Promise<boolean>
}

/** Follows from its creation until `stop`, or until the origin refuses. */
export class FollowedPlaylist {
  /** Whether delta updates of later versions are to be fetched as well. */
  hasDeltaReaders = false
  readonly #options: FollowedPlaylistOptions
  readonly #stopping = new AbortController()
  #etag: string | undefined
  /** Fence under which the origin made the current version. */
  #fence = 0
  #file: StreamFile | undefined
  #facts: PlaylistFacts | undefined
  /** Files that the current version names, once somebody asks: clients who guess names do not cost a search each. */
  #names: ReadonlySet<string> | undefined
  /** Reason for which the origin has no playlist, or does not answer. */
  #refusal: MillraceError | undefined
  #contactMs = -Infinity
  #partReadMs = -Infinity
  #failedMs = -Infinity
  /** Files without which the next version is not served yet. */
  #awaited: readonly string[] = []

  constructor(options: FollowedPlaylistOptions) {
    this.#options = options
    void this.#follow(this.#stopping.signal)
  }

  /** Whether nothing follows any more: create another copy to ask again. */
  get isOver(): boolean {
    return this.#stopping.signal.aborted && this.#nowMs - this.#failedMs >= FAILURE_MS
  }

  /** Current version; undefined before the first, and when the origin was away for too long. */
  get file(): StreamFile | undefined {
    if (this.#facts === undefined) return undefined
    const maxStaleMs = MAX_STALE_TARGETS * this.#facts.targetDurationSec * 1000
    const isStale = this.#refusal !== undefined && this.#nowMs - this.#contactMs > maxStaleMs
    return isStale ? undefined : this.#file
  }

  get refusal(): MillraceError | undefined {
    return this.#refusal
  }

  /** Time at the end of its media, in milliseconds since 1970; undefined for a multivariant playlist. */
  get endMs(): number | undefined {
    return this.file && endOfMedia(this.file.chunks.join(''))
  }

  get skippable(): boolean {
    return this.#facts?.skippable === true
  }

  /** See `FileStore.availability`. */
  availability(directives: DeliveryDirectives): Availability {
    const { file } = this
    if (file === undefined) return this.#refusal === undefined ? 'future' : 'unknown'
    const { ended, position } = this.#facts!
    if (ended) return 'current'
    if (directives.otherThan === file.version) return 'future'
    return position === undefined ? 'current' : availabilityAt(position, directives)
  }

  /** Whether the current version names a file. */
  mentions(name: string): boolean {
    if (this.#file === undefined) return false
    this.#names ??= namesIn(this.#file.chunks.join(''))
    return this.#names.has(name)
  }

  /** Notes that a file was read. */
  noteRead(name: string): void {
    const { parts, position } = this.#facts ?? {}
    if (parts?.has(name) === true || position?.hint === name) this.#partReadMs = this.#nowMs
  }

  /** Whether the next version waits for a file. */
  awaits(name: string): boolean {
    return this.#awaited.includes(name)
  }

  stop(): void {
    this.#stopping.abort()
  }

  get #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const askedMs = this.#nowMs
      const isNew = await this.#readNext(signal).catch((error: unknown) =>
        this.#refuse(originRefusal(error)),
      )
      if (signal.aborted && this.#refusal === undefined) return
      this.#options.onChange()
      const pauseMs = this.#refusal === undefined ? QUIET_MS : FAILURE_MS
      const isEarly = !isNew && this.#nowMs - askedMs < pauseMs
      if (isEarly) await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  /**
   * Asks for the next version, and fetches its new parts before it is served: no playlist names a part that dies with its
   * owner. Of parts that do not come, the owner is asked again, who may be another one now.
   *
   * @returns whether there is a new version
   */
  async #readNext(signal: AbortSignal): Promise<boolean> {
    const { ask } = this.#options
    // After a failure the response shall not wait for the next version: the current one may have become stale.
    const etag = this.#refusal === undefined ? this.#etag : undefined
    const response = await ask({ etag, signal })
    const version = response.status === 200 ? playlistOf(response) : undefined
    if (version === undefined || (await this.#hasParts(version.facts))) {
      return this.#take(response, version, etag)
    }
    const again = await ask({ signal })
    return this.#take(again, again.status === 200 ? playlistOf(again) : undefined, etag)
  }

  /** Fetches the parts, and the init segments for them, that a version is the first to name, if somebody reads parts. */
  async #hasParts({ parts, maps }: PlaylistFacts): Promise<boolean> {
    const { fetchParts } = this.#options
    const known = this.#facts
    if (known === undefined || fetchParts === undefined) return true
    const readersMs = READER_TARGETS * known.targetDurationSec * 1000
    if (this.#nowMs - this.#partReadMs > readersMs) return true
    const isNew = (name: string) => !known.parts.has(name) && !known.maps.has(name)
    this.#awaited = [...maps, ...parts].filter(isNew)
    const fetched = fetchParts(this.#awaited)
    // A playlist in hand is worth more than a part that hangs.
    const hasParts = await withTimeout(fetched, known.targetDurationSec * 1000).catch(() => true)
    this.#awaited = []
    return hasParts
  }

  /**
   * @param version  of a response with status 200
   * @param etag  version that was not to come again; undefined: any was wanted
   * @returns whether the response brings a new version
   */
  #take(
    response: OwnerResponse,
    version: ReturnType<typeof playlistOf> | undefined,
    etag: string | undefined,
  ): boolean {
    if (response.status === 304) {
      this.#contactMs = this.#nowMs
      this.#refusal = undefined
      return false
    }
    // A new owner may have yet to learn what the stream had.
    const isNewOwner = this.#file !== undefined && response.fence > this.#fence
    if (version === undefined) {
      const refusal = refusalOf(response)
      return isNewOwner ? this.#fail(refusal) : this.#refuse(refusal, response.status)
    }
    this.#file = version.file
    this.#facts = version.facts
    this.#names = undefined
    this.#fence = response.fence
    this.#etag = response.headers['etag']
    this.#contactMs = this.#nowMs
    this.#refusal = undefined
    // Neither an origin without ETags nor one that ignores those of requests makes the next request wait.
    return this.#etag !== undefined && this.#etag !== etag
  }

  /** An overloaded origin, or one that restarts, may have the playlist again; any other refusal is the end. */
  #refuse(refusal: MillraceError, status = refusal.httpStatus): false {
    if (status < 500) {
      this.#file = undefined
      this.#facts = undefined
      this.stop()
    }
    return this.#fail(refusal)
  }

  #fail(refusal: MillraceError): false {
    this.#refusal = refusal
    this.#failedMs = this.#nowMs
    return false
  }
}
