/**
 * The files of one stream by name, and the readers that wait for them: all that delivery sees of a stream.
 *
 * Playlists are held here, each version rendered once, when it is first read. Segments are held by the cache that all
 * streams share, which may refuse or release them.
 *
 * @module
 */
import type { SegmentOwner, ShortageCounters } from './holding.ts'
import type { SegmentCache } from './segment-cache.ts'
import type { StreamFile } from './stream-file.ts'

export interface FileStoreOptions {
  readonly cache: SegmentCache
  /** The holder of the segments in the cache, which may ask it to list fewer. */
  readonly owner: SegmentOwner
  /** Readers that may wait at once; 10,000 unless told. */
  readonly maxWaiters?: number
}

export interface WaitOptions {
  /** Version that the reader has; without one, any version is news. */
  readonly version?: string | undefined
  /** Ends the wait. */
  readonly signal: AbortSignal
}

/** What readers see of a store. */
export type StreamFiles = Pick<FileStore, 'get' | 'lend' | 'wait'>

/** A file for a while. */
export interface FileLoan {
  readonly file: StreamFile
  /** Ends the loan, once: its chunks may change from now on. Undefined where they never do. */
  readonly end: (() => void) | undefined
}

interface Playlist {
  readonly render: () => StreamFile
  file?: StreamFile
}

const DEFAULT_MAX_WAITERS = 10_000

/**
 * Writers call `put`, `replace` and `remove`, then `end` when nothing will be added and `discard` when nothing may be read
 * any more. Readers call `get` and `wait`. Times are those of `SegmentCache`.
 */
export class FileStore {
  readonly #cache: SegmentCache
  readonly #owner: SegmentOwner
  readonly #maxWaiters: number
  readonly #playlists = new Map<string, Playlist>()
  /** Callbacks of the readers that wait, by the name of the file. */
  readonly #wakers = new Map<string, Set<() => void>>()
  #waiters = 0
  #ended = false

  constructor({ cache, owner, maxWaiters = DEFAULT_MAX_WAITERS }: FileStoreOptions) {
    this.#cache = cache
    this.#owner = owner
    this.#maxWaiters = maxWaiters
  }

  /** Segments of this stream that memory did not suffice for. */
  get shortage(): ShortageCounters {
    return this.#cache.shortageOf(this.#owner)
  }

  /**
   * Adds a segment, which never changes.
   *
   * @param name  unique in the process: it names the epoch of its stream
   * @returns false where the cache has no room for it
   */
  put(name: string, file: StreamFile, nowMs: number): boolean {
    const hasRoom = this.#cache.put(this.#owner, name, { file, nowMs })
    if (hasRoom) this.#wake(name)
    return hasRoom
  }

  /**
   * Adds a playlist, or the next version of it.
   *
   * @param render  called once, when this version is first read, and never before the caller is done
   */
  replace(name: string, render: () => StreamFile): void {
    this.#playlists.set(name, { render })
    this.#wake(name)
  }

  /** Removes a segment at `untilMs`; earlier where memory is short. */
  remove(name: string, untilMs: number): void {
    this.#cache.retain(this.#owner, name, untilMs)
  }

  /** No segment is expected until the next `put`: live streams may take the memory of those there are. */
  rest(): void {
    this.#cache.rest(this.#owner)
  }

  /** The file as it is now, for good; undefined where there is none, yet or any more. */
  get(name: string): StreamFile | undefined {
    const file = this.#find(name)
    if (file?.kind === 'segment') this.#cache.slabs.pin(file.chunks)
    return file
  }

  /** The file as `get` has it, whose memory is used again after the loan, instead of garbage collected some time. */
  lend(name: string): FileLoan | undefined {
    const file = this.#find(name)
    if (file?.kind !== 'segment') return file && { file, end: undefined }
    const { slabs } = this.#cache
    slabs.retain(file.chunks)
    return { file, end: () => slabs.release(file.chunks) }
  }

  /**
   * Waits for a file, or for another version of it. What one command of the stream changes is seen as a whole.
   *
   * @returns the file as it is then; also the version that the reader has, or undefined, where the stream has ended or too
   *   many readers wait
   * @throws the reason of the signal
   */
  async wait(name: string, { version, signal }: WaitOptions): Promise<StreamFile | undefined> {
    const mayWait = this.#waiters < this.#maxWaiters
    this.#waiters++
    try {
      for (;;) {
        signal.throwIfAborted()
        const file = this.get(name)
        const isNews = file !== undefined && file.version !== version
        if (isNews || this.#ended || !mayWait) return file
        await this.#change(name, signal)
      }
    } finally {
      this.#waiters--
    }
  }

  /** The stream has ended: releases the readers that wait, and those to come at once. */
  end(): void {
    this.#ended = true
    this.rest()
    for (const name of this.#wakers.keys()) this.#wake(name)
  }

  /** Drops all files and ends. */
  discard(): void {
    this.#playlists.clear()
    this.#cache.discard(this.#owner)
    this.end()
  }

  #find(name: string): StreamFile | undefined {
    const playlist = this.#playlists.get(name)
    if (playlist === undefined) return this.#cache.get(this.#owner, name)
    playlist.file ??= playlist.render()
    return playlist.file
  }

  /** Settles when the file was changed, or the wait aborted. */
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

  /** Readers go on in a microtask: after the command that changed the file. */
  #wake(name: string): void {
    const wakers = this.#wakers.get(name)
    this.#wakers.delete(name)
    for (const wake of wakers ?? []) wake()
  }
}
