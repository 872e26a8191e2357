/**
 * HTTP client of an edge: the connections to all other nodes.
 *
 * @module
 */
import type { Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import { Agent, Pool } from 'undici'
import { NODE_CALL, type NodeCall, type NodeCalls } from '../../auth/node-calls.ts'
import { MillraceError } from '../../errors.ts'
import { machineClock, type Clock } from '../../timing/clock.ts'

const MIB = 1024 * 1024

/** A segment has 60 s of 100 Mbit/s at most. */
const FILE_LIMITS: BodyLimits = { maxBytes: 768 * MIB, maxTotalBytes: 256 * MIB }

/** Responses to clients: the largest are metrics, and pages of records with some megabytes. */
export const PASSED_LIMITS: BodyLimits = { maxBytes: 32 * MIB, maxTotalBytes: 128 * MIB }

/** Nodes hold a request for 9 s at most. */
const HEADERS_TIMEOUT_MS = 12_000
/** Maximum pause within a file. */
const BODY_TIMEOUT_MS = 5000
const CONNECT_TIMEOUT_MS = 2000

/** The same for requests of clients that are passed on. Events of the dashboard come every second. */
const PASSED_HEADERS_TIMEOUT_MS = 5000
const PASSED_BODY_TIMEOUT_MS = 10_000

/** Maximum number of connections to one node for files, and of requests for files at all nodes. */
const MAX_CONNECTIONS = 4096
const MAX_REQUESTS = 16_384

/** Maximum number of requests of clients that are passed on to a node at once; further ones wait. Dashboards keep theirs. */
const MAX_PASSED = 256

/** Maximum number of nodes, and time after which one without a response is forgotten. */
const MAX_NODES = 1024
const IDLE_MS = 60_000

export interface NodeFileRequest {
  /** Path and query. */
  readonly path: string
  /** ETag of the version that the edge has: the node answers with the next one, or 304 when it does not come in time. */
  readonly etag?: string | undefined
  readonly signal?: AbortSignal
}

/** First value of each header, by name in lower case. */
type Headers = Readonly<Record<string, string>>

export interface NodeFileResponse {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

/** Request of a client, passed on. */
export interface PassedRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[]>>
  /** Empty: no body. */
  readonly body: Buffer
  /** Address of the client. */
  readonly client: string
  /** Whether another node asks for a file: it waits among those for files. */
  readonly isFile?: boolean
  readonly signal: AbortSignal
}

export interface PassedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable
  /** Reads the whole body, in place of `body`; see `ResponseReader.read`. */
  readonly read: () => Promise<Buffer>
}

interface NodeClientOptions {
  /** Finds the Unix socket of a node of this machine by the host of its URL; default: connections go to that host. */
  readonly socketPathOf?: ((host: string) => string) | undefined
  /** Signs all requests; default: they are not signed. */
  readonly calls?: NodeCalls | undefined
  /** Whether `get` alone signs. Default: false. */
  readonly signsFilesOnly?: boolean
  readonly clock?: Pick<Clock, 'nowUs'>
}

/** URLs of nodes are http or https URLs, whose path comes before every other path. */
export class NodeClient {
  readonly #calls: NodeCalls | undefined
  readonly #signsFilesOnly: boolean
  readonly #files: Agent
  readonly #passed: Agent
  /** Whether the latest request for a file at a node had a response. */
  readonly #answering: LRUCache<string, boolean>
  readonly #fileReader = new ResponseReader(FILE_LIMITS)
  readonly #passedReader = new ResponseReader(PASSED_LIMITS)
  #requests = 0

