/**
 * Representations of a file as they are sent: bytes and headers, prepared once for all readers (RFC 9110 section 3.2).
 *
 * @module
 */
import { totalBytes } from '../binary/total-bytes.ts'
import type { StreamFile } from './playback-source.ts'
import { cacheControl } from './access.ts'
import { compress, isCompressible, type ContentCoding } from './content-coding.ts'
import { CORS_HEADERS, type Body, type Headers } from '../http/response.ts'

interface Representation {
  /** Strong tag: representations in different codings have different ones (RFC 9110 section 8.8.3.3). */
  readonly etag: string
  readonly chunks: readonly Buffer[]
  /** The same bytes for `writeResponse`. */
  readonly body: Body
  readonly sizeBytes: number
  /** Headers of every response, besides ETag and Cache-Control. */
  readonly headers: Headers
  /** `headers` and those of the content, without its length. */
  readonly contentHeaders: Headers
  /** All headers of a response with the whole body, besides ETag and Cache-Control. */
  readonly fullHeaders: Headers
  /** All headers of a response with the whole body to a viewer without a token. */
  readonly publicHeaders: Headers
  /** The same for a URL that names media which the file has. */
  readonly blockingHeaders: Headers
}

/** Maximum size of a body that leaves in one string with its head: libuv copies up to 16 KiB, larger ones as they are. */
const MAX_TEXT_BYTES = 15 * 1024

const prepared = new WeakMap<
  StreamFile,
  Partial<Record<ContentCoding | 'identity', Representation>>
>()

/**
 * @param file  the same object for all readers, since it is the key of what is prepared
 * @param coding  undefined, or a coding of a compressible file
 */
export function representationOf(file: StreamFile, coding?: ContentCoding): Representation {
  let codings = prepared.get(file)
  if (codings === undefined) {
    codings = {}
    prepared.set(file, codings)
  }
  return (codings[coding ?? 'identity'] ??= prepare(file, coding))
}

function prepare(file: StreamFile, coding: ContentCoding | undefined): Representation {
  const { version, immutable, contentType } = file
  const chunks = coding === undefined ? file.chunks : compress(file, coding)
  const sizeBytes = totalBytes(chunks)
  const headers = [...CORS_HEADERS, ...(isCompressible(file) ? ['Vary', 'Accept-Encoding'] : [])]
  const contentHeaders = [...headers, 'Content-Type', contentType]
  if (coding !== undefined) contentHeaders.push('Content-Encoding', coding)
  if (immutable) contentHeaders.push('Accept-Ranges', 'bytes')
  // Not of media, which would be in memory twice.
  const isText = isCompressible(file) && sizeBytes <= MAX_TEXT_BYTES
  const etag = coding === undefined ? `"${version}"` : `"${version}-${coding}"`
  const fullHeaders = [...contentHeaders, 'Content-Length', String(sizeBytes)]
  const publicHeaders = (isBlocking: boolean) => {
    return ['ETag', etag, 'Cache-Control', cacheControl(file, isBlocking), ...fullHeaders]
  }
  return {
    etag,
    chunks,
    body: isText ? Buffer.concat(chunks).toString('latin1') : chunks,
    sizeBytes,
    headers,
    contentHeaders,
    fullHeaders,
    publicHeaders: publicHeaders(false),
    blockingHeaders: publicHeaders(true),
  }
}
