/**
 * Ingest nodes to which an edge passes on requests that any of them can answer: the API, the dashboard, pages.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { machineClock, type Clock } from '../../timing/clock.ts'
import { MillraceError } from '../../errors.ts'
import { TimeoutError } from '../../timing/time-limit.ts'
import type { NodeClient, PassedResponse, PassedRequest } from './node-client.ts'

/** Codes of errors before a node has seen the request, which another one may answer then. */
const UNSENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'ENOENT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Methods of requests that another node may answer even if the first one has seen them. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Maximum number of nodes of one list that a request tries. */
const MAX_TRIES = 3

/** Time for which a node that has failed is asked last, and maximum number of such nodes. */
const FAILED_MS = 10_000
const MAX_FAILED = 1024

/** Time for which the list of nodes is kept, and minimum time between two when none of them can be reached. */
const KEPT_US = 1_000_000
const LISTING_US = 250_000

interface IngestNodesOptions {
  readonly client: Pick<NodeClient, 'pass'>
  /** Lists the URLs of live ingest nodes; rejects when the registry cannot say. */
  readonly list: () => Promise<readonly string[]>
  /** Whether the list begins with the node to prefer; default: it is the one that has answered last. */
  readonly isOrdered?: boolean
  readonly clock?: Pick<Clock, 'nowUs'> | undefined
}

/** Prefers one node, where sessions of the dashboard are, until it fails. */
export class IngestNodes {
  readonly #options: IngestNodesOptions
  readonly #failed = new LRUCache<string, true>({ max: MAX_FAILED, ttl: FAILED_MS })
  /** Listed last. */
  #live: readonly string[] = []
  /** Time of the latest listing, also of one that has failed. */
  #listedUs = -Infinity
  /** Listing under way, for all requests that arrive meanwhile. */
  #listing: Promise<void> | undefined
  #last: string | undefined

  constructor(options: IngestNodesOptions) {
    this.#options = options
  }

  /** @throws {Error} if no node can be reached, or the one that was asked does not answer */
  async pass(request: PassedRequest): Promise<PassedResponse> {
    await this.#list(KEPT_US)
    const tried = this.#candidates()
    try {
      return await this.#passTo(tried, request)
    } catch (error) {
      if (request.signal.aborted || !isUnsent(error)) throw error
      // The list may be older than the node that would answer.
      await this.#list(LISTING_US)
      const others = this.#candidates().filter((url) => !tried.includes(url))
      if (others.length === 0) throw error
      return this.#passTo(others, request)
    }
  }

  async #passTo(urls: readonly string[], request: PassedRequest): Promise<PassedResponse> {
    let failure: unknown = NO_NODE
    for (const url of urls) {
      try {
        const response = await this.#options.client.pass(url, request)
        this.#last = url
        response.body.once('error', () => this.#fail(url, request))
        return response
      } catch (error) {
        failure = error
        this.#fail(url, request)
        if (request.signal.aborted || !(isUnsent(error) || SAFE.has(request.method))) break
      }
    }
    throw failure
  }

  #fail(url: string, { signal }: PassedRequest): void {
    // A client that leaves ends its request.
    if (signal.aborted && !(signal.reason instanceof TimeoutError)) return
    this.#failed.set(url, true)
    if (this.#last === url) this.#last = undefined
  }

  #candidates(): readonly string[] {
    const live = this.#live
    const last = this.#options.isOrdered === true ? undefined : this.#last
    const isLive = last !== undefined && live.includes(last)
    const others = live.filter((url) => url !== last)
    const failed = others.filter((url) => this.#failed.has(url))
    const working = others.filter((url) => !failed.includes(url))
    return [...(isLive ? [last] : []), ...working, ...failed].slice(0, MAX_TRIES)
  }

  /**
   * Lists the nodes, once for all requests that arrive meanwhile. The list stays while the registry cannot say.
   *
   * @param maxAgeUs  age of a list that will do
   */
  async #list(maxAgeUs: number): Promise<void> {
    const { list, clock = machineClock } = this.#options
    if (clock.nowUs() - this.#listedUs < maxAgeUs) return
    this.#listing ??= list()
      .then((urls) => void (this.#live = urls))
      .catch(() => undefined)
      .finally(() => {
        this.#listing = undefined
        this.#listedUs = clock.nowUs()
      })
    await this.#listing
  }
}

const NO_NODE = new MillraceError('ORIGIN_UNREACHABLE')

/** Whether another node may answer: the last one has not seen the request, and what others have seen is safe. */
function isUnsent(error: unknown): boolean {
  return error === NO_NODE || UNSENT.has((error as { code?: unknown }).code)
}