  constructor(options: NodeClientOptions = {}) {
    const { socketPathOf, calls, signsFilesOnly = false, clock = machineClock } = options
    const common: Agent.Options = {
      connectTimeout: CONNECT_TIMEOUT_MS,
      maxOrigins: MAX_NODES,
      ...(socketPathOf && {
        factory: (origin, limits) => {
          const socketPath = socketPathOf(new URL(origin).hostname)
          return new Pool(origin, { ...(limits as Pool.Options), socketPath })
        },
      }),
    }
    this.#calls = calls
    this.#signsFilesOnly = signsFilesOnly
    this.#answering = new LRUCache({
      max: MAX_NODES,
      ttl: IDLE_MS,
      // The cache would keep a reading for a millisecond of real time.
      ttlResolution: 0,
      perf: { now: () => clock.nowUs() / 1000 },
    })
    this.#files = new Agent({
      ...common,
      connections: MAX_CONNECTIONS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: BODY_TIMEOUT_MS,
      maxResponseSize: FILE_LIMITS.maxBytes,
    })
    this.#passed = new Agent({
      ...common,
      connections: MAX_PASSED,
      headersTimeout: PASSED_HEADERS_TIMEOUT_MS,
      bodyTimeout: PASSED_BODY_TIMEOUT_MS,
    })
  }

  /** Whether requests for files are signed; all others are as well, unless `signsFilesOnly`. */
  get signs(): boolean {
    return this.#calls !== undefined
  }

  /** Whether the latest request for a file has failed without a response, at every node. */
  get isAway(): boolean {
    const answering = [...this.#answering.values()]
    return answering.length > 0 && !answering.includes(true)
  }

  /**
   * @param onHead  called when the response begins
   * @throws {MillraceError} see `isOwnLimit`
   * @throws {Error} if the node cannot be reached, or ends its response early
   */
  async get(url: string, asked: NodeFileRequest, onHead?: () => void): Promise<NodeFileResponse> {
    if (this.#requests >= MAX_REQUESTS) throw ownLimit('too many requests at other nodes')
    this.#requests++
    try {
      const response = await this.#get(url, asked, onHead)
      this.#answering.set(url, true)
      return response
    } catch (error) {
      // Its time to live runs from the first failure on, however often it is asked again.
      const noUpdateTTL = this.#answering.get(url) === false
      const isOwn = asked.signal?.aborted === true || isOwnLimit(error)
      if (!isOwn) this.#answering.set(url, false, { noUpdateTTL })
      throw error
    } finally {
      this.#requests--
    }
  }

  async #get(
    url: string,
    { path, etag, signal }: NodeFileRequest,
    onHead?: () => void,
  ): Promise<NodeFileResponse> {
    const { statusCode, headers, body } = await this.#files.request({
      ...targetOf(url, path),
      method: 'GET',
      headers: {
        'accept-encoding': 'gzip',
        ...(etag !== undefined && { 'if-none-match': etag, prefer: 'wait=9' }),
        ...this.#signed({ method: 'GET', path }, true),
      },
      ...(signal && { signal }),
    })
    onHead?.()
    const bytes = await this.#fileReader.read(body, sizeOf(headers))
    const first = Object.entries(headers).map(([name, value]) => [name, [value].flat()[0] ?? ''])
    return { status: statusCode, headers: Object.fromEntries(first) as Headers, bytes }
  }

  /**
   * @returns the response as soon as its head is there
   * @throws {Error} if the node cannot be reached
   */
  async pass(url: string, passed: PassedRequest): Promise<PassedResponse> {
    const { method, path, headers, body, signal, isFile = false } = passed
    const agent = isFile ? this.#files : this.#passed
    const reader = isFile ? this.#fileReader : this.#passedReader
    // Not by URL, whose parser would resolve `..` after the route was matched.
    const response = await agent.request({
      ...targetOf(url, path),
      method,
      headers: { ...headers, ...this.#signed(passed) },
      body: body.length === 0 ? null : body,
      signal,
    })
    return {
      status: response.statusCode,
      headers: response.headers,
      body: response.body,
      read: () => reader.read(response.body, method === 'HEAD' ? 0 : sizeOf(response.headers)),
    }
  }

  /**
   * @param body  JSON
   * @throws {Error} if the node cannot be reached, or ends its response early
   */
  async post(
    url: string,
    path: string,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<Pick<NodeFileResponse, 'status' | 'bytes'>> {
    const call = { method: 'POST', path, body } as const
    const headers = { 'content-type': 'application/json', ...this.#signed(call) }
    const request = { ...call, ...targetOf(url, path), headers, signal }
    const response = await this.#files.request(request)
    const bytes = await this.#passedReader.read(response.body, sizeOf(response.headers))
    return { status: response.statusCode, bytes }
  }

  /** Finds out which nodes answer, since none may be asked for files. */
  probe(): void {
    for (const url of this.#answering.keys()) {
      void this.get(url, { path: '/health/live' }).catch(() => undefined)
    }
  }

  #signed(call: NodeCall, isFile = false): Record<string, string> {
    const calls = isFile || !this.#signsFilesOnly ? this.#calls : undefined
    return calls === undefined ? {} : { [NODE_CALL]: calls.sign(call) }
  }

  /** Ends all requests. */
  async close(): Promise<void> {
    await Promise.all([this.#files.destroy(), this.#passed.destroy()])
  }
}

function ownLimit(message: string): MillraceError {
  return new MillraceError('TOO_MANY_WAITING', { message })
}

/** Whether a request has failed at a limit of this process, which says nothing about the node. */
export function isOwnLimit(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'TOO_MANY_WAITING'
}

interface BodyLimits {
  /** Maximum size of a body. */
  readonly maxBytes: number
  /** Maximum size of all bodies that are being read, beside one. */
  readonly maxTotalBytes: number
}

/** Reads bodies of responses into memory: each, and all that are on their way, are limited. One instance for all of a kind. */
export class ResponseReader {
  readonly #limits: BodyLimits
  #totalBytes = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /**
   * Reads a body into one piece: views of the memory that was read would keep more than the file, and cost a write each.
   *
   * @param announcedBytes  Content-Length; 0 for an unknown one
   * @throws {MillraceError} see `isOwnLimit`; the body is destroyed
   * @throws {Error} if the body is too large, or ends early; it is destroyed
   */
  async read(body: Readable, announcedBytes: number): Promise<Buffer> {
    const { maxBytes, maxTotalBytes } = this.#limits
    const chunks: Buffer[] = []
    let sizeBytes = 0
    let reservedBytes = 0
    const reserve = (neededBytes: number) => {
      const otherBytes = this.#totalBytes - reservedBytes
      const hasRoom = otherBytes === 0 || otherBytes + neededBytes <= maxTotalBytes
      if (neededBytes > maxBytes) throw new Error(`too many bytes in a body: over ${maxBytes}`)
      if (!hasRoom) throw ownLimit('too many bytes on the way from other nodes')
      this.#totalBytes = otherBytes + neededBytes
      reservedBytes = neededBytes
    }
    try {
      reserve(announcedBytes)
      for await (const chunk of body as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length
        if (sizeBytes > reservedBytes) reserve(sizeBytes)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks)
    } catch (error) {
      body.on('error', () => undefined).destroy()
      throw error
    } finally {
      this.#totalBytes -= reservedBytes
    }
  }
}

/** Content-Length; 0 for an unknown one. */
function sizeOf(headers: PassedResponse['headers']): number {
  return Number(headers['content-length'] ?? 0)
}

function targetOf(url: string, path: string): { readonly origin: string; readonly path: string } {
  const { origin, pathname } = new URL(url)
  return { origin, path: pathname.replace(/\/+$/, '') + path }
}
