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
import { lifetimeOf } from './cache-lifetime.ts'
import { emitterOf, exchangeOf } from './connection.ts'
import { readDirectives } from './directives.ts'
import { absence, answerFile, NO_STREAM, type FileReply, type OnSent } from './file-answer.ts'
import { PREVIEW_URI } from './file-loan.ts'
import type { RepeatedRequests } from './guard/repeated-requests.ts'
import { refuse, refuseFile, sendFile } from './file-reply.ts'
import { nodeCallOf } from './node-access.ts'
import { accessOf, cacheControl, isPublic, type AccessParams } from './playback-access.ts'
import { isStreamId } from '../contract/schema.ts'
import type { FileLoan, PlayableStream, PlaybackSource, StreamFile } from '../contract/streams.ts'
import { answerPlainRequests } from './plain-requests.ts'
import { ViewerReports } from './viewer-reports.ts'
import { WaitingRequests } from './waiting-requests.ts'

export { PlaybackTokens }
export type { OnSent, PlayableStream, PlaybackSource, StreamFile }

export interface PlaybackOptions {
  /** Queried for each request, with stream ids alone; names have 1 to 160 of their characters, and no leading dot. */
  readonly source: PlaybackSource
  /**
   * Verifies the `:token` in the prefix, for example `/t/:token/video`. Under a prefix without it, streams are refused
   * unless they are public. Undefined: no stream needs a token.
   */
  readonly tokens?: PlaybackTokens | undefined
  /** Called for each reply with bytes of a file: its stream, the name of the file, and the size of the body. */
  readonly onSent?: OnSent
  /** Whether plain requests are answered before hooks and routes of the application, at half the cost; refusals too; default: false. */
  readonly beforeRouter?: boolean
  /** With `beforeRouter`: those of Millrace's own guard, for requests that need not be parsed again; default: none. */
  readonly repeated?: RepeatedRequests
}

/**
 * Adds `GET|HEAD {prefix}/{stream_id}/{file}`, readable from every origin; with `tokens` also `{prefix}/{stream_id}`, for
 * proxies that ask for access.
 *
 * Files and refusals are written straight to the socket: hooks up to `preHandler` run (an application may authorize
 * there), but `onSend` hooks and headers of other plugins do not apply. Failures are JSON replies like those of the API.
 */
export const playback: FastifyPluginAsync<PlaybackOptions> = async (app, options) => {
  const { source, tokens, onSent } = options
  const find = (id: string) => (isStreamId(id) ? source.findStream(id) : undefined)
  const viewers = new ViewerReports(source)
  const waiting = new WaitingRequests()
  app.addHook('preClose', async () => waiting.close())
  if (options.beforeRouter === true) {
    const stop = answerPlainRequests(app.server, {
      prefix: app.prefix,
      findPublic: (streamId) => {
        const stream = find(streamId)
        if (!isPublic(stream, tokens)) return NO_TOKEN
        return stream ?? NO_STREAM
      },
      isReported: (request, stream, name) =>
        UNCOUNTED.has(name) || viewers.isKnown(request, stream),
      onSent,
      waiting,
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
      const stream = find(streamId)
      const access = accessOf(request, stream, tokens)
      if (typeof access === 'string') return refuseFile(reply, new MillraceError(access))
      if (stream === undefined) return refuseFile(reply, NO_STREAM)
      if (!PLAIN_NAME.test(name)) return refuseFile(reply, absence(stream))
      const directives = readDirectives(request, stream, name)
      if (directives instanceof MillraceError) return refuse(reply, directives)
      answerFile(
        {
          stream,
          name,
          directives,
          onlyKnown: false,
          reply: new RoutedReply(request, reply, { ...access, viewers, onSent }),
          exchange: exchangeOf(reply),
          // Another node looks for the next owner itself.
          findNext: () => (nodeCallOf(request) === undefined ? find(streamId) : undefined),
        },
        waiting,
      )
    },
  })
  if (tokens !== undefined) {
    app.get<{ Params: AccessParams }>('/:stream_id', (request, reply) => {
      const stream = find(request.params.stream_id)
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

/**
 * Files that are no sign of a viewer: the preview, which pages show in lists of streams, and the multivariant playlists,
 * which players read once, hls.js 1.7 without its session id.
 */
const UNCOUNTED: ReadonlySet<string> = new Set([PREVIEW_URI, 'master.m3u8', 'ts.m3u8'])

const NO_TOKEN = new MillraceError('PLAYBACK_TOKEN_MISSING')

interface RoutedOptions {
  /** Limits of the playback token, if the URL has one. */
  readonly token: PlaybackTokenLimits | undefined
  readonly viewers: ViewerReports
  readonly onSent: OnSent | undefined
}

/** Reply to a request that has come to the route. */
class RoutedReply implements FileReply {
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #options: RoutedOptions

  constructor(request: FastifyRequest, reply: FastifyReply, options: RoutedOptions) {
    this.#request = request
    this.#reply = reply
    this.#options = options
  }

  send(stream: PlayableStream, name: string, { file, end }: FileLoan, isBlocking: boolean): void {
    const { token, viewers, onSent } = this.#options
    if (end !== undefined) emitterOf(this.#reply).once('close', end)
    const caching = cacheControl(token, lifetimeOf(file, isBlocking))
    const sizeBytes = sendFile(this.#request, this.#reply, file, caching)
    if (sizeBytes > 0) onSent?.(stream, name, sizeBytes)
    if (!UNCOUNTED.has(name)) viewers.push(this.#request, stream)
  }

  refuse(refusal: MillraceError): void {
    refuseFile(this.#reply, refusal)
  }
}
