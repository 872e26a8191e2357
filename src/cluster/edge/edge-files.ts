/**
 * Files of one stream at an edge, as the HTTP layer reads them: playlists that it follows, and media that it fetches.
 *
 * @module
 */
import { isPlaylistUri } from '../../hls/file-names.ts'
import type { Clock } from '../../timing/clock.ts'
import type {
  Availability,
  DeliveryDirectives,
  FileLoan,
  StreamFile,
} from '../../playback/playback-source.ts'
import type { MillraceError } from '../../errors.ts'
import { FetchedFiles } from '../../hls/store/fetched-files.ts'
import { MAX_WAITERS, type StreamFiles } from '../../hls/store/file-store.ts'
import type { NewestMedia } from '../../service/viewers/edges.ts'
import { Waiters } from '../../hls/store/waiters.ts'
import { FollowedPlaylist } from './followed-playlist.ts'
import { fileOf, originRefusal } from './origin-file.ts'
import type { AskOwner } from './stream-origin.ts'
import type { TokenBucket } from '../../timing/token-bucket.ts'

interface EdgeFilesOptions {
  readonly ask: AskOwner
  readonly media: FetchedFiles
  /** Name of the stream in `media`, with a slash at the end. */
  readonly name: string
  /** Limits the requests at the origin for files that may not exist. */
  readonly unlisted: TokenBucket
  readonly clock: Pick<Clock, 'nowUs'>
  /** Keeps the files while they are read; called before each request at the origin. @returns false for too many streams */
  readonly keep: () => boolean
}

/** Maximum number of playlists of a stream: those of its renditions. Names that do not exist leave with the next new one. */
const MAX_PLAYLISTS = 100

/** Maximum number of requests for media, of all streams, that the origin has not answered. */
const MAX_FETCHES = 1000

interface Fetch {
  /** File whose readers wait for it. */
  readonly name: string
  /** Whether nobody waited at the latest `tick`. */
  isLeft: boolean
}

export class EdgeFiles implements StreamFiles {
  readonly #options: EdgeFilesOptions
  readonly #playlists = new Map<string, FollowedPlaylist>()
  readonly #waiters = new Waiters(MAX_WAITERS)
  /** Requests for media, by the key in `media`. */
  readonly #fetches = new Map<string, Fetch>()
  #usedUs: number

  constructor(options: EdgeFilesOptions) {
    this.#options = options
    this.#usedUs = options.clock.nowUs()
  }

  /** Time of the latest request. */
  get usedUs(): number {
    return this.#usedUs
  }

  /** Media playlist with the latest end; undefined while there is none. */
  get newest(): NewestMedia | undefined {
    const known = [...this.#playlists].flatMap(([playlist, { endMs }]) =>
      endMs === undefined ? [] : [{ playlist, endMs }],
    )
    return newestOf(known)
  }

  /** Whether a request for the file needs none at the origin for a name that may not exist. */
  isKnown(name: string): boolean {
    if (isPlaylistUri(name)) return this.#playlist(name) !== undefined
    const { media } = this.#options
    const key = this.#options.name + name
    return media.get(key) !== undefined || media.isFetching(key) || this.#isListed(name)
  }

  availability(name: string, directives: DeliveryDirectives = {}): Availability {
    if (isPlaylistUri(name)) {
      const availability = this.#playlist(name)?.availability(directives) ?? 'future'
      if (availability !== 'current') return availability
    }
    const fetched = this.#fetchedName(name, directives)
    if (fetched === undefined) return 'current'
    const { media } = this.#options
    const key = this.#options.name + fetched
    if (media.get(key) !== undefined) return 'current'
    return media.refusal(key) === undefined ? 'future' : 'unknown'
  }

