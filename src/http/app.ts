/**
 * The HTTP side of the service: the signed API, public playback and the player page in one Fastify application.
 *
 * @module
 */
import Fastify, { type FastifyInstance } from 'fastify'
import { systemClock, type Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import { api } from './api.ts'
import { clientErrorHandler, createErrorHandler, notFoundHandler } from './error-handler.ts'
import { playback as playbackPlugin } from './playback.ts'
import type { PlaybackSource, StreamControl } from './types.ts'
import { watch } from './watch.ts'

export interface AppOptions {
  readonly control: StreamControl
  readonly playback: PlaybackSource
  /** Any of them may have signed a request of the API. */
  readonly hmacSecrets: readonly string[]
  /** Of requests of the API, in seconds; 0, any, unless told. */
  readonly maxAgeSec?: number
  readonly clock?: Pick<Clock, 'wallMs'>
  /** Takes failures that are our own fault; a request leaves no line. */
  readonly logger: Logger
}

/** How long a client may take to send its whole request. */
const REQUEST_TIMEOUT_MS = 10_000

/** A connection on which nothing moves for this long is closed, so that no stalled reader holds a segment. */
const IDLE_TIMEOUT_MS = 60_000

/** Not yet listening; the caller does `listen` and `close`. */
export function buildApp(options: AppOptions): FastifyInstance {
  const { control, playback, hmacSecrets, maxAgeSec = 0, clock = systemClock, logger } = options
  const errorHandler = createErrorHandler(logger)
  // Without a logger of its own Fastify makes no child logger for each request.
  const app = Fastify({
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Node exchanges the two where this one, 60 s by default, is the longer.
    http: { headersTimeout: REQUEST_TIMEOUT_MS },
    connectionTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    // Players still fetch the ENDLIST while the server closes.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: errorHandler,
    clientErrorHandler,
  })
  // GET has a body in the API, whose hook reads it (signature-hook.ts); elsewhere nobody does, whatever its type.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _payload, done) => done(null, request.body))
  app.setErrorHandler(errorHandler)
  app.setNotFoundHandler(notFoundHandler)
  void app.register(api, { prefix: '/api', control, hmacSecrets, maxAgeSec, clock })
  void app.register(playbackPlugin, { prefix: '/video', source: playback })
  void app.register(watch, { prefix: '/watch', source: playback })
  return app
}
