/**
 * Files of one stream by name, and the readers that wait for them: the interface between packaging and delivery.
 *
 * Playlists are stored here; a version is rendered when it is first read. Segments are stored in the cache that all
 * streams share, which may refuse or release them. The parts of a segment are available while it is.
 *
 * @module
 */
import {
  MULTIVARIANT_URI,
  playlistUri,
  PREVIEW_URI,
  TS_MULTIVARIANT_URI,
  type Format,
} from '../file-names.ts'
import type { MillraceError } from '../../errors.ts'
import {
  availabilityAt,
  type Availability,
  type DeliveryDirectives,
  type PlaylistPosition,
} from './delivery-directives.ts'
import type { SegmentOwner, ShortageCounters } from './cache-account.ts'
import { PartFiles } from './part-files.ts'
import { PreviewFile, type KeyFrame } from './preview-file.ts'
import { RenderedFile } from './rendered-file.ts'
import type { SegmentCache } from './segment-cache.ts'
import type { StreamFile } from './stream-file.ts'
import { Waiters } from './waiters.ts'

/** Options of a file store. */
export interface FileStoreOptions {
  readonly cache: SegmentCache
  /** Owner of the segments in the cache. */
  readonly owner: SegmentOwner
  /** Formats of the segments; default: transport stream. */
  readonly formats?: readonly Format[] | undefined
  /** Maximum number of waiting readers; default 10,000. */
  readonly maxWaiters?: number
}

/** Store as its readers see it. */
export type StreamFiles = Pick<FileStore, 'availability' | 'get' | 'lend' | 'wait'>

/** File lent to a reader for the duration of a reply. */
export interface FileLoan {
  readonly file: StreamFile
  /** Ends the loan, after which the memory of the chunks may be reused; undefined for memory that is never reused. */
  readonly end: (() => void) | undefined
}

/** Media that has left the cache, and is kept elsewhere. */
export interface OlderMedia {
  /** @returns undefined for a file that has to be fetched first, and for an unknown name */
  get(name: string): StreamFile | undefined
  /** Whether it can be fetched, as far as is known. */
  has(name: string): boolean
  /** @returns settles when the file is in `get`, or has a refusal; undefined if too many files are being fetched */
  fetch(name: string): Promise<void> | undefined
  /** Why a file could not be fetched, for a short time. */
  refusal(name: string): MillraceError | undefined
}

interface Playlist {
  readonly full: RenderedFile
  readonly delta: RenderedFile
  readonly position: PlaylistPosition | undefined
  readonly skippable: boolean
}

/** Maximum number of readers that wait for files of a stream. */
export const MAX_WAITERS = 10_000

/**
 * Inputs of the writer: `setOlder`, `putInit`, `put`, `putPart`, `setPreview`, `replace`, `remove`, `removeInit`, `reserve`;
 * `markIdle` when media stops, `end` after the last file, `discard` to drop all files. Inputs of readers: `lend` and `wait`.
 * All else are queries. Times are in milliseconds of the monotonic clock of `SegmentCache`.
 */
export class FileStore {
  readonly #cache: SegmentCache
  readonly #owner: SegmentOwner
  readonly #playlists = new Map<string, Playlist>()
  readonly #parts: PartFiles
  readonly #preview: PreviewFile
  /** Init segments: about 1 KB each, for as long as a segment needs them. */
  readonly #inits = new Map<string, StreamFile>()
  /** Playlists that the stream will have. */
  readonly #firstPlaylists: ReadonlySet<string>
  /** URIs of the parts that the playlists hint. */
  readonly #hints = new Set<string>()
  readonly #waiters: Waiters
  #older: OlderMedia | undefined
  #ended = false

