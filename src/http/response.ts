/**
 * Responses over HTTP/1.1 and HTTP/2 without a framework: whole ones with prepared headers, and bodies sent as they come.
 *
 * @module
 */
import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Writable } from 'node:stream'

/** Names and values in turn. */
export type Headers = readonly string[]

/** Buffers, or a text with one character for each byte (`latin1`), which leaves in one write with the head. */
export type Body = string | readonly Buffer[]

// CORS without @fastify/cors, which an application can register only once.
export const CORS_HEADERS: Headers = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  'Age, Content-Length, Content-Range, Date, ETag',
]

/** Writes a whole response. Its list of headers is the form that Node sends at the lowest cost. */
export function writeResponse(
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: Body = [],
): void {
  const isHttp2 = response.req.httpVersionMajor === 2
  // Flat lists of HTTP/2 differ between versions of Node.
  response.writeHead(status, isHttp2 ? toRecord(headers) : (headers as string[]))
  if (typeof body !== 'string') writeChunks(response, body)
  else if (isHttp2) response.end(Buffer.from(body, 'latin1'))
  else writeText(response, body)
}

function writeChunks(response: ServerResponse, chunks: readonly Buffer[]): void {
  if (chunks.length <= 1) {
    response.end(chunks[0])
    return
  }
  // Corked, head and chunks go out in one system call.
  response.cork()
  for (const chunk of chunks) response.write(chunk)
  response.end()
}

/** Writes head and text at once. `end(text)` would add a second, empty write, in a system call that costs 1 µs more. */
function writeText(response: ServerResponse, text: string): void {
  const { socket } = response
  // While the response waits for an earlier one of the connection.
  if (socket === null) {
    response.end(text, 'latin1')
    return
  }
  socket.cork()
  response.write(text, 'latin1')
  socket.uncork()
  response.end()
}

function toRecord(headers: Headers): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i < headers.length; i += 2) record[headers[i]!] = headers[i + 1]!
  return record
}

/**
 * Sends the head of a response whose body is sent as it comes, as text: the guard keeps buffers until the end.
 *
 * @returns undefined if the client has left
 */
export function openBody(
  response: ServerResponse | Http2ServerResponse,
  status: number,
  headers: Readonly<Record<string, string | string[]>>,
): Writable | undefined {
  // The guard's HTTP/2 response holds what is written until it ends. It has no stream any more when that has closed.
  const body: Writable | undefined = 'stream' in response ? response.stream : response
  if (body === undefined || body.destroyed) return undefined
  response.writeHead(status, headers)
  body.on('error', () => body.destroy())
  return body
}

/** Whether `If-None-Match` names the version that a client would get: weak comparison (RFC 9110 section 13.1.2). */
export function clientHas(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const known = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known[0] === '*'
}

/** Emitter of `close` when the kernel has the whole response, or when connection or stream has closed. */
export function closingOf(
  response: ServerResponse,
): EventEmitter & { readonly destroyed: boolean; destroy(): unknown } {
  if (response.req.httpVersionMajor < 2) return response
  // A response of HTTP/2 to HEAD does not emit it if the client leaves before the response; its stream does.
  return (response as unknown as Http2ServerResponse).stream
}

/** The TCP connection of a request; of HTTP/2 the session, since each request has a `socket` of its own. */
export function connectionOf(request: IncomingMessage): object {
  if (request.httpVersionMajor < 2) return request.socket
  const { stream } = request as unknown as Http2ServerRequest
  return stream.session ?? stream
}
