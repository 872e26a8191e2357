/**
 * Playlists and segments over HTTP: a Fastify plugin, for Millrace and for other applications.
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
import { PlaybackTokens, type PlaybackTokenLimits } from '../auth/playback-token.ts'
import { mayHaveDirectives, parseDirectives, versionToReplace } from './directives.ts'
import { borrowFile, PREVIEW_URI } from './file-loan.ts'
import type { RepeatedRequests } from './guard/repeated-requests.ts'
import { onceClosed, refuse, sendFile } from './file-reply.ts'
import { nodeCallOf } from './node-access.ts'
import { accessOf, cacheControl, isPublic, type AccessParams } from './playback-access.ts'
import type {
  DeliveryDirectives,
  PlayableStream,
  PlaybackSource,
  StreamFile,
} from '../contract/streams.ts'
import { answerPlainRequests } from './plain-requests.ts'
import { ViewerReports } from './viewer-reports.ts'
import { WaitingRequests } from './waiting-requests.ts'

export { PlaybackTokens }
export type { PlayableStream, PlaybackSource, StreamFile }

export interface PlaybackOptions {
  /** Queried for each request; ids and names have 1 to 160 characters of `A-Z a-z 0-9 . _ ~ -` and no leading dot. */
  readonly source: PlaybackSource
  /**
   * Verifies the `:token` in the prefix, for example `/t/:token/video`. Under a prefix without it, streams are refused
   * unless they are public. Undefined: no stream needs a token.
   */
  readonly tokens?: PlaybackTokens | undefined
  /** Called for each reply with bytes of a file: its stream, the name of the file, and the size of the body. */
  readonly onSent?: OnSent
  /** Whether plain requests are answered before hooks and routes of the application, at half the cost; default: false. */
  readonly beforeRouter?: boolean
  /** With `beforeRouter`: those of Millrace's own guard, for requests that need not be parsed again; default: none. */
  readonly repeated?: RepeatedRequests
}

export type OnSent = (stream: PlayableStream, name: string, sizeBytes: number) => void

/**
 * Adds `GET|HEAD {prefix}/{stream_id}/{file}`, readable from every origin; with `tokens` also `{prefix}/{stream_id}`, for
 * proxies that ask for access.
 *
 * Files and refusals are written straight to the socket: hooks up to `preHandler` run (an application may authorize
 * there), but `onSend` hooks and headers of other plugins do not apply. Failures are JSON replies like those of the API.
 */
export const playback: FastifyPluginAsync<PlaybackOptions> = async (app, options) => {
  const { source, tokens, onSent } = options
  const viewers = new ViewerReports(source)
  const waiting = new WaitingRequests()
  app.addHook('preClose', async () => waiting.close())
  if (options.beforeRouter === true) {
    const stop = answerPlainRequests(app.server, {
      prefix: app.prefix,
      findPublic: (streamId) => {
        const stream = source.findStream(streamId)
        return isPublic(stream, tokens) ? stream : undefined
      },
      isReported: (request, stream, name) =>
        UNCOUNTED.has(name) || viewers.isKnown(request, stream),
      onSent,
      repeated: options.repeated,
    })
    // While the server closes, replies end their connections.
    app.addHook('preClose', async () => stop())
  }
  app.route<{ Params: AccessParams & { readonly file: string } }>({
    method: ['GET', 'HEAD'],
    url: '/:stream_id/:file',
    handler: (request, reply) => {
      const { stream_id: streamId, file: name } = request.params
      const stream = PLAIN_NAME.test(streamId) ? source.findStream(streamId) : undefined
      const access = accessOf(request, stream, tokens)
      if (typeof access === 'string') return refuseFile(reply, new MillraceError(access))
      if (stream === undefined) return refuseFile(reply, NO_STREAM)
      if (!PLAIN_NAME.test(name)) return refuseFile(reply, absence(stream))
      const directives = readDirectives(request, stream, name)
      if (directives instanceof MillraceError) return refuse(reply, directives)
      const findNext = () => source.findStream(streamId)
      const sent = { request, reply, viewers, onSent }
      answer({ ...sent, stream, findNext, name, ...access, directives }, waiting)
    },
  })
  if (tokens !== undefined) {
    app.get<{ Params: AccessParams }>('/:stream_id', (request, reply) => {
      const stream = source.findStream(request.params.stream_id)
      // Only its owner knows whether a stream of another node is public.
      const known = stream?.files.refusal === undefined ? stream : undefined
      const access = accessOf(request, known, tokens)
      if (typeof access === 'string') return refuseFile(reply, new MillraceError(access))
      reply.code(204).header('cache-control', 'no-store').send()
    })
  }
  app.options('/:stream_id/:file', (_request, reply) => {
    reply.code(204).headers(PREFLIGHT_HEADERS).send()
  })
}