  constructor({ cache, owner, formats = ['ts'], maxWaiters }: FileStoreOptions) {
    const ofTs = formats.includes('ts') ? [playlistUri('main'), TS_MULTIVARIANT_URI] : []
    this.#firstPlaylists = new Set([MULTIVARIANT_URI, ...ofTs])
    this.#cache = cache
    this.#owner = owner
    const cached = (segmentUri: string) => cache.get(owner, segmentUri)
    this.#parts = new PartFiles(cached)
    this.#preview = new PreviewFile(cached)
    this.#waiters = new Waiters(maxWaiters ?? MAX_WAITERS)
  }

  /** Counters of segments lost to a shortage of memory. */
  get shortage(): ShortageCounters {
    return this.#cache.shortageOf(this.#owner)
  }

  /** Number of waiting readers. */
  get waiters(): number {
    return this.#waiters.count
  }

  /** Adds media that is asked for what is not in the cache. */
  setOlder(older: OlderMedia): void {
    this.#older = older
  }

  /** Adds an init segment, before the segments that need it. */
  putInit(name: string, file: StreamFile): void {
    this.#inits.set(name, file)
  }

  /** Removes an init segment that no segment needs any more. */
  removeInit(name: string): void {
    this.#inits.delete(name)
  }

  /**
   * Adds a segment, which never changes.
   *
   * @param name  unique in the process: it contains the epoch of the stream
   * @returns false if the cache has no room for it
   */
  put(name: string, file: StreamFile, nowMs: number): boolean {
    const partsBytes = this.#parts.sizeOf(name)
    const hasRoom = this.#cache.put(this.#owner, name, { file, partsBytes, nowMs })
    this.#parts.complete(name, hasRoom ? file : undefined)
    return hasRoom
  }

  /**
   * Adds a part of a segment that is `put` later, with the same chunks. The part is available until the segment is
   * refused or released.
   *
   * @param name  unique in the process: it contains the epoch of the stream
   */
  putPart(name: string, file: StreamFile, segmentName: string): void {
    this.#parts.add(name, file, segmentName)
  }

  /** Adds the key frame at the start of a segment as `preview.ts`, in place of an earlier one. */
  setPreview(keyFrame: KeyFrame): void {
    this.#preview.set(keyFrame)
  }

