/**
 * Player page `/watch/{stream_id}`: plays a stream, or shows why there is nothing to play.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { FastifyPluginAsync } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import { MillraceError } from '../errors.ts'
import { nodeCallOf } from './node-access.ts'
import { accessOf, type AccessParams } from './playback-access.ts'
import { liveEdgeScript } from './player/live-edge.ts'
import { playerPage } from './player/page.ts'
import { panelScript } from './player/panel.ts'
import { playerScript } from './player/script.ts'
import { playerStyle } from './player/style.ts'
import type { RemoteStreams } from './remote-streams.ts'
import { isStreamId } from '../contract/schema.ts'
import type { PlaybackSource } from '../contract/streams.ts'

export interface WatchOptions {
  readonly source: PlaybackSource
  /** See `PlaybackOptions`. */
  readonly tokens?: PlaybackTokens | undefined
  /** Streams of other nodes; default: none. */
  readonly remote?: Pick<RemoteStreams, 'passState'> | undefined
}

// hls.js runs its demuxer in a worker created from a blob, and passes media to the video element as a blob URL.
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; worker-src 'self' blob:; media-src 'self' blob:; img-src 'self' data:; " +
  "object-src 'none'; base-uri 'none'; form-action 'none'"

const SCRIPT = 'text/javascript; charset=utf-8'

interface Asset {
  readonly name: string
  readonly type: string
  readonly content: string | Buffer
}

let assets: readonly Asset[] | undefined

/** Fastify plugin for the prefix `/watch`, beside playback with the prefix `/video`; both may have the same prefix before that. */
export const watch: FastifyPluginAsync<WatchOptions> = async (app, options) => {
  const { source, tokens, remote } = options
  const passState = remote?.passState(app)
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
  })

  for (const { name, type, content } of readAssets()) {
    app.get(`/assets/${name}`, (_request, reply) => {
      reply.type(type).header('cache-control', 'public, max-age=600').send(content)
    })
  }

  app.get<{ Params: { stream_id: string } }>('/:stream_id', ({ params }, reply) => {
    if (!isStreamId(params.stream_id)) throw new MillraceError('STREAM_NOT_FOUND')
    reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(playerPage(params.stream_id))
  })

  app.get<{ Params: AccessParams }>('/:stream_id/state', (request, reply) => {
    reply.header('cache-control', 'no-store')
    const streamId = request.params.stream_id
    const stream = source.findStream(streamId)
    const access = accessOf(request, stream, tokens)
    const isRefused = typeof access === 'string'
    // A call of another node is for a stream of this one.
    const mayBeRemote = stream === undefined && nodeCallOf(request) === undefined
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
    return reply.send({
      success: true,
      data: { status: stream.status, live: stream.live, time: new Date() },
    })
  })
}

/** Reads the static files, once for all prefixes. */
function readAssets() {
  assets ??= [
    {
      name: 'hls.min.js',
      type: SCRIPT,
      content: readFileSync(createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js')),
    },
    { name: 'player.js', type: SCRIPT, content: playerScript },
    { name: 'live-edge.js', type: SCRIPT, content: liveEdgeScript },
    { name: 'panel.js', type: SCRIPT, content: panelScript },
    { name: 'player.css', type: 'text/css; charset=utf-8', content: playerStyle },
  ]
  return assets
}
