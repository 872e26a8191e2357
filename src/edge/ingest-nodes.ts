/**
 * Ingest nodes to which an edge passes on requests that any of them can answer: the API, the dashboard, pages.
 *
 * @module
 */
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

/** Maximum number of nodes that one request tries. */
const MAX_TRIES = 3

export interface IngestNodesOptions {
  readonly client: NodeClient
  /** Lists the URLs of live ingest nodes; rejects when the registry cannot say. */
  readonly list: () => Promise<readonly string[]>
}

/** Prefers the node that has answered last, where sessions of the dashboard are. */
export class IngestNodes {
  readonly #options: IngestNodesOptions
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
        return reply
      } catch (error) {
        failure = error
        if (!UNSENT.has((error as { code?: unknown }).code)) break
      }
    }
    throw failure
  }

  async #candidates(): Promise<readonly string[]> {
    const last = this.#last
    const live = await this.#options.list().catch(() => (last === undefined ? [] : [last]))
    const isLive = last !== undefined && live.includes(last)
    const others = live.filter((url) => url !== last)
    return [...(isLive ? [last] : []), ...others].slice(0, MAX_TRIES)
  }
}
