/**
 * Files that are elsewhere, at the origin of an edge or in an archive: segments, init segments, parts, previews, delta
 * updates. Each is fetched once for all who ask, and kept as long as there is room.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { totalBytes } from '../../binary/total-bytes.ts'
import type { MillraceError } from '../../errors.ts'
import type { StreamFile } from './stream-file.ts'

/** Time for which a failure answers those who ask again, and minimum lifetime of a file: all who wait get it. */
export const FAILURE_MS = 250

/** Memory of a file beside its bytes: of its names, objects and timer. */
const FILE_BYTES = 1000

const MAX_FAILURES = 10_000
const MAX_UNSTORED = 4

interface FetchedFilesOptions {
  /** Maximum memory of the files. */
  readonly maxBytes: number
  /** Maximum number of files that are being fetched. */
  readonly maxFetches: number
  /** Time for which a file is kept, in milliseconds; default: until there is no room. */
  readonly lifetimeMs?: (file: StreamFile) => number
  /** What is told of a failure. */
  readonly refusalOf: (error: unknown) => MillraceError
}

interface Fetch {
  readonly done: Promise<void>
  readonly abort: AbortController
}

export class FetchedFiles {
  readonly #options: FetchedFilesOptions
  readonly #files: LRUCache<string, StreamFile>
  readonly #failures = new LRUCache<string, MillraceError>({ max: MAX_FAILURES, ttl: FAILURE_MS })
  /** Files for which the cache has no room, for those who wait. */
  readonly #unstored = new LRUCache<string, StreamFile>({
    max: MAX_UNSTORED,
    ttl: FAILURE_MS,
    ttlAutopurge: true,
  })
  readonly #fetching = new Map<string, Fetch>()

  constructor(options: FetchedFilesOptions) {
    this.#options = options
    this.#files = new LRUCache({
      maxSize: options.maxBytes,
      sizeCalculation: sizeOf,
      ttlAutopurge: options.lifetimeMs !== undefined,
    })
  }

  get(name: string): StreamFile | undefined {
    return this.#files.get(name) ?? this.#unstored.get(name)
  }

  /** Like `get`, but does not count as a use. */
  peek(name: string): StreamFile | undefined {
    return this.#files.peek(name) ?? this.#unstored.peek(name)
  }

  /** Why the latest request failed, for a short time. */
  refusal(name: string): MillraceError | undefined {
    return this.#failures.get(name)
  }

  isFetching(name: string): boolean {
    return this.#fetching.has(name)
  }

  /**
   * Fetches a file, unless that is under way. Never rejects: the outcome is in `get` or `refusal`, unless it is cancelled.
   *
   * @returns undefined if too many files are being fetched
   */
  fetch(
    name: string,
    load: (signal: AbortSignal) => Promise<StreamFile>,
  ): Promise<void> | undefined {
    const known = this.#fetching.get(name)
    if (known !== undefined || this.#fetching.size >= this.#options.maxFetches) return known?.done
    const abort = new AbortController()
    const fetch = { done: this.#load(name, load, abort.signal), abort }
    this.#fetching.set(name, fetch)
    return fetch.done
  }

  /** Ends the request for a file that nobody waits for; the next reader asks again. */
  cancel(name: string): void {
    const fetch = this.#fetching.get(name)
    this.#fetching.delete(name)
    fetch?.abort.abort()
  }

  async #load(
    name: string,
    load: (signal: AbortSignal) => Promise<StreamFile>,
    signal: AbortSignal,
  ): Promise<void> {
    const { lifetimeMs, refusalOf } = this.#options
    try {
      const file = await load(signal)
      const ttl = lifetimeMs && Math.max(FAILURE_MS, lifetimeMs(file))
      this.#files.set(name, file, ttl === undefined ? {} : { ttl })
      if (!this.#files.has(name)) this.#unstored.set(name, file)
    } catch (error) {
      if (!signal.aborted) this.#failures.set(name, refusalOf(error))
    }
    if (!signal.aborted) this.#fetching.delete(name)
  }
}

function sizeOf({ chunks }: StreamFile): number {
  return totalBytes(chunks) + FILE_BYTES
}
