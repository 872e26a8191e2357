/**
 * Files of one stream by name, and the readers that wait for them: the interface between packaging and delivery.
 *
 * Playlists are stored here; a version is rendered when it is first read. Segments are stored in the cache that all
 * streams share, which may refuse or release them.
 *
 * @module
 */
import type { SegmentOwner, ShortageCounters } from './holding.ts'
import type { SegmentCache } from './segment-cache.ts'
import type { StreamFile } from './stream-file.ts'

export interface FileStoreOptions {
  readonly cache: SegmentCache
  /** Owner of the segments in the cache. */
  readonly owner: SegmentOwner
  /** Maximum number of waiting readers; default 10,000. */
  readonly maxWaiters?: number
}

export interface WaitOptions {
  /** Version that the reader has; undefined for none. */
  readonly version?: string | undefined
  /** Ends the wait. */
  readonly signal: AbortSignal
}

/** Store as its readers see it. */
export type StreamFiles = Pick<FileStore, 'get' | 'lend' | 'wait'>

/** File lent to a reader for the duration of a reply. */
export interface FileLoan {
  readonly file: StreamFile
  /** Ends the loan, after which the memory of the chunks may be reused; undefined for memory that is never reused. */
  readonly end: (() => void) | undefined
}

interface Playlist {
  readonly render: () => StreamFile
  file?: StreamFile
  /** Latest earlier version that was read. */
  previous?: StreamFile | undefined
}

const DEFAULT_MAX_WAITERS = 10_000

/**
 * Inputs of the writer: `put`, `replace`, `remove`, `reserve`; `rest` when media stops, `end` after the last file,
 * `discard` to drop all files. Queries of readers: `get`, `lend` and `wait`. Times are in milliseconds of the monotonic
 * clock of `SegmentCache`.
 */
export class FileStore {
  readonly #cache: SegmentCache
  readonly #owner: SegmentOwner
  readonly #maxWaiters: number
  readonly #playlists = new Map<string, Playlist>()
  /** Callbacks of waiting readers, by file name. */
  readonly #wakers = new Map<string, Set<() => void>>()
  #waiters = 0
  #ended = false

  constructor({ cache, owner, maxWaiters = DEFAULT_MAX_WAITERS }: FileStoreOptions) {
    this.#cache = cache
    this.#owner = owner
    this.#maxWaiters = maxWaiters
  }

  /** Counters of segments lost to a shortage of memory. */
  get shortage(): ShortageCounters {
    return this.#cache.shortageOf(this.#owner)
  }

  /**
   * Adds a segment, which never changes.
   *
   * @param name  unique in the process: it contains the epoch of the stream
   * @returns false if the cache has no room for it
   */
  put(name: string, file: StreamFile, nowMs: number): boolean {
    const hasRoom = this.#cache.put(this.#owner, name, { file, nowMs })
    if (hasRoom) this.#wake(name)
    return hasRoom
  }

  /**
   * Adds a playlist, or its next version. A version with the bytes and the cache lifetime of the last version that was
   * read is not a new one: it has the same ETag.
   *
   * @param render  called when this version is first read; never, if the next version replaces it before
   */
  replace(name: string, render: () => StreamFile): void {
    const known = this.#playlists.get(name)
    this.#playlists.set(name, { render, previous: known?.file ?? known?.previous })
    this.#wake(name)
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
  rest(): void {
    this.reserve(0)
    this.#cache.rest(this.#owner)
  }

  /** Current version of a file; undefined before it exists and after its removal. Its memory is never reused. */
  get(name: string): StreamFile | undefined {
    const playlist = this.#playlist(name)
    if (playlist !== undefined) return playlist
    const segment = this.#cache.get(this.#owner, name)
    if (segment !== undefined) this.#cache.slabs.pin(segment.chunks)
    return segment
  }

  /** Current version of a file, for a limited time: after the loan its memory may be reused. */
  lend(name: string): FileLoan | undefined {
    const playlist = this.#playlist(name)
    if (playlist !== undefined) return { file: playlist, end: undefined }
    const file = this.#cache.get(this.#owner, name)
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
   * Waits for a version of a file that the reader does not have. All changes made in one synchronous call become
   * visible together.
   *
   * @returns the new version; if the stream has ended or too many readers wait, the current version at once, even if
   *   the reader has it, or undefined for a file that does not exist
   * @throws the reason of the signal
   */
  async wait(name: string, { version, signal }: WaitOptions): Promise<StreamFile | undefined> {
    const mayWait = this.#waiters < this.#maxWaiters
    this.#waiters++
    try {
      for (;;) {
        signal.throwIfAborted()
        const file = this.get(name)
        const isNewVersion = file !== undefined && file.version !== version
        if (isNewVersion || this.#ended || !mayWait) return file
        await this.#change(name, signal)
      }
    } finally {
      this.#waiters--
    }
  }

  /** Ends all waits, present and future, and marks the stream as idle. */
  end(): void {
    this.#ended = true
    this.rest()
    for (const name of this.#wakers.keys()) this.#wake(name)
  }

  /** Drops all files and ends all waits, present and future. */
  discard(): void {
    this.#playlists.clear()
    this.#cache.discard(this.#owner)
    this.end()
  }

  #playlist(name: string): StreamFile | undefined {
    const playlist = this.#playlists.get(name)
    if (playlist === undefined) return undefined
    if (playlist.file === undefined) {
      const file = playlist.render()
      const { previous } = playlist
      playlist.file = previous !== undefined && isSameFile(file, previous) ? previous : file
      playlist.previous = undefined
    }
    return playlist.file
  }

  /** Resolves at the next change of a file; rejects when the signal aborts. */
  #change(name: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wakers = this.#wakers.get(name) ?? new Set()
      this.#wakers.set(name, wakers)
      const abort = () => {
        wakers.delete(wake)
        if (wakers.size === 0) this.#wakers.delete(name)
        reject(signal.reason as Error)
      }
      const wake = () => {
        signal.removeEventListener('abort', abort)
        resolve()
      }
      signal.addEventListener('abort', abort, { once: true })
      wakers.add(wake)
    })
  }

  /** Wakes the waiting readers. They continue in a microtask, after the synchronous call that changed the file. */
  #wake(name: string): void {
    const wakers = this.#wakers.get(name)
    this.#wakers.delete(name)
    for (const wake of wakers ?? []) wake()
  }
}

/** Whether two versions of a playlist have the same bytes and the same lifetime. */
function isSameFile(a: StreamFile, b: StreamFile): boolean {
  if (a.maxAgeSec !== b.maxAgeSec) return false
  return Buffer.concat(a.chunks).equals(Buffer.concat(b.chunks))
}
