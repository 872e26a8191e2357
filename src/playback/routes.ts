/**
 * Playback on a server of Millrace: takes the requests for `/video/{stream_id}/{file}`, and below `/t/{token}`, before the
 * router of the application sees them.
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { NODE_FENCE, type NodeCalls } from '../auth/node-calls.ts'
import { MillraceError } from '../errors.ts'
import { ClientRate, rawAddressOf, requireAddress, type TrustHop } from '../http/client-address.ts'
import { verifyNodeCall, type FenceOf } from '../http/node-access.ts'
import type { Logger } from '../logger.ts'
import { machineClock, type Clock } from '../timing/clock.ts'
import { failFile } from './file-response.ts'
import { PlaybackHandler, type PlaybackOptions, type PlaybackRequest } from './handler.ts'

/** Whether the file can be had without a request for a name that may not exist. */
export type IsKnown = (streamId: string, name: string) => boolean

export interface PlaybackRoutesOptions {
  /** Streams below `/video`. */
  readonly open: PlaybackOptions
  /** Streams below `/t/{token}/video`; undefined: that path does not exist. */
  readonly guarded?: PlaybackOptions | undefined
  /** Verifies the calls of other nodes; undefined: they are refused. */
  readonly nodeCalls: NodeCalls | undefined
  /** Fences of the streams of this node, for other nodes; default: their responses have none, and no stream is refused. */
  readonly fenceOf?: FenceOf | undefined
  /** Whether the router gets the calls of other nodes; default: false. */
  readonly passesCalls?: boolean
  /** Limits the requests of each client for other files; default: no limit. */
  readonly isKnown?: IsKnown | undefined
  readonly trust: TrustHop
  readonly clock?: Pick<Clock, 'nowUs'> | undefined
  readonly logger: Logger
}

/**
 * Requests of one client for names that may not exist, each of which costs a request at another node: per second and at
 * once, since a page may show previews of many streams. An edge has room for those of six clients.
 */
const UNKNOWN_FILES = { perSec: 100, atOnce: 500, refusal: 'TOO_MANY_WAITING' } as const

/** `handle` each request of a server; `close` before the server closes. */
export class PlaybackRoutes {
  readonly #options: PlaybackRoutesOptions
  readonly #open: PlaybackHandler
  readonly #guarded: PlaybackHandler | undefined
  readonly #unknownFiles: ClientRate
  #isClosing = false

  constructor(options: PlaybackRoutesOptions) {
    const { open, guarded, clock = machineClock } = options
    this.#options = options
    this.#open = new PlaybackHandler(open)
    this.#guarded = guarded && new PlaybackHandler(guarded)
    this.#unknownFiles = new ClientRate({ ...UNKNOWN_FILES, clock })
  }

  /** Ends all waits; further responses end their connections. */
  close(): void {
    this.#isClosing = true
    this.#open.close()
    this.#guarded?.close()
  }

  /** @returns false for a request that is not for playback, of which nothing was done */
  readonly handle = (request: IncomingMessage, response: ServerResponse): boolean => {
    const target = targetOf(request)
    if (target === undefined) return false
    const { open, guarded, logger } = this.#options
    const handler = target.token === undefined ? this.#open : this.#guarded
    const { tokens } = (target.token === undefined ? open : guarded) ?? {}
    if (handler === undefined || (target.name === undefined && tokens === undefined)) return false
    const fail = (error: unknown) => failFile(response, error, { logger, route: ROUTE })
    try {
      return this.#respond(handler, target, { request, response, fail })
    } catch (error) {
      fail(error)
      return true
    }
  }

  #respond(
    handler: PlaybackHandler,
    target: Target,
    { request, response, fail }: Pick<PlaybackRequest, 'request' | 'response' | 'fail'>,
  ): boolean {
    const { nodeCalls, fenceOf, trust, isKnown, passesCalls = false } = this.#options
    if (this.#isClosing && request.httpVersionMajor < 2) response.setHeader('Connection', 'close')
    const token = target.token && decode(target.token)
    const name = target.name && decode(target.name)
    const streamId = decode(target.streamId)
    const call = verifyNodeCall(request, nodeCalls)
    if (call !== undefined && fenceOf !== undefined) {
      response.setHeader(NODE_FENCE, requireFence(fenceOf(streamId)))
    }
    const readAddress = () => rawAddressOf(request, trust)
    if (name !== undefined && isKnown?.(streamId, name) === false) {
      this.#unknownFiles.take(requireAddress(readAddress()))
    }
    if (call !== undefined && passesCalls) return false
    // Not a spread, with which V8 needs 3 µs for the object.
    handler.handle({ request, response, streamId, name, token, call, readAddress, fail })
    return true
  }
}

/** @throws {MillraceError} `NOT_OWNER` for a stream of another node, which must not be looked for elsewhere again */
function requireFence(fence: number | undefined): string {
  if (fence === undefined) throw new MillraceError('NOT_OWNER')
  return String(fence)
}

/** Name of the route in the log. */
const ROUTE = '/video/:stream_id/:file'

const PATH = /^(?:\/t\/([^/?#]+))?\/video\/([^/?#]+)(?:\/([^/?#]+))?(?:[?#]|$)/

/** Scheme and authority of a request target in absolute form (RFC 9112 section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i

/** Maximum length of a part of the path, as in the router. */
const MAX_LENGTH = 512

interface Target {
  readonly token: string | undefined
  readonly streamId: string
  /** Undefined: the request asks for access to the stream. */
  readonly name: string | undefined
}

/** @returns parts of the path as they were sent; undefined for a request that is not for playback */
function targetOf({ method, url = '' }: IncomingMessage): Target | undefined {
  const found = PATH.exec(url.startsWith('/') ? url : url.replace(ORIGIN, ''))
  if (found === null) return undefined
  const [, token, streamId = '', name] = found as readonly (string | undefined)[]
  const isRead = method === 'GET' || method === 'HEAD'
  if (!isRead && (method !== 'OPTIONS' || name === undefined)) return undefined
  return { token, streamId, name }
}

/** @throws {MillraceError} `REQUEST_MALFORMED` */
function decode(part: string): string {
  if (part.length > MAX_LENGTH) throw new MillraceError('REQUEST_MALFORMED')
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch (cause) {
    throw new MillraceError('REQUEST_MALFORMED', { cause })
  }
}
