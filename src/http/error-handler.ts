/**
 * One format of reply for every failure, whether a route, Fastify or Node's HTTP parser detects it:
 * `{"success":false,"error":"<message>","code":"<CODE>"}`.
 *
 * @module
 */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { MillraceError } from '../errors.ts'
import type { Logger } from '../logger.ts'

/** Handler for Fastify's `setErrorHandler` and `frameworkErrors`. Logs internal errors. */
export function createErrorHandler(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const refusal = asRefusal(error)
    if (refusal.code === 'INTERNAL') {
      logger.error(
        { err: error, method: request.method, route: request.routeOptions.url },
        'An HTTP request failed in the service. Its client got 500. Report this line.',
      )
    }
    sendRefusal(reply, refusal)
  }
}

export function notFoundHandler(_request: FastifyRequest, reply: FastifyReply): void {
  sendRefusal(reply, new MillraceError('ROUTE_NOT_FOUND'))
}

/**
 * Sends the envelope of a failure and keeps headers already set on `reply`. Reads and discards the rest of the request
 * body, so that it takes no memory and the client stays connected to read the reply.
 */
export function sendRefusal(reply: FastifyReply, refusal: MillraceError): void {
  reply.request.raw.resume()
  reply.code(refusal.httpStatus).type('application/json; charset=utf-8').send(envelope(refusal))
}

/** Handler for Fastify's `clientErrorHandler`: a request that Node cannot parse or that is not complete in time. */
export function clientErrorHandler(error: NodeJS.ErrnoException, socket: Socket | TLSSocket): void {
  if ('secureConnecting' in socket && socket.secureConnecting === true) {
    // The TLS handshake has failed: nothing can be sent.
    socket.destroy()
    return
  }
  if (socket.writable && error.code !== 'ECONNRESET') {
    const status = CLIENT_ERROR_STATUS[error.code ?? ''] ?? 400
    socket.write(formatRefusal(new MillraceError('REQUEST_MALFORMED'), { status }))
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
    `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

const CLIENT_ERROR_STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
}

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

function envelope({ message, code }: MillraceError): string {
  return JSON.stringify({ success: false, error: message, code })
}