const PLAIN_NAME = /^(?!\.)[A-Za-z0-9._~-]{1,160}$/

/**
 * Request headers that a preflight allows. The wildcard does not cover Authorization (Fetch standard, CORS non-wildcard
 * request-header name). Older browsers do not support the wildcard, so the list names the headers that players send,
 * including the CMCD headers (CTA-5004).
 */
const ALLOWED_HEADERS =
  '*, Authorization, Range, If-None-Match, If-Range, CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status'

const PREFLIGHT_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': ALLOWED_HEADERS,
  'access-control-max-age': '86400',
}

/** A request for a file of a stream. */
interface FileRequest {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly viewers: ViewerReports
  readonly stream: PlayableStream
  /** Finds the stream at its next owner, when it has left. */
  readonly findNext: () => PlayableStream | undefined
  readonly name: string
  /** Limits of the playback token, if the URL has one. */
  readonly token: PlaybackTokenLimits | undefined
  readonly directives: DeliveryDirectives
  readonly onSent: OnSent | undefined
}

/** Delivery directives of a request; none for a playlist that does not offer to wait (RFC 8216bis 6.2.5). */
function readDirectives(
  { url, query, headers }: FastifyRequest,
  { files }: PlayableStream,
  name: string,
): DeliveryDirectives | MillraceError {
  if (!isPlaylist(name)) return {}
  const otherThan = versionToReplace(headers)
  if (otherThan !== undefined) return { otherThan }
  if (!mayHaveDirectives(url)) return {}
  const playlist = files.get(name)
  const isOffered = playlist === undefined || playlist.blocking !== undefined
  return isOffered ? parseDirectives(query as Record<string, unknown>) : {}
}

/** Sends the file, or waits for it if it is to come. */
function answer(asked: FileRequest, waiting: WaitingRequests): void {
  const { reply, stream, name, directives } = asked
  // Most requests are for a file that exists.
  const { mediaSequence, otherThan, skip } = directives
  const isPatient = mediaSequence !== undefined || otherThan !== undefined || skip === true
  if (!isPatient && sendCurrent(asked)) return
  const availability = stream.files.availability?.(name, directives)
  if (availability === 'beyond') refuseFile(reply, TOO_FAR_AHEAD)
  else if (availability === 'future') answerLater(asked, waiting)
  else if (!isPatient || !sendCurrent(asked)) refuseFile(reply, absence(stream, name))
}

/** Waits for the file, then answers. */
function answerLater(asked: FileRequest, waiting: WaitingRequests): void {
  const { request, reply, stream, name, directives } = asked
  const { files } = stream
  waiting.wait(reply, {
    maxMs: maxWaitMs(stream, name),
    begin: (onOver) => files.wait?.(name, directives, onOver),
    answer: (end) => {
      // Another node looks for the next owner itself.
      const mayGoOn = stream.hasLeft === true && nodeCallOf(request) === undefined
      const next = mayGoOn ? asked.findNext() : undefined
      if (next !== undefined && next !== stream) {
        answer({ ...asked, stream: next }, waiting)
        return
      }
      // The version that the client has, 304, is an answer as well.
      const isOver = end === 'over' || (end === 'late' && directives.otherThan !== undefined)
      if (isOver && sendCurrent(asked)) return
      const isAbsent = end === 'over' || (isPlaylist(name) && files.get(name) === undefined)
      if (end === 'closing') refuseFile(reply, new MillraceError('SHUTTING_DOWN'))
      else if (end === 'refused') refuseFile(reply, new MillraceError('TOO_MANY_WAITING'))
      else refuseFile(reply, isAbsent ? absence(stream, name) : new MillraceError('MEDIA_LATE'))
    },
  })
}

