/**
 * Requests that an edge passes on to its origin, as they are: a Fastify plugin.
 *
 * @module
 */
import { pipeline } from 'node:stream'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { MillraceError } from '../../errors.ts'
import { clientAddress } from '../../http/client-address.ts'
import { readBodies } from '../../http/body-reader.ts'
import { nodeCallOf, protocolOf } from '../../http/node-access.ts'
import { closingOf, openBody } from '../../http/response.ts'
import { TimeoutError } from '../../timing/time-limit.ts'
import type { NodeFileResponse, PassedResponse, PassedRequest } from './node-client.ts'
import { refusalOf } from './origin-file.ts'

/** Sends a request to another node. */
export type Pass = (request: PassedRequest) => Promise<PassedResponse>

interface RelayOptions {
  readonly pass: Pass
  /** Sends requests for the state of a stream; default: `pass`. */
  readonly passState?: ((streamId: string) => Pass) | undefined
}

/** Headers of one connection (RFC 9110 section 7.6.1), and those that name the client, which the edge sets itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  (
    'connection keep-alive proxy-connection te trailer transfer-encoding upgrade expect http2-settings ' +
    'forwarded x-forwarded-for x-forwarded-host x-forwarded-proto'
  ).split(' '),
)

/** Passes on every request below the prefix. */
export const relay: FastifyPluginAsync<RelayOptions> = async (app, { pass, passState }) => {
  const send = createRelay(app)
  readBodies(app, (bytes) => bytes)
  app.all('/*', (request, reply) => send(request, reply, pass))
  if (passState === undefined) return
  app.get<{ Params: { stream_id: string } }>('/:stream_id/state', (request, reply) =>
    send(request, reply, passState(request.params.stream_id)),
  )
}

const NO_BODY = Buffer.alloc(0)

/** Time limit of an exchange without events: longer than three nodes need to be found silent. */
const EXCHANGE_MS = 30_000

/** Calls `fail` at the end of the time limit, unless the function that it returns is called before. */
type TimeLimit = (fail: () => void) => () => void

const limitExchange: TimeLimit = (fail) => {
  const timer = setTimeout(fail, EXCHANGE_MS)
  return () => clearTimeout(timer)
}

/**
 * @param limit  time limit of a whole exchange, that of events excepted
 * @returns a handler that passes requests on, with the bodies that were read; they end when `app` closes
 */
export function createRelay(app: FastifyInstance, limit = limitExchange) {
  const open = new Set<AbortController>()
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
    for (const exchange of open) exchange.abort()
  })
  return async (request: FastifyRequest, reply: FastifyReply, pass: Pass): Promise<unknown> => {
    const exchange = new AbortController()
    open.add(exchange)
    const stopTime = limit(() => {
      exchange.abort(new TimeoutError(`no whole reply in ${EXCHANGE_MS} ms`))
    })
    closingOf(reply.raw).once('close', () => {
      stopTime()
      open.delete(exchange)
      exchange.abort()
    })
    const passed = await pass({
      method: request.method,
      path: pathOf(request.raw.url!),
      headers: { ...endToEnd(request.headers), ...clientHeaders(request) },
      body: (request.body as Buffer | undefined) ?? NO_BODY,
      client: clientAddress(request),
      signal: exchange.signal,
    }).catch((cause: unknown) => {
      if (cause instanceof MillraceError) throw cause
      throw new MillraceError(isClosing ? 'SHUTTING_DOWN' : 'ORIGIN_UNREACHABLE', { cause })
    })
    // A client that leaves ends the body with an error.
    passed.body.on('error', () => undefined)
    if (!isEvents(passed)) return sendWhole(reply, passed)
    stopTime()
    return sendEvents(reply, passed)
  }
}

function isEvents({ headers }: PassedResponse): boolean {
  return String(headers['content-type']).startsWith('text/event-stream')
}

/** Sends events as they come. */
function sendEvents(
  reply: FastifyReply,
  { status, headers, body: events }: PassedResponse,
): unknown {
  const body = openBody(reply.hijack().raw, status, endToEnd(headers))
  if (body === undefined) events.destroy()
  else pipeline(events.setEncoding('utf8'), body, () => undefined)
  return reply
}

/** Sends a response in one piece: the guard counts its memory while the client reads it. */
async function sendWhole(
  reply: FastifyReply,
  { status, ...passed }: PassedResponse,
): Promise<unknown> {
  const headers = endToEnd(passed.headers)
  const bytes = await passed.read().catch((cause: unknown) => {
    throw new MillraceError('ORIGIN_UNREACHABLE', { cause })
  })
  // A worker passes on calls of other nodes, who are to know that theirs are not valid.
  const isNode = nodeCallOf(reply.request.raw) !== undefined
  if (status === 403 && !isNode) checkRefusal({ status, bytes, headers: {} })
  return reply.code(status).headers(headers).send(bytes)
}

/** @throws {MillraceError} `ORIGIN_UNREACHABLE` if the refusal is not for the client, but for this edge */
function checkRefusal(response: NodeFileResponse): void {
  const { code, message } = refusalOf(response)
  if (code === 'NODE_CALL_INVALID') throw new MillraceError('ORIGIN_UNREACHABLE', { message })
}

function endToEnd(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !name.startsWith(':') && !OWN_HEADERS.has(name),
  )
  return Object.fromEntries(kept) as Record<string, string | string[]>
}

/** `.` or `..` between slashes, of either kind and in any coding. */
const DOT_SEGMENT = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:[/\\]|%2f|%5c|$)/i

/**
 * Path and query of a request target (RFC 9112 section 3.2).
 *
 * @throws {MillraceError} `ROUTE_NOT_FOUND` for a path that another server could resolve to a route that is not passed on
 */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '')
  if (DOT_SEGMENT.test(path.split('?', 1)[0]!)) throw new MillraceError('ROUTE_NOT_FOUND')
  return path
}

/** What the origin needs to know the client as the edge knows it. */
function clientHeaders(request: FastifyRequest) {
  const { headers, host, socket } = request
  // Without the peer, what the client has sent would name it.
  if (socket.remoteAddress === undefined) throw new MillraceError('REQUEST_MALFORMED')
  const hops = [headers['x-forwarded-for'] ?? [], socket.remoteAddress].flat()
  return {
    host,
    'x-forwarded-for': hops.join(', '),
    'x-forwarded-host': host,
    'x-forwarded-proto': protocolOf(request),
  }
}
