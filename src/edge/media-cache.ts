/**
 * Files of an edge that it does not follow: segments, parts, previews, delta updates. Each is fetched from the origin
 * once for all who ask, and kept by bytes.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import type { StreamFile } from '../contract/streams.ts'
import type { MillraceError } from '../errors.ts'
import type { FileReply } from './node-client.ts'
import { asRefusal, fileOf, refusalOf } from './origin-file.ts'

/** Time for which a failure answers those who ask again, and minimum lifetime of a file: all who wait get it. */
export const FAILURE_MS = 250

const MAX_FAILURES = 10_000
const MAX_UNSTORED = 4

/** Maximum number of requests that the origin has not answered. */
const MAX_FETCHES = 1000

export class MediaCache {
  readonly #files: LRUCache<string, StreamFile, () => Promise<FileReply>>
  readonly #failures = new LRUCache<string, MillraceError>({ max: MAX_FAILURES, ttl: FAILURE_MS })
  /** Files for which the cache has no room, for those who wait. */
  readonly #unstored = new LRUCache<string, StreamFile>({ max: MAX_UNSTORED, ttl: FAILURE_MS })
  readonly #fetching = new Map<string, Promise<void>>()

  /** @param maxBytes  maximum size of the files */
  constructor(maxBytes: number) {
    this.#files = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: sizeOf,
      fetchMethod: async (_name, _stale, { options, context: request }) => {
        const reply = await request()
        if (reply.status !== 200) throw refusalOf(reply)
        const file = fileOf(reply)
        options.ttl = Math.max(FAILURE_MS, file.maxAgeSec * 1000)
        return file
      },
    })
  }

  get(name: string): StreamFile | undefined {
    return this.#files.get(name) ?? this.#unstored.get(name)
  }

  /** Why the latest request failed, for a short time. */
  refusal(name: string): MillraceError | undefined {
    return this.#failures.get(name)
  }

  isFetching(name: string): boolean {
    return this.#fetching.has(name)
  }

  /**
   * Fetches a file, unless that is under way. Never rejects: the outcome is in `get` or `refusal`.
   *
   * @param request  asks the origin
   * @returns undefined if the origin has too many requests to answer
   */
  fetch(name: string, request: () => Promise<FileReply>): Promise<void> | undefined {
    const known = this.#fetching.get(name)
    if (known !== undefined || this.#fetching.size >= MAX_FETCHES) return known
    const fetched = this.#files
      .forceFetch(name, { ignoreFetchAbort: true, context: request })
      .then((file) => !this.#files.has(name) && this.#unstored.set(name, file))
      .catch((error: unknown) => void this.#failures.set(name, asRefusal(error)))
      .then(() => void this.#fetching.delete(name))
    this.#fetching.set(name, fetched)
    return fetched
  }
}

function sizeOf({ chunks }: StreamFile): number {
  return Math.max(
    1,
    chunks.reduce((sum, { length }) => sum + length, 0),
  )
}
