/**
 * One format of reply for every failure, whether a route, Fastify or Node's HTTP parser detects it:
 * `{"success":false,"error":"<message>","code":"<CODE>"}`, with `hint` where the message does not say what to do.
 *
 * @module
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { MillraceError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { MAX_REQUESTS_PER_TURN, TurnQueue } from './turn-queue.ts'
import { writeResponse, type Headers } from './response.ts'

const ENVELOPE_TYPE = 'application/json; charset=utf-8'

/** Handler for Fastify's `setErrorHandler` and `frameworkErrors`. Logs internal errors. */
export function createErrorHandler(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const refusal = asRefusal(error)
    if (refusal.code === 'INTERNAL') {
      const { method, routeOptions } = request
      logFailure(logger, { err: error, method, route: routeOptions.url })
    }
    sendRefusal(reply, refusal)
  }
}

const ROUTE_NOT_FOUND = new MillraceError('ROUTE_NOT_FOUND')

const others = new WeakMap<IncomingMessage, () => void>()

/** Leaves a request for which `notFoundHandler` has no route to another handler. */
export function passUnknown(request: IncomingMessage, next: () => void): void {
  others.set(request, next)
}

export function notFoundHandler(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  headers: Headers = [],
): void {
  const response = reply.hijack().raw
  const next = others.get(raw)
  // Another server, to which it may go on, must not find it.
  others.delete(raw)
  if (next === undefined) writeRefusal(response, ROUTE_NOT_FOUND, headers)
  // Fastify would catch what it throws, and leave the request without a response.
  else queueMicrotask(next)
}

/**
 * Sends the envelope of a failure and keeps headers already set on `reply`. Reads and discards the rest of the request
 * body, so that it takes no memory and the client stays connected to read the reply.
 */
function sendRefusal(reply: FastifyReply, refusal: MillraceError): void {
  reply.request.raw.resume()
  if (refusal.retryAfterSec !== undefined) reply.header('retry-after', refusal.retryAfterSec)
  reply.code(refusal.httpStatus).type(ENVELOPE_TYPE).send(envelope(refusal))
}

/**
 * Writes the envelope of a failure with these headers, past Fastify's machinery. It is prepared once for each `refusal`,
 * so frequent ones are constants.
 */
export function writeRefusal(
  response: ServerResponse,
  refusal: MillraceError,
  headers: Headers = [],
  status = refusal.httpStatus,
): void {
  const { text, headers: own } = envelopeOf(refusal)
  writeResponse(response, status, [...headers, ...own], text)
}

interface PreparedEnvelope {
  /** One character for each byte (`latin1`). */
  readonly text: string
  readonly headers: Headers
}

const prepared = new WeakMap<MillraceError, PreparedEnvelope>()

function envelopeOf(refusal: MillraceError): PreparedEnvelope {
  const known = prepared.get(refusal)
  if (known !== undefined) return known
  const bytes = Buffer.from(envelope(refusal))
  const headers = ['Content-Type', ENVELOPE_TYPE, 'Content-Length', String(bytes.length)]
  const made = { text: bytes.toString('latin1'), headers }
  prepared.set(refusal, made)
  return made
}

/** Logs an internal failure, for its operator. */
export function logFailure(
  logger: Logger,
  failure: { err: unknown; method: string | undefined; route: string | undefined },
): void {
  logger.error(
    failure,
    'An HTTP request failed in the service. Its client got 500. Report this line.',
  )
}

type ClientErrorHandler = (error: NodeJS.ErrnoException, socket: Socket | TLSSocket) => void

/**
 * Creates a handler for Fastify's `clientErrorHandler`: a request that Node cannot parse or that is not complete in time.
 * Node finds all requests of the last second that are late at once: 10,000 answers would hold the event loop for 0.3 s.
 */
export function createClientErrorHandler(): ClientErrorHandler {
  const turns = new TurnQueue(MAX_REQUESTS_PER_TURN)
  return (error, socket) => {
    if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT' || turns.take()) {
      answerClientError(error, socket)
      return
    }
    // Discards the rest of the request, which must not be answered as well.
    socket.removeAllListeners('data').resume()
    turns.add(() => answerClientError(error, socket))
  }
}

function answerClientError(error: NodeJS.ErrnoException, socket: Socket | TLSSocket): void {
  if ('secureConnecting' in socket && socket.secureConnecting === true) {
    // The TLS handshake has failed: nothing can be sent.
    socket.destroy()
    return
  }
  if (socket.writable && error.code !== 'ECONNRESET') {
    socket.write(CLIENT_ERROR_REPLIES.get(error.code) ?? MALFORMED_REPLY)
  }
  // Unlike `destroy`, first sends pending bytes, for example the rest of a segment.
  socket.destroySoon()
}

/** Complete reply for a connection that closes after it. Each line of `headers` ends with CRLF. */
export function formatRefusal(
  refusal: MillraceError,
  { status = refusal.httpStatus, headers = '' } = {},
): string {
  const body = envelope(refusal)
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n${headers}` +
    `Content-Type: ${ENVELOPE_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

const MALFORMED = new MillraceError('REQUEST_MALFORMED')
const MALFORMED_REPLY = formatRefusal(MALFORMED)

/** Replies by the code of Node's error. */
const CLIENT_ERROR_REPLIES: ReadonlyMap<string | undefined, string> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', formatRefusal(MALFORMED, { status: 408 })],
  ['HPE_HEADER_OVERFLOW', formatRefusal(MALFORMED, { status: 431 })],
])

/**
 * Refusal for any error. A `MillraceError` stays as it is unless its status is 500. An error of Fastify with a status
 * below 500 is the client's; any other error is internal.
 */
export function asRefusal(error: unknown): MillraceError {
  if (error instanceof MillraceError) {
    return error.httpStatus === 500 ? new MillraceError('INTERNAL') : error
  }
  const { statusCode = 500, validation, message } = error as FastifyError
  if (validation !== undefined) return new MillraceError('BODY_INVALID', { message })
  if (statusCode === 413) return new MillraceError('BODY_TOO_LARGE')
  if (statusCode === 415) return new MillraceError('CONTENT_TYPE_UNSUPPORTED')
  return new MillraceError(statusCode < 500 ? 'REQUEST_MALFORMED' : 'INTERNAL')
}

function envelope({ message, code, hint }: MillraceError): string {
  return JSON.stringify({ success: false, error: message, code, hint })
}
