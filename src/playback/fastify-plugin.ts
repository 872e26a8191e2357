/**
 * Playlists and segments over HTTP: a Fastify plugin for other applications.
 *
 * ```ts
 * import { playback } from 'millrace/fastify'
 * await app.register(playback, { prefix: '/video', source: server })
 * ```
 *
 * @module millrace/fastify
 */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { PlaybackTokens, type PlaybackTokenLimits, type TokenUse } from '../auth/playback-token.ts'
import { viewerOf, type AccessParams } from './access.ts'
import { PlaybackHandler, type OnSent, type PlaybackOptions } from './handler.ts'
import type { PlayableStream, PlaybackSource, StreamFile } from './playback-source.ts'

export { PlaybackTokens }
export type { PlaybackTokenLimits, TokenUse }
export type { OnSent, PlayableStream, PlaybackOptions, PlaybackSource, StreamFile }

interface Route {
  Params: AccessParams & { readonly file?: string }
}

/**
 * Adds `GET|HEAD {prefix}/{stream_id}/{file}`, readable from every origin; with `tokens` also `{prefix}/{stream_id}`, for
 * proxies that ask for access.
 *
 * Files and refusals are written straight to the socket: hooks up to `preHandler` run (an application may authorize
 * there), but `onSend` hooks and headers of other plugins do not apply. Failures are JSON responses like those of the API.
 */
export const playback: FastifyPluginAsync<PlaybackOptions> = async (app, options) => {
  const playbackHandler = new PlaybackHandler(options)
  app.addHook('preClose', async () => playbackHandler.close())
  const handler = (request: FastifyRequest<Route>, reply: FastifyReply<Route>) => {
    playbackHandler.handle({
      ...viewerOf(request),
      request: request.raw,
      response: reply.raw,
      name: request.params.file,
      fail: (error) => void reply.send(error),
    })
  }
  app.route<Route>({ method: ['GET', 'HEAD', 'OPTIONS'], url: '/:stream_id/:file', handler })
  if (options.tokens !== undefined) app.get<Route>('/:stream_id', handler)
}
