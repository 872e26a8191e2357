/**
 * Every failure leaves as `{"success":false,"error":"<message>","code":"<CODE>"}`, whoever noticed it: a route, Fastify,
 * or Node's HTTP parser.
 *
 * @module
 */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { MillraceError } from '../errors.ts'
import type { Logger } from '../logger.ts'

/** For Fastify's `setErrorHandler` and `frameworkErrors`. Logs what is our own fault. */
export function createErrorHandler(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const refusal = asRefusal(error)
    if (refusal.code === 'INTERNAL') {
      logger.error(
        { err: error, method: request.method, route: request.routeOptions.url },
        'request failed',
      )
    }
    sendRefusal(reply, refusal)
  }
}

export function notFoundHandler(_request: FastifyRequest, reply: FastifyReply): void {
  sendRefusal(reply, new MillraceError('ROUTE_NOT_FOUND'))
}

/**
 * Answers with the envelope of a failure; headers set on `reply` before are kept. The body of the request, or what is left
 * of it, is read and thrown away, so that it takes no memory and the client lives to see the reply.
 */
export function sendRefusal(reply: FastifyReply, refusal: MillraceError): void {
  reply.request.raw.resume()
  reply.code(refusal.httpStatus).type('application/json; charset=utf-8').send(envelope(refusal))
}

/** For Fastify's `clientErrorHandler`: what Node could not read as HTTP. */
export function clientErrorHandler(error: NodeJS.ErrnoException, socket: Socket): void {
  if (socket.writable && error.code !== 'ECONNRESET') {
    const status = CLIENT_ERROR_STATUS[error.code ?? ''] ?? 400
    socket.write(formatRefusal(new MillraceError('REQUEST_MALFORMED'), { status }))
  }
  // What is still on its way, perhaps a segment, goes out first.
  socket.destroySoon()
}

/** The whole reply, for a connection that is closed behind it. `headers` end with CRLF each. */
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

/** An error that is no refusal of ours is either the client's, says Fastify's status, or an internal one. */
function asRefusal(error: unknown): MillraceError {
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
