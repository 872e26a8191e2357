/**
 * Ingest nodes to which an edge passes on requests that any of them can answer: the API, the dashboard, pages.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { MillraceError } from '../errors.ts'
import type { NodeClient, PassedReply, PassedRequest } from './node-client.ts'

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

/** Maximum number of nodes that one request tries. */
const MAX_TRIES = 3

/** Time for which a node that has failed is asked last, and maximum number of such nodes. */
const FAILED_MS = 10_000
const MAX_FAILED = 1024

export interface IngestNodesOptions {
  readonly client: NodeClient
  /** Lists the URLs of live ingest nodes; rejects when the registry cannot say. */
  readonly list: () => Promise<readonly string[]>
}

/** Prefers the node that has answered last, where sessions of the dashboard are, until it fails. */
export class IngestNodes {
  readonly #options: IngestNodesOptions
  readonly #failed = new LRUCache<string, true>({ max: MAX_FAILED, ttl: FAILED_MS })
  /** Listed last. */
  #live: readonly string[] = []
  /** Listing under way, for all requests that arrive meanwhile. */
  #listing: Promise<void> | undefined
  #last: string | undefined

  constructor(options: IngestNodesOptions) {
    this.#options = options
  }

  /** @throws {Error} if no node can be reached, or the one that was asked does not answer */
  async pass(request: PassedRequest): Promise<PassedReply> {
    let failure: unknown = new MillraceError('ORIGIN_UNREACHABLE')
    for (const url of await this.#candidates()) {
      try {
        const reply = await this.#options.client.pass(url, request)
        this.#last = url
        reply.body.once('error', () => this.#fail(url, request))
        return reply
      } catch (error) {
        failure = error
        this.#fail(url, request)
        const isUnsent = UNSENT.has((error as { code?: unknown }).code)
        if (request.signal.aborted || !(isUnsent || SAFE.has(request.method))) break
      }
    }
    throw failure
  }

  #fail(url: string, { signal }: PassedRequest): void {
    // A client that leaves ends its request.
    if (signal.aborted) return
    this.#failed.set(url, true)
    if (this.#last === url) this.#last = undefined
  }

  async #candidates(): Promise<readonly string[]> {
    this.#listing ??= this.#list().finally(() => (this.#listing = undefined))
    await this.#listing
    const [live, last] = [this.#live, this.#last]
    const isLive = last !== undefined && live.includes(last)
    const others = live.filter((url) => url !== last)
    const failed = others.filter((url) => this.#failed.has(url))
    const working = others.filter((url) => !failed.includes(url))
    return [...(isLive ? [last] : []), ...working, ...failed].slice(0, MAX_TRIES)
  }

  /** The list stays while the registry cannot say. */
  async #list(): Promise<void> {
    this.#live = await this.#options.list().catch(() => this.#live)
  }
}
