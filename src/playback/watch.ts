/**
 * Player page `/watch/{stream_id}`: plays a stream, or shows why there is nothing to play.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import { MillraceError } from '../errors.ts'
import { nodeCallOf } from '../http/node-access.ts'
import { readPage, serveFile, type StaticPage } from '../http/static-files.ts'
import { MULTIVARIANT_URI, REWIND_URI } from '../hls/file-names.ts'
import { accessOf, viewerOf, type AccessParams } from './access.ts'
import type { RemoteStreams } from './remote-streams.ts'
import { isStreamId } from '../auth/stream-id.ts'
import type { PlayableStream, PlaybackSource } from './playback-source.ts'

interface WatchOptions {
  readonly source: PlaybackSource
  /** See `PlaybackOptions`. */
  readonly tokens?: PlaybackTokens | undefined
  /** Streams of other nodes; default: none. */
  readonly remote?: Pick<RemoteStreams, 'passState'> | undefined
  /** Sites that may show the page in a frame, as `frame-ancestors` has them, keywords also without quotes; empty, the default: all. */
  readonly frameAncestors?: string | undefined
}

// hls.js runs its demuxer in a worker created from a blob, and passes media to the video element as a blob URL.
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; worker-src 'self' blob:; media-src 'self' blob:; img-src 'self' data:; " +
  "object-src 'none'; base-uri 'none'; form-action 'none'"

const ASSETS_CACHE_CONTROL = 'public, max-age=600'

/** Read once for all prefixes. */
let page: StaticPage | undefined

/** Fastify plugin for the prefix `/watch`, beside playback with the prefix `/video`; both may have the same prefix before that. */
export const watch: FastifyPluginAsync<WatchOptions> = async (app, options) => {
  const { source, tokens, remote, frameAncestors = '' } = options
  const ancestors = frameAncestors.replaceAll(/(?<!\S)(none|self)(?!\S)/g, "'$1'")
  const framing = ancestors === '' ? '' : `; frame-ancestors ${ancestors}`
  const passState = remote?.passState(app)
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'content-security-policy': CONTENT_SECURITY_POLICY + framing,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
  })

  page ??= readPage('player', { 'hls.min.js': 'hls.js/dist/hls.min.js' })
  for (const file of page.assets) serveFile(app, `/assets/${file.name}`, file, ASSETS_CACHE_CONTROL)
  const { type, content } = page.html
  const template = content.toString()

  type PageRequest = { Params: { stream_id: string }; Querystring: { embed?: unknown } }
  app.get<PageRequest>('/:stream_id', ({ params, query }, reply) => {
    if (!isStreamId(params.stream_id)) throw new MillraceError('STREAM_NOT_FOUND')
    // Valid ids need no escaping in HTML nor in URLs.
    const html = template
      .replaceAll('{{stream_id}}', params.stream_id)
      .replace('{{layout}}', (query.embed ?? '0') === '0' ? '' : 'embed')
    reply.type(type).header('cache-control', 'no-cache').send(html)
  })

  app.get<{ Params: AccessParams }>('/:stream_id/state', (request, reply) => {
    reply.header('cache-control', 'no-store')
    const streamId = request.params.stream_id
    const stream = source.findStream(streamId)
    const access = accessOf(viewerOf(request), stream, tokens)
    const isRefused = typeof access === 'string'
    // A call of another node is for a stream of this one.
    const mayBeRemote = stream === undefined && nodeCallOf(request.raw) === undefined
    // Only its owner knows whether a stream is public.
    const mayPass = mayBeRemote && (!isRefused || access === 'PLAYBACK_TOKEN_MISSING')
    if (mayPass && passState !== undefined) {
      return passState(request, reply, streamId).catch((error: unknown) => {
        const isUnknown = error instanceof MillraceError && error.code === 'STREAM_NOT_FOUND'
        throw isUnknown && isRefused ? new MillraceError(access) : error
      })
    }
    if (isRefused) throw new MillraceError(access)
    if (stream === undefined) throw new MillraceError('STREAM_NOT_FOUND')
    return reply.send({ success: true, data: pageState(stream) })
  })
}

/** What the page needs, and no more: it has no login. */
function pageState(stream: PlayableStream): object {
  const { status, live, isBeginning, onAir, files, stateSinceMs, stopsAtMs } = stream
  const isCurrent = (name: string) => files.availability?.(name) === 'current'
  // Behind an interruption, what can be played is what came before it.
  const isFirst = status === 'STREAMING' && isBeginning === true
  return {
    status,
    live,
    time: new Date(),
    ...(onAir === 'slate' && isCurrent(MULTIVARIANT_URI) && { slate: true }),
    ...(isFirst && isCurrent(MULTIVARIANT_URI) && { playable: true }),
    ...(isCurrent(REWIND_URI) && { rewind: true }),
    ...(stateSinceMs !== undefined && { since: new Date(stateSinceMs) }),
    ...(status === 'INTERRUPTED' && stopsAtMs && { stops_at: new Date(stopsAtMs) }),
  }
}
