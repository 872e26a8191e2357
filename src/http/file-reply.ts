/**
 * Replies of playback, written straight to the socket: a file, a range of it, 304, or a refusal as JSON.
 *
 * @module
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { StreamFile } from '../contract/streams.ts'
import { MillraceError } from '../errors.ts'
import { parseByteRange, sliceChunks } from './byte-range.ts'
import { exchangeOf } from './connection.ts'
import { gzipped, isCompressible, prefersGzip } from './content-coding.ts'
import { sendRefusal } from './error-handler.ts'

// CORS without @fastify/cors: an application can register that only once, and replies written straight to the socket
// would not have its headers.
const EXPOSED_HEADERS = 'Age, Content-Length, Content-Range, Date, ETag'

/**
 * Sends the file, a range of it, 304 or 416 (RFC 9110 section 13.2.2).
 *
 * @param cacheControl  Cache-Control, to which `immutable` is added where the file is
 * @returns size of the body in bytes; 0 for a reply without bytes of the file
 */
export function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: StreamFile,
  cacheControl: string,
): number {
  const { contentType, version, immutable } = file
  const hasGzip = isCompressible(file)
  const isGzip = hasGzip && prefersGzip(request.headers['accept-encoding'])
  // Representations with different codings have different strong tags (RFC 9110 section 8.8.3.3).
  const etag = isGzip ? `"${version}-gzip"` : `"${version}"`
  const caching = immutable ? `${cacheControl}, immutable` : cacheControl
  const headers: Headers = ['ETag', etag, 'Cache-Control', caching]
  headers.push('Access-Control-Allow-Origin', '*')
  headers.push('Access-Control-Expose-Headers', EXPOSED_HEADERS)
  if (hasGzip) headers.push('Vary', 'Accept-Encoding')
  if (isKnown(etag, request.headers['if-none-match'])) {
    write(reply, 304, headers)
    return 0
  }

  const chunks = isGzip ? gzipped(file) : file.chunks
  const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
  headers.push('Content-Type', contentType)
  if (isGzip) headers.push('Content-Encoding', 'gzip')
  if (immutable) headers.push('Accept-Ranges', 'bytes')
  const range = immutable ? requestedRange(request, etag, sizeBytes) : undefined
  if (range === undefined) {
    headers.push('Content-Length', sizeBytes)
    const isHead = request.method === 'HEAD'
    write(reply, 200, headers, isHead ? [] : chunks)
    return isHead ? 0 : sizeBytes
  }
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${sizeBytes}`)
    refuse(reply, new MillraceError('RANGE_NOT_SATISFIABLE'))
    return 0
  }
  const { first, last } = range
  headers.push('Content-Range', `bytes ${first}-${last}/${sizeBytes}`)
  headers.push('Content-Length', last - first + 1)
  write(reply, 206, headers, sliceChunks(chunks, range))
  return last - first + 1
}

type Headers = (string | number)[]

/**
 * Writes a flat list of headers straight to the socket: 17 µs of CPU a reply, against 20 µs with `reply.send` and 21 µs
 * with an object of headers (400-byte body, 16 connections).
 */
function write(
  reply: FastifyReply,
  status: number,
  headers: Headers,
  chunks: readonly Buffer[] = [],
): void {
  const { raw } = reply
  raw.writeHead(status, isHttp2(reply) ? toRecord(headers) : headers)
  reply.hijack()
  if (chunks.length <= 1) {
    raw.end(chunks[0])
    return
  }
  // Corked, head and chunks go out in one system call.
  raw.cork()
  for (const chunk of chunks) raw.write(chunk)
  raw.end()
}

function isHttp2({ request }: FastifyReply): boolean {
  return request.raw.httpVersionMajor === 2
}

/** Headers for HTTP/2, whose flat lists differ between versions of Node. */
function toRecord(headers: Headers): Record<string, string | number> {
  const record: Record<string, string | number> = {}
  for (let i = 0; i < headers.length; i += 2) record[headers[i] as string] = headers[i + 1]!
  return record
}

/** Calls `act` exactly once: when the kernel has the whole reply, or when connection or stream has closed. */
export function onceClosed(reply: FastifyReply, act: () => void): void {
  exchangeOf(reply).once('close', act)
}

/** Weak comparison of If-None-Match (RFC 9110 section 13.1.2). */
export function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const known = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known[0] === '*'
}

/** Range of a GET request whose If-Range, if any, matches (RFC 9110 sections 13.1.5 and 14.2). */
function requestedRange({ method, headers }: FastifyRequest, etag: string, sizeBytes: number) {
  const { range, 'if-range': ifRange } = headers
  if (range === undefined || method !== 'GET') return undefined
  if (ifRange !== undefined && ifRange !== etag) return undefined
  return parseByteRange(range, sizeBytes)
}

/** Sends the envelope of a failure, which scripts of any origin can read. */
export function refuse(reply: FastifyReply, refusal: MillraceError): void {
  reply.header('access-control-allow-origin', '*')
  reply.header('access-control-expose-headers', EXPOSED_HEADERS)
  sendRefusal(reply, refusal)
}
