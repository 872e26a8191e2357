/**
 * Replies that leave Fastify's machinery: prepared headers and a shared body, written straight to the socket.
 *
 * @module
 */
import { STATUS_CODES, validateHeaderValue } from 'node:http'
import type { FastifyReply } from 'fastify'

/** Names and values in turn. */
export type Headers = readonly string[]

/** Buffers, or a text with one character for each byte (`latin1`), which leaves in one write with the head. */
export type Body = string | readonly Buffer[]

/** Reply over HTTP/1.1 that is the same for all clients. */
export interface PublicReply {
  /** Without Date, what depends on the connection, and the empty line. */
  readonly head: string
  readonly body: Body
  readonly sizeBytes: number
}

// CORS without @fastify/cors: an application can register that only once, and replies written straight to the socket
// would not have its headers.
export const CORS_HEADERS: Headers = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  'Age, Content-Length, Content-Range, Date, ETag',
]

/**
 * Writes a reply with a flat list of headers: 17 µs of CPU, against 20 µs with `reply.send` and 21 µs with an object of
 * headers (400-byte body, 16 connections). Without the guard's class of replies, a text leaves as Node sends it.
 */
export function writeReply(
  reply: FastifyReply,
  status: number,
  headers: Headers,
  body: Body = [],
): void {
  const { raw, request } = reply
  const isHttp2 = request.raw.httpVersionMajor === 2
  // Flat lists of HTTP/2 differ between versions of Node.
  raw.writeHead(status, isHttp2 ? toRecord(headers) : (headers as string[]))
  // Not before, since `writeHead` throws for invalid headers.
  reply.hijack()
  if (isHttp2 && typeof body === 'string') raw.end(Buffer.from(body, 'latin1'))
  else writeBody(raw, body)
}

/** Ends a reply whose head is known. */
export function writeBody(reply: FastifyReply['raw'], body: Body): void {
  if (typeof body === 'string') {
    reply.end(body, 'latin1')
    return
  }
  if (body.length <= 1) {
    reply.end(body[0])
    return
  }
  // Corked, head and chunks go out in one system call.
  reply.cork()
  for (const chunk of body) reply.write(chunk)
  reply.end()
}

/**
 * @returns head of a reply over HTTP/1.1, see `PublicReply`
 * @throws {TypeError} for a value that would end its line
 */
export function formatHead(status: number, headers: Headers): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`]
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i]!, headers[i + 1]!]
    validateHeaderValue(name, value)
    lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\r\n')}\r\n`
}

function toRecord(headers: Headers): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i < headers.length; i += 2) record[headers[i]!] = headers[i + 1]!
  return record
}
