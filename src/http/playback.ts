/**
 * Playlists and segments over HTTP: a Fastify plugin, in Millrace and in other applications.
 *
 * ```ts
 * import { playback } from 'millrace/fastify'
 * await app.register(playback, { prefix: '/video', source: server })
 * ```
 *
 * @module
 */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { MillraceError } from '../errors.ts'
import { parseByteRange, sliceChunks } from './byte-range.ts'
import { sendRefusal } from './error-handler.ts'
import type { PlayableStream, PlaybackSource, StreamFile } from '../contract/streams.ts'

export type { PlayableStream, PlaybackSource, StreamFile }

export interface PlaybackOptions {
  /** Asked anew for each request. Ids and names it gets are at most 160 of `A-Z a-z 0-9 . _ ~ -`, the first no dot. */
  readonly source: PlaybackSource
}

/**
 * Adds `GET|HEAD {prefix}/{stream_id}/{file}`, public and readable from every origin.
 *
 * Files are written straight to the socket: hooks up to `preHandler` run (an application may authorize there), `onSend`
 * hooks and headers set by other plugins do not reach them. Failures are replies in JSON like those of the API.
 */
export const playback: FastifyPluginAsync<PlaybackOptions> = async (app, { source }) => {
  app.route<{ Params: { stream_id: string; file: string } }>({
    method: ['GET', 'HEAD'],
    url: '/:stream_id/:file',
    handler: (request, reply) => {
      const { stream_id: streamId, file: name } = request.params
      const stream = PLAIN_NAME.test(streamId) ? source.findStream(streamId) : undefined
      const file = PLAIN_NAME.test(name) ? stream?.files.get(name) : undefined
      if (file === undefined) refuseFile(reply, stream)
      else sendFile(request, reply, file)
    },
  })
  app.options('/:stream_id/:file', (_request, reply) => {
    reply.code(204).headers(PREFLIGHT_HEADERS).send()
  })
}

const PLAIN_NAME = /^(?!\.)[A-Za-z0-9._~-]{1,160}$/

// Written here and not with @fastify/cors: that takes a place in an application which only one plugin can have, and its
// headers do not reach what goes straight to the socket.
const EXPOSED_HEADERS = 'Age, Content-Length, Content-Range, Date, ETag'

const PREFLIGHT_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'Range, If-None-Match, If-Range',
  'access-control-max-age': '86400',
}

/** Cache lifetimes are in target durations (RFC 8216bis appendix B.1). */
const KINDS = {
  'media-playlist': { contentType: 'application/vnd.apple.mpegurl', lifetime: 0.5, caching: '' },
  'multivariant-playlist': {
    contentType: 'application/vnd.apple.mpegurl',
    lifetime: 1,
    caching: '',
  },
  segment: { contentType: 'video/mp2t', lifetime: 6, caching: ', immutable' },
} as const

/** Answers with the file, with a range of it, or with 304 (RFC 9110 section 13.2.2). */
function sendFile(request: FastifyRequest, reply: FastifyReply, file: StreamFile): void {
  const { chunks, kind, version, targetDurationSec } = file
  const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
  const { contentType, lifetime, caching } = KINDS[kind]
  const etag = `"${version}"`
  const maxAge = `max-age=${Math.floor(targetDurationSec * lifetime)}`
  const headers: Headers = ['ETag', etag, 'Cache-Control', `public, ${maxAge}${caching}`]
  headers.push('Access-Control-Allow-Origin', '*')
  headers.push('Access-Control-Expose-Headers', EXPOSED_HEADERS)
  if (isKnown(etag, request.headers['if-none-match'])) return write(reply, 304, headers)

  headers.push('Content-Type', contentType)
  if (kind === 'segment') headers.push('Accept-Ranges', 'bytes')
  const range = kind === 'segment' ? requestedRange(request, etag, sizeBytes) : undefined
  if (range === undefined) {
    headers.push('Content-Length', sizeBytes)
    write(reply, 200, headers, chunks)
  } else if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${sizeBytes}`)
    refuse(reply, new MillraceError('RANGE_NOT_SATISFIABLE'))
  } else {
    const { first, last } = range
    headers.push('Content-Range', `bytes ${first}-${last}/${sizeBytes}`)
    headers.push('Content-Length', last - first + 1)
    write(reply, 206, headers, sliceChunks(chunks, range))
  }
}

type Headers = (string | number)[]

/**
 * A flat list straight to the socket costs 17 µs of CPU a reply, `reply.send` 20 µs, an object of headers on bare
 * `node:http` 21 µs (400-byte body, 16 connections). Node leaves the body out where the method is HEAD.
 */
function write(
  reply: FastifyReply,
  status: number,
  headers: Headers,
  chunks: readonly Buffer[] = [],
): void {
  const { raw } = reply
  // The types know lists of strings only; Node takes numbers.
  raw.writeHead(status, headers as string[])
  reply.hijack()
  if (chunks.length <= 1) {
    raw.end(chunks[0])
    return
  }
  // Corked, head and chunks leave in one system call.
  raw.cork()
  for (const chunk of chunks) raw.write(chunk)
  raw.end()
}

/** If-None-Match, compared weakly (RFC 9110 section 13.1.2). */
function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const known = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known[0] === '*'
}

/** Range counts for GET alone, and where If-Range names these very bytes (RFC 9110 sections 13.1.5 and 14.2). */
function requestedRange({ method, headers }: FastifyRequest, etag: string, sizeBytes: number) {
  const { range, 'if-range': ifRange } = headers
  if (range === undefined || method !== 'GET') return undefined
  if (ifRange !== undefined && ifRange !== etag) return undefined
  return parseByteRange(range, sizeBytes)
}

function refuseFile(reply: FastifyReply, stream: PlayableStream | undefined): void {
  // A shared cache may shield us from a crowd that asks before the first segment, but not for long.
  reply.header('cache-control', 'public, max-age=1')
  if (stream === undefined) return refuse(reply, new MillraceError('STREAM_NOT_FOUND'))
  if (stream.files.get('playlist.m3u8') !== undefined || stream.status === 'STOPPED') {
    return refuse(reply, new MillraceError('FILE_NOT_FOUND'))
  }
  reply.header('retry-after', '1')
  refuse(reply, new MillraceError('FILE_NOT_FOUND', { message: 'the stream has no playlist yet' }))
}

function refuse(reply: FastifyReply, refusal: MillraceError): void {
  reply.header('access-control-allow-origin', '*')
  reply.header('access-control-expose-headers', EXPOSED_HEADERS)
  sendRefusal(reply, refusal)
}
