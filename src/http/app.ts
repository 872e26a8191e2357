/**
 * The HTTP side of the service: the signed API, public playback and the player page in one Fastify application.
 *
 * @module
 */
import Fastify, { type FastifyInstance } from 'fastify'
import { machineClock, type Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import { api } from './api.ts'
import { clientErrorHandler, createErrorHandler, notFoundHandler } from './error-handler.ts'
import type { HttpGuard } from './guard/http-guard.ts'
import { playback as playbackPlugin } from './playback.ts'
import type { PlaybackSource, StreamControl } from '../contract/streams.ts'
import { watch } from './watch.ts'

export interface AppOptions {
  readonly control: StreamControl
  readonly playback: PlaybackSource
  /** Any of them may have signed a request of the API. */
  readonly hmacSecrets: readonly string[]
  /** Maximum age of API requests, in seconds; default 0: any. */
  readonly maxAgeSec?: number
  readonly clock?: Pick<Clock, 'wallMs'>
  readonly guard: HttpGuard
  /** Takes failures that are our own fault; a request leaves no line. */
  readonly logger: Logger
}

/** How long a client may take from connecting, or from the first byte of a further request, to the end of its request. */
const REQUEST_TIMEOUT_MS = 10_000

/** How long a connection is kept after a reply. */
const KEEP_ALIVE_TIMEOUT_MS = 60_000

/** How long replies that are on their way may take to end when the server closes. */
const CLOSE_TIMEOUT_MS = 1000

/** Not yet listening; the caller does `listen` and `close`. */
export function buildApp(options: AppOptions): FastifyInstance {
  const { control, playback, hmacSecrets, maxAgeSec = 0, clock = machineClock } = options
  const { guard, logger } = options
  const errorHandler = createErrorHandler(logger)
  // Without a logger of its own Fastify makes no child logger for each request.
  const app = Fastify({
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: {
      // Node exchanges the two where this one, 60 s by default, is the longer.
      headersTimeout: REQUEST_TIMEOUT_MS,
      // Node looks at both this often, by default every 30 s.
      connectionsCheckingInterval: 1000,
      ServerResponse: guard.ServerResponse,
    },
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // Players still fetch the ENDLIST while the server closes.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: errorHandler,
    clientErrorHandler,
  })
  guard.protect(app.server)
  app.addHook('preClose', async () => guard.endWithin(app.server, CLOSE_TIMEOUT_MS))
  // GET has a body in the API, whose hook reads it (signature-hook.ts); elsewhere nobody does, whatever its type.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _payload, done) => done(null, request.body))
  // Left alone, a body waits in memory until the reply has gone: a chunk of one byte costs some 200.
  app.addHook('preHandler', ({ raw, headers }, _reply, done) => {
    if ('transfer-encoding' in headers || 'content-length' in headers) raw.resume()
    done()
  })
  app.setErrorHandler(errorHandler)
  app.setNotFoundHandler(notFoundHandler)
  void app.register(api, { prefix: '/api', control, hmacSecrets, maxAgeSec, clock })
  void app.register(playbackPlugin, { prefix: '/video', source: playback })
  void app.register(watch, { prefix: '/watch', source: playback })
  return app
}
