/**
 * Files of an edge that it does not follow: segments, init segments, parts, previews, delta updates. Each is fetched from the origin
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

/** Asks the origin. */
type Ask = (signal: AbortSignal) => Promise<FileReply>

interface Fetch {
  readonly done: Promise<void>
  readonly abort: AbortController
}

export class MediaCache {
  readonly #files: LRUCache<string, StreamFile>
  readonly #failures = new LRUCache<string, MillraceError>({ max: MAX_FAILURES, ttl: FAILURE_MS })
  /** Files for which the cache has no room, for those who wait. */
  readonly #unstored = new LRUCache<string, StreamFile>({ max: MAX_UNSTORED, ttl: FAILURE_MS })
  readonly #fetching = new Map<string, Fetch>()

  /** @param maxBytes  maximum size of the files */
  constructor(maxBytes: number) {
    this.#files = new LRUCache({ maxSize: maxBytes, sizeCalculation: sizeOf })
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
   * Fetches a file, unless that is under way. Never rejects: the outcome is in `get` or `refusal`, unless it is cancelled.
   *
   * @returns undefined if the origin has too many requests to answer
   */
  fetch(name: string, ask: Ask): Promise<void> | undefined {
    const known = this.#fetching.get(name)
    if (known !== undefined || this.#fetching.size >= MAX_FETCHES) return known?.done
    const abort = new AbortController()
    const fetch = { done: this.#load(name, ask, abort.signal), abort }
    this.#fetching.set(name, fetch)
    return fetch.done
  }

  /** Ends the request for a file that nobody waits for; the next reader asks again. */
  cancel(name: string): void {
    const fetch = this.#fetching.get(name)
    this.#fetching.delete(name)
    fetch?.abort.abort()
  }

  async #load(name: string, ask: Ask, signal: AbortSignal): Promise<void> {
    try {
      const reply = await ask(signal)
      if (reply.status !== 200) throw refusalOf(reply)
      const file = fileOf(reply)
      this.#files.set(name, file, { ttl: Math.max(FAILURE_MS, file.maxAgeSec * 1000) })
      if (!this.#files.has(name)) this.#unstored.set(name, file)
    } catch (error) {
      if (!signal.aborted) this.#failures.set(name, asRefusal(error))
    }
    if (!signal.aborted) this.#fetching.delete(name)
  }
}

function sizeOf({ chunks }: StreamFile): number {
  return Math.max(
    1,
    chunks.reduce((sum, { length }) => sum + length, 0),
  )
}