  /**
   * Adds a playlist, or its next version. A version with the bytes and the cache lifetime of the last version that was
   * read is not a new one: it has the same ETag.
   *
   * @param render  called when this version, or its delta update, is first read; never, if the next version replaces it
   *   before
   * @param position  newest media of a low-latency playlist, for readers that wait
   * @param skippable  whether the playlist has a delta update
   */
  replace(
    name: string,
    render: (delta: boolean) => StreamFile,
    position?: PlaylistPosition,
    skippable = position?.skippable === true,
  ): void {
    const known = this.#playlists.get(name)
    this.#playlists.set(name, {
      full: new RenderedFile(() => render(false), known?.full),
      delta: new RenderedFile(() => render(true), known?.delta),
      position,
      skippable,
    })
    const hint = known?.position?.hint
    if (hint !== undefined) this.#hints.delete(hint)
    if (position?.hint !== undefined) this.#hints.add(position.hint)
    this.#waiters.wake(name)
    if (hint !== undefined) this.#waiters.wake(hint)
  }

  /** Removes a segment at `untilMs`, or earlier if memory is short. */
  remove(name: string, untilMs: number): void {
    this.#cache.retain(this.#owner, name, untilMs)
  }

  /** Sets the size of the stream's media that is in no segment yet; it counts like listed segments. */
  reserve(queuedBytes: number): void {
    this.#cache.reserve(this.#owner, queuedBytes)
  }

  /** Marks the stream as idle until the next `put`: live streams may take its memory. */
  markIdle(): void {
    this.reserve(0)
    this.#cache.markIdle(this.#owner)
  }

  /**
   * Tells whether a file, or a playlist with the media that the directives name, can be read now or waited for. After the
   * end of the stream no directive applies, and to playlists without low latency only `otherThan`.
   */
  availability(name: string, directives: DeliveryDirectives = {}): Availability {
    const playlist = this.#playlists.get(name)
    if (playlist !== undefined) {
      const { position, full } = playlist
      if (this.#ended) return 'current'
      const { otherThan } = directives
      if (otherThan !== undefined && full.isVersion(otherThan)) return 'future'
      return position === undefined ? 'current' : availabilityAt(position, directives)
    }
    if (this.#media(name) !== undefined) return 'current'
    const isAwaited = this.#hints.has(name) || this.#firstPlaylists.has(name)
    if (isAwaited && !this.#ended) return 'future'
    const older = this.#older
    if (older?.get(name) !== undefined) return 'current'
    return older?.has(name) === true && older.refusal(name) === undefined ? 'future' : 'unknown'
  }

  /**
   * Current version of a file; undefined before it exists and after its removal, and for older media. Its memory is never
   * reused.
   *
   * @param directives  `skip` selects the delta update of a playlist that has one
   */
  get(name: string, directives: DeliveryDirectives = {}): StreamFile | undefined {
    const playlist = this.#playlist(name, directives)
    if (playlist !== undefined) return playlist
    const media = this.#media(name)
    if (media !== undefined) this.#cache.slabs.pin(media.chunks)
    return media
  }

  /** Current version of a file as `get` selects it, for a limited time: after the loan its memory may be reused. */
  lend(name: string, directives: DeliveryDirectives = {}): FileLoan | undefined {
    const playlist = this.#playlist(name, directives)
    if (playlist !== undefined) return { file: playlist, end: undefined }
    const file = this.#media(name) ?? this.#older?.get(name)
    if (file === undefined) return undefined
    const { slabs } = this.#cache
    slabs.hold(file.chunks)
    let ended = false
    const end = () => {
      if (!ended) slabs.release(file.chunks)
      ended = true
    }
    return { file, end }
  }

  /**
   * Waits while the file is `future`.
   *
   * @param onOver  called once, during the change that ends the wait: other files of the same release may change after
   *   it, in the same synchronous call
   * @returns forgets the reader; undefined if it does not wait: the file is not `future`, or too many readers wait
   */
  wait(name: string, directives: DeliveryDirectives, onOver: () => void): (() => void) | undefined {
    if (!this.#demand(name)) return undefined
    const isOver = () => this.availability(name, directives) !== 'future'
    return this.#waiters.wait(name, isOver, onOver)
  }

  /** Why older media could not be fetched, for a short time. */
  refusal(name: string): MillraceError | undefined {
    return this.#older?.refusal(name)
  }

  /** Ends all waits, present and future, and marks the stream as idle. */
  end(): void {
    this.#ended = true
    this.markIdle()
    this.#waiters.wakeAll()
  }

  /** Drops all files and ends all waits, present and future. */
  discard(): void {
    this.#playlists.clear()
    this.#inits.clear()
    this.#hints.clear()
    this.#older = undefined
    this.#parts.discard()
    this.#preview.set(undefined)
    this.#cache.discard(this.#owner)
    this.end()
  }

  /** Fetches older media for the first who waits. @returns whether the file is on its way */
  #demand(name: string): boolean {
    const isOwn =
      this.#playlists.has(name) || this.#firstPlaylists.has(name) || this.#hints.has(name)
    if (isOwn || this.#older?.has(name) !== true || this.#waiters.has(name)) return true
    const done = this.#older.fetch(name)
    void done?.then(() => this.#waiters.wake(name))
    return done !== undefined
  }

  #playlist(name: string, { skip = false }: DeliveryDirectives): StreamFile | undefined {
    const playlist = this.#playlists.get(name)
    if (playlist === undefined) return undefined
    return skip && playlist.skippable ? playlist.delta.file : playlist.full.file
  }

  /** Segment, part, init segment or preview. */
  #media(name: string): StreamFile | undefined {
    if (name === PREVIEW_URI) return this.#preview.get()
    return this.#cache.get(this.#owner, name) ?? this.#parts.get(name) ?? this.#inits.get(name)
  }
}