/** Longest wait in milliseconds: players give up after 10 s. */
const MAX_WAIT_MS = 9000

/** Longest wait for a playlist, or for a part that it hints, in milliseconds. */
function maxWaitMs({ files }: PlayableStream, name: string): number {
  const playlist = files.get(isPlaylist(name) ? name : 'playlist.m3u8')
  return Math.min(playlist?.blocking?.maxWaitMs ?? Infinity, MAX_WAIT_MS)
}

function isPlaylist(name: string): boolean {
  return name.endsWith('.m3u8')
}

/** @returns whether the file exists */
function sendCurrent(asked: FileRequest): boolean {
  const { request, reply, stream, name, token, directives, onSent } = asked
  const loan = borrowFile(stream, name, directives)
  if (loan === undefined) return false
  if (loan.end !== undefined) onceClosed(reply, loan.end)
  const { blocking, maxAgeSec } = loan.file
  // The URL with the directives never names later media (RFC 8216bis appendix B.1).
  const isBlocking = directives.mediaSequence !== undefined && blocking !== undefined
  const lifetimeSec = isBlocking ? blocking.maxAgeSec : maxAgeSec
  const sizeBytes = sendFile(request, reply, loan.file, cacheControl(token, lifetimeSec))
  if (sizeBytes > 0) onSent?.(stream, name, sizeBytes)
  if (!UNCOUNTED.has(name)) asked.viewers.push(request, stream)
  return true
}

/**
 * Files that are no sign of a viewer: the preview, which pages show in lists of streams, and the multivariant playlist,
 * which players read once, hls.js 1.7 without its session id.
 */
const UNCOUNTED: ReadonlySet<string> = new Set([PREVIEW_URI, 'master.m3u8'])

const NO_STREAM = new MillraceError('STREAM_NOT_FOUND')
const LEFT = new MillraceError('NOT_OWNER')
const NO_FILE = new MillraceError('FILE_NOT_FOUND')
const NO_PLAYLIST = new MillraceError('FILE_NOT_FOUND', {
  message: 'the stream has no playlist yet',
  retryAfterSec: 1,
})
const NO_PREVIEW = new MillraceError('FILE_NOT_FOUND', {
  message: 'the stream has no video, no complete segment yet, or its key frames exceed 4 MiB',
})
const TOO_FAR_AHEAD = new MillraceError('MEDIA_TOO_FAR_AHEAD')

/** Reason for which a stream does not have a file. */
function absence({ files, status, hasLeft }: PlayableStream, name?: string): MillraceError {
  if (hasLeft === true) return LEFT
  const refusal = name === undefined ? undefined : files.refusal?.(name)
  if (refusal !== undefined) return refusal
  if (name === PREVIEW_URI) return NO_PREVIEW
  const isPlayable = status === 'STOPPED' || files.get('playlist.m3u8') !== undefined
  return isPlayable ? NO_FILE : NO_PLAYLIST
}

/** For one second, lets a shared cache answer a crowd, for example one that waits for the first segment. */
const BRIEFLY = ['Cache-Control', 'public, max-age=1']

/** No cache may store a refusal of access, since caches may share replies between tokens. */
const NEVER = ['Cache-Control', 'no-store']

function refuseFile(reply: FastifyReply, refusal: MillraceError): void {
  const { httpStatus, retryAfterSec = httpStatus === 503 ? 1 : undefined } = refusal
  const caching = httpStatus === 401 || httpStatus === 403 ? NEVER : BRIEFLY
  const retrying = retryAfterSec === undefined ? [] : ['Retry-After', String(retryAfterSec)]
  refuse(reply, refusal, [...caching, ...retrying])
}
