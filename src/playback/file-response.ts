/**
 * Response with a file: the whole of it, a range, 304, or a refusal as JSON (RFC 9110 section 13.2.2).
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PlaybackTokenLimits } from '../auth/playback-token.ts'
import type { StreamFile } from './playback-source.ts'
import { MillraceError, type ErrorCode } from '../errors.ts'
import { cacheControl } from './access.ts'
import { codingOf } from './content-coding.ts'
import { asRefusal, logFailure, writeRefusal } from '../http/error-handler.ts'
import {
  clientHas,
  closingOf,
  CORS_HEADERS,
  writeResponse,
  type Headers,
} from '../http/response.ts'
import type { Logger } from '../logger.ts'
import { representationOf } from './representation.ts'

interface FileResponseOptions {
  /** See `cacheControl`. */
  readonly isBlocking: boolean
  readonly token: PlaybackTokenLimits | undefined
}

/** @returns size of the body in bytes; 0 for a response without bytes of the file */
export function sendFile(
  { method, headers: asked }: IncomingMessage,
  response: ServerResponse,
  file: StreamFile,
  { isBlocking, token }: FileResponseOptions,
): number {
  if (file.location !== undefined) {
    const headers = ['Location', file.location, 'Cache-Control', cacheControl(file, false, token)]
    writeResponse(response, 302, [...headers, ...CORS_HEADERS])
    return 0
  }
  const prepared = representationOf(file, codingOf(file, asked['accept-encoding']))
  const { etag, body, sizeBytes } = prepared
  const isWhole = method === 'GET' && asked['if-none-match'] === undefined
  // Most requests.
  if (isWhole && token === undefined && (asked.range === undefined || !file.immutable)) {
    const headers = isBlocking ? prepared.blockingHeaders : prepared.publicHeaders
    writeResponse(response, 200, headers, body)
    return sizeBytes
  }
  const first = ['ETag', etag, 'Cache-Control', cacheControl(file, isBlocking, token)]
  if (clientHas(etag, asked['if-none-match'])) {
    writeResponse(response, 304, [...first, ...prepared.headers])
    return 0
  }
  const isHead = method === 'HEAD'
  const range = file.immutable && !isHead ? requestedRange(asked, etag, sizeBytes) : undefined
  if (range === undefined) {
    writeResponse(response, 200, [...first, ...prepared.fullHeaders], isHead ? [] : body)
    return isHead ? 0 : sizeBytes
  }
  if (range === 'unsatisfiable') {
    const described = ['Content-Range', `bytes */${sizeBytes}`]
    writeRefusal(response, OUTSIDE_FILE, [...described, ...CORS_HEADERS])
    return 0
  }
  const sentBytes = range.last - range.first + 1
  const described = ['Content-Range', `bytes ${range.first}-${range.last}/${sizeBytes}`]
  const length = ['Content-Length', String(sentBytes)]
  writeResponse(
    response,
    206,
    [...first, ...prepared.contentHeaders, ...described, ...length],
    sliceChunks(prepared.chunks, range),
  )
  return sentBytes
}

const OUTSIDE_FILE = new MillraceError('RANGE_NOT_SATISFIABLE')

/** Range whose If-Range, if any, matches (RFC 9110 sections 13.1.5 and 14.2). */
function requestedRange(
  { range, 'if-range': ifRange }: IncomingMessage['headers'],
  etag: string,
  sizeBytes: number,
) {
  if (range === undefined) return undefined
  if (ifRange !== undefined && ifRange !== etag) return undefined
  return parseByteRange(range, sizeBytes)
}

/** First and last byte, inclusive, within the file. */
interface ByteRange {
  readonly first: number
  readonly last: number
}

/**
 * Parses a Range header.
 *
 * @param sizeBytes  size of the file
 * @returns undefined for a header to ignore: another range unit, several ranges, or a malformed range; `unsatisfiable`
 *   when the range has no byte of the file
 */
function parseByteRange(
  header: string,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/i.exec(header) ?? []
  if (from === '' && to === '') return undefined
  const first = from === '' ? Math.max(0, sizeBytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? Infinity : Number(to)
  if (last < first) return undefined
  return first < sizeBytes ? { first, last: Math.min(last, sizeBytes - 1) } : 'unsatisfiable'
}

/** @returns views of the bytes in the range */
function sliceChunks(chunks: readonly Buffer[], { first, last }: ByteRange): Buffer[] {
  const slices: Buffer[] = []
  let start = 0
  for (const chunk of chunks) {
    const slice = chunk.subarray(Math.max(0, first - start), Math.max(0, last + 1 - start))
    if (slice.length > 0) slices.push(slice)
    start += chunk.length
  }
  return slices
}

/** Refusals that are alike for all who ask: for one second, a shared cache answers a crowd with them. */
const SHARED: ReadonlySet<ErrorCode> = new Set([
  'STREAM_NOT_FOUND',
  'FILE_NOT_FOUND',
  'MEDIA_TOO_FAR_AHEAD',
  'MEDIA_LATE',
  'ORIGIN_UNREACHABLE',
  'ARCHIVE_UNAVAILABLE',
])
const BRIEFLY = ['Cache-Control', 'public, max-age=1']

/** Others are for a client, whose token may not be in the key of a cache, or for this node, beside which others may answer. */
const NEVER = ['Cache-Control', 'no-store']

/** Sends a refusal of a file, which scripts of any origin can read. */
export function refuseFile(response: ServerResponse, refusal: MillraceError): void {
  const { code, httpStatus, retryAfterSec = httpStatus === 503 ? 1 : undefined } = refusal
  const caching = SHARED.has(code) ? BRIEFLY : NEVER
  const retrying: Headers =
    retryAfterSec === undefined ? [] : ['Retry-After', String(retryAfterSec)]
  writeRefusal(response, refusal, [...caching, ...retrying, ...CORS_HEADERS])
}

/**
 * Answers a request for a file that has failed, and logs an internal error. A response that has begun ends with its
 * connection.
 *
 * @param route  of the request, for the log
 */
export function failFile(
  response: ServerResponse,
  error: unknown,
  { logger, route }: { readonly logger: Logger; readonly route: string },
): void {
  const request = response.req
  const refusal = asRefusal(error)
  if (refusal.code === 'INTERNAL') logFailure(logger, { err: error, method: request.method, route })
  if (response.headersSent) {
    if (!response.writableEnded) closingOf(response).destroy()
    return
  }
  request.resume()
  refuseFile(response, refusal)
}