  get(name: string, directives: DeliveryDirectives = {}): StreamFile | undefined {
    this.#usedUs = this.#options.clock.nowUs()
    const fetched = this.#fetchedName(name, directives)
    if (fetched === undefined) return this.#playlist(name)?.file
    if (!isPlaylistUri(name)) for (const each of this.#playlists.values()) each.noteRead(name)
    // A delta update may have left with its version: the whole playlist will do (RFC 8216bis 6.2.5.1).
    return this.#options.media.get(this.#options.name + fetched) ?? this.#playlist(name)?.file
  }

  /** Like `get` without directives, but not counted as a read, which would keep the stream. */
  peek(name: string): StreamFile | undefined {
    if (isPlaylistUri(name)) return this.#playlist(name)?.file
    return this.#options.media.peek(this.#options.name + name)
  }

  lend(name: string, directives?: DeliveryDirectives): FileLoan | undefined {
    const file = this.get(name, directives)
    return file && { file, end: undefined }
  }

  /** Why the origin does not have a file; undefined if that is unknown. */
  refusal(name: string): MillraceError | undefined {
    const fetched = this.#fetchedName(name, {})
    if (fetched === undefined) return this.#playlist(name)?.refusal
    return this.#options.media.refusal(this.#options.name + fetched)
  }

  /** Fetches the file, or begins to follow the playlist, for the first who waits. */
  wait(name: string, directives: DeliveryDirectives, onOver: () => void): (() => void) | undefined {
    if (!this.#demand(name, directives)) return undefined
    const isOver = () => this.availability(name, directives) !== 'future'
    return this.#waiters.wait(name, isOver, onOver)
  }

  /**
   * Cancels requests for media for which no reader, and no version of a playlist, has waited since the last call; due about
   * once a second.
   */
  tick(): void {
    const playlists = [...this.#playlists.values()]
    for (const [key, fetch] of this.#fetches) {
      const { name } = fetch
      const isLeft = !this.#waiters.has(name) && !playlists.some((each) => each.awaits(name))
      if (isLeft && fetch.isLeft) this.#cancel(key)
      else fetch.isLeft = isLeft
    }
  }

  /** Ends all requests. */
  close(): void {
    for (const playlist of this.#playlists.values()) playlist.stop()
    for (const key of this.#fetches.keys()) this.#cancel(key)
  }

  #cancel(key: string): void {
    this.#fetches.delete(key)
    this.#options.media.cancel(key)
  }

  /** @returns whether the file is on its way */
  #demand(name: string, directives: DeliveryDirectives): boolean {
    const playlist = this.#playlist(name)
    if (playlist !== undefined && directives.skip === true) playlist.hasDeltaReaders = true
    const fetched = this.#fetchedName(name, directives)
    // The delta update to fetch is that of the version that ends the wait.
    const isEarly = playlist?.availability(directives) === 'future'
    return fetched === undefined || isEarly ? this.#follow(name) : this.#fetch(name, fetched)
  }

  #fetch(name: string, fetched: string): boolean {
    const isFetching = this.#options.media.isFetching(this.#options.name + fetched)
    if (!isFetching && !this.#isListed(name) && !this.#mayAsk()) return false
    if (!this.#options.keep()) return false
    return this.#fetchListed(name, fetched) !== undefined
  }

  /**
   * @param name  see `Fetch`
   * @returns settles with the request; undefined if the origin has too many to answer
   */
  #fetchListed(name: string, fetched: string): Promise<void> | undefined {
    const { media, ask } = this.#options
    const key = this.#options.name + fetched
    const done = media.fetch(key, async (signal) => fileOf(await ask(fetched, { signal })))
    if (done === undefined || this.#fetches.has(key)) return done
    const fetch: Fetch = { name, isLeft: false }
    this.#fetches.set(key, fetch)
    void this.#settle(key, fetch, done)
    return done
  }

  /** @returns whether the parts have come */
  async #fetchParts(parts: readonly string[]): Promise<boolean> {
    const { media, name } = this.#options
    const isHere = (part: string) => media.get(name + part) !== undefined
    const missing = parts.filter((part) => !isHere(part))
    await Promise.all(missing.map(async (part) => this.#fetchListed(part, part)))
    return missing.every(isHere)
  }

  async #settle(key: string, fetch: Fetch, done: Promise<void>): Promise<void> {
    await done
    if (this.#fetches.get(key) === fetch) this.#fetches.delete(key)
    this.#waiters.wake(fetch.name)
  }

  /** @returns whether the playlist is followed */
  #follow(name: string): boolean {
    if (this.#playlist(name) !== undefined) return true
    for (const [each, { isOver }] of this.#playlists) if (isOver) this.#playlists.delete(each)
    if (this.#playlists.size >= MAX_PLAYLISTS || !this.#mayAsk()) return false
    if (!this.#options.keep()) return false
    const { ask, clock } = this.#options
    const followed = new FollowedPlaylist({
      clock,
      ask: (options) => ask(name, options),
      onChange: () => this.#release(name),
      fetchParts: (parts) => this.#fetchParts(parts),
    })
    this.#playlists.set(name, followed)
    return true
  }

  /** Wakes the readers of a playlist that has changed; those of its delta update when that is there. */
  #release(name: string): void {
    const hasReaders = this.#playlists.get(name)?.hasDeltaReaders === true
    const delta = hasReaders ? this.#fetchedName(name, { skip: true }) : undefined
    if (delta !== undefined) this.#fetch(name, delta)
    this.#waiters.wake(name)
  }

  #mayAsk(): boolean {
    return this.#options.unlisted.take(this.#options.clock.nowUs())
  }

  #isListed(name: string): boolean {
    const playlists = [...this.#playlists.values()]
    return isPlaylistUri(name) || playlists.some((each) => each.mentions(name))
  }

  #playlist(name: string): FollowedPlaylist | undefined {
    const playlist = this.#playlists.get(name)
    if (playlist?.isOver !== true) return playlist
    this.#playlists.delete(name)
    return undefined
  }

  /**
   * Name of a file that is fetched, within the stream; undefined for one that is followed. A delta update (RFC 8216bis
   * 6.2.5.1) is fetched for the version of the playlist that the edge has, and kept under a name of its own.
   */
  #fetchedName(name: string, { skip }: DeliveryDirectives): string | undefined {
    if (!isPlaylistUri(name)) return name
    const { skippable, file } = (skip === true ? this.#playlist(name) : undefined) ?? {}
    if (file === undefined || !skippable) return undefined
    return `${name}?_HLS_skip=YES&v=${encodeURIComponent(file.version)}`
  }
}

/**
 * Media of all streams of an edge, each file kept for its lifetime.
 *
 * @param maxBytes  maximum size of the files
 */
export function createMediaCache(maxBytes: number): FetchedFiles {
  return new FetchedFiles({
    maxBytes,
    maxFetches: MAX_FETCHES,
    lifetimeMs: ({ maxAgeSec }) => maxAgeSec * 1000,
    refusalOf: originRefusal,
  })
}

/** Playlist with the latest end; undefined without any. */
export function newestOf(media: readonly NewestMedia[]): NewestMedia | undefined {
  return media.toSorted((a, b) => b.endMs - a.endMs)[0]
}
