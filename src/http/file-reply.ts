/**
 * Replies of playback: a file, a range of it, 304, or a refusal as JSON.
 *
 * @module
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { StreamFile } from '../contract/streams.ts'
import { MillraceError } from '../errors.ts'
import { parseByteRange, sliceChunks } from './byte-range.ts'
import { codingOf } from './content-coding.ts'
import { writeRefusal } from './error-handler.ts'
import { CORS_HEADERS, writeReply, type Headers } from './raw-reply.ts'
import { representationOf } from './representation.ts'

/**
 * Sends the file, a range of it, 304 or 416 (RFC 9110 section 13.2.2).
 *
 * @param cacheControl  Cache-Control, to which `immutable` is added where the file is
 * @returns size of the body in bytes; 0 for a reply without bytes of the file
 */
export function sendFile(
  { method, headers: asked }: FastifyRequest,
  reply: FastifyReply,
  file: StreamFile,
  cacheControl: string,
): number {
  const { immutable } = file
  const coding = codingOf(file, asked['accept-encoding'])
  const { etag, chunks, body, sizeBytes, ...prepared } = representationOf(file, coding)
  const caching = immutable ? `${cacheControl}, immutable` : cacheControl
  const first = ['ETag', etag, 'Cache-Control', caching]
  if (isKnown(etag, asked['if-none-match'])) {
    writeReply(reply, 304, [...first, ...prepared.headers])
    return 0
  }
  const isHead = method === 'HEAD'
  const range = immutable && !isHead ? requestedRange(asked, etag, sizeBytes) : undefined
  if (range === undefined) {
    writeReply(reply, 200, [...first, ...prepared.fullHeaders], isHead ? [] : body)
    return isHead ? 0 : sizeBytes
  }
  if (range === 'unsatisfiable') {
    refuse(reply, OUTSIDE_FILE, ['Content-Range', `bytes */${sizeBytes}`])
    return 0
  }
  const sentBytes = range.last - range.first + 1
  const described = ['Content-Range', `bytes ${range.first}-${range.last}/${sizeBytes}`]
  writeReply(
    reply,
    206,
    [...first, ...prepared.contentHeaders, ...described, 'Content-Length', String(sentBytes)],
    sliceChunks(chunks, range),
  )
  return sentBytes
}

const OUTSIDE_FILE = new MillraceError('RANGE_NOT_SATISFIABLE')

/** Weak comparison of If-None-Match (RFC 9110 section 13.1.2). */
export function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const known = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known[0] === '*'
}

/** Range whose If-Range, if any, matches (RFC 9110 sections 13.1.5 and 14.2). */
function requestedRange(
  { range, 'if-range': ifRange }: FastifyRequest['headers'],
  etag: string,
  sizeBytes: number,
) {
  if (range === undefined) return undefined
  if (ifRange !== undefined && ifRange !== etag) return undefined
  return parseByteRange(range, sizeBytes)
}

/** Sends the envelope of a failure, which scripts of any origin can read. */
export function refuse(reply: FastifyReply, refusal: MillraceError, headers: Headers = []): void {
  writeRefusal(reply, refusal, [...headers, ...CORS_HEADERS])
}

/** Sends a refusal of a file, see `refusalHeaders`. */
export function refuseFile(reply: FastifyReply, refusal: MillraceError): void {
  writeRefusal(reply, refusal, refusalHeaders(refusal))
}

/** For one second, lets a shared cache answer a crowd, for example one that waits for the first segment. */
const BRIEFLY = ['Cache-Control', 'public, max-age=1']

/** No cache may store a refusal of access, since caches may share replies between tokens. */
const NEVER = ['Cache-Control', 'no-store']

/** Headers of a refusal of a file, besides those of its envelope. */
export function refusalHeaders({
  httpStatus,
  retryAfterSec = httpStatus === 503 ? 1 : undefined,
}: MillraceError): Headers {
  const caching = httpStatus === 401 || httpStatus === 403 ? NEVER : BRIEFLY
  const retrying = retryAfterSec === undefined ? [] : ['Retry-After', String(retryAfterSec)]
  return [...caching, ...retrying, ...CORS_HEADERS]
}
