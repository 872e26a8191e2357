/**
 * HTTP application of the service: the signed API, metrics, health, public playback and the player page, on Fastify.
 *
 * @module
 */
import type { Http2SecureServer } from 'node:http2'
import type { BlockList } from 'node:net'
import Fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock, type Clock } from '../clock.ts'
import type { ErrorCode } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { allowAddresses, isTrusted, limitRate } from './access.ts'
import { admin } from './admin/admin.ts'
import type { DashboardOptions } from './admin/admin-options.ts'
import { api, type ApiOptions } from './api.ts'
import {
  asRefusal,
  clientErrorHandler,
  createErrorHandler,
  notFoundHandler,
} from './error-handler.ts'
import { health } from './health.ts'
import type { HttpGuard } from './guard/http-guard.ts'
import { REQUEST_TIMEOUT_MS } from './guard/guarded-session.ts'
import { HTTP2_OPTIONS } from './guard/http2-streams.ts'
import { metrics as metricsPlugin, type MetricsOptions } from './metrics.ts'
import { openApi } from './openapi.ts'
import { playback as playbackPlugin, type OnSent } from './playback.ts'
import type { PlaybackSource, StreamControl } from '../contract/streams.ts'
import type { CertificateSource } from './tls/certificate-source.ts'
import { watch } from './watch.ts'

export interface AppOptions {
  /** Receiver of API calls; undefined: no `/api`. */
  readonly control?: StreamControl | undefined
  /** Options of `/admin`, beside `/api`; undefined: no dashboard. */
  readonly dashboard?: DashboardOptions | undefined
  /** Source of `/video` and `/watch`; undefined: neither. */
  readonly playback?: PlaybackSource | undefined
  /** Verifies the tokens of viewers; default none, which makes playback public. */
  readonly playbackTokens?: PlaybackTokens | undefined
  /** See `PlaybackOptions`. */
  readonly onSent?: OnSent
  /** Called with the code of each refusal of an API call or of metrics. */
  readonly onRefused?: (code: ErrorCode) => void
  /** Undefined: no `/metrics`. */
  readonly metrics?: MetricsOptions | undefined
  /** Reads the values of `HMAC_SECRET`, any of which may have signed a request. */
  readonly readHmacSecrets: () => readonly string[]
  /** Maximum age of API requests in seconds; default 0, which allows any age. */
  readonly maxAgeSec?: number
  /** Clock for the age and the rate of requests. */
  readonly clock?: Clock
  /** Clients that may use the API and read metrics; default: all. */
  readonly apiFrom?: BlockList | undefined
  /** Requests per second of one client below `/api`; default 0, no limit. */
  readonly apiRate?: number
  /** Proxies whose `X-Forwarded-For` is believed; default: none. */
  readonly trustProxy?: BlockList | undefined
  readonly guard: HttpGuard
  /** See `HealthOptions`; default: always ready. */
  readonly listUnreadyReasons?: () => readonly string[]
  /** Certificate for HTTPS, with HTTP/2 and HTTP/1.1; undefined for plain HTTP/1.1. */
  readonly certificates?: CertificateSource | undefined
  /** Receives internal errors. Requests are not logged. */
  readonly logger: Logger
  /** Receives a line for each API call that changes something; default: none is written. */
  readonly auditLogger?: Logger
}

/** Time for which a connection stays open after a reply, without another request. */
const KEEP_ALIVE_TIMEOUT_MS = 60_000

/** Time limit of replies in progress when the server closes. */
const CLOSE_TIMEOUT_MS = 1000

/** Timeouts of HTTP/1.1. */
const TIMEOUTS = {
  requestTimeout: REQUEST_TIMEOUT_MS,
  // Node swaps requestTimeout and headersTimeout (default 60 s) if the latter is longer.
  headersTimeout: REQUEST_TIMEOUT_MS,
  // Interval at which Node checks both timeouts (default 30 s).
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
}

/**
 * @returns an application that does not listen yet
 * @throws {MillraceError} `CONFIG_INVALID` if the certificate cannot be used
 */
export function buildApp(options: AppOptions): FastifyInstance {
  const { control, dashboard, playback, playbackTokens: tokens, metrics } = options
  const { apiFrom, apiRate = 0, trustProxy } = options
  const { guard, logger, certificates, listUnreadyReasons = () => [] } = options
  const errorHandler = createErrorHandler(logger)
  // No `logger` option: Fastify would create a child logger for each request.
  const app = Fastify({
    ...serverOptions(guard, certificates),
    ...(trustProxy && { trustProxy: (hop: string | undefined) => isTrusted(trustProxy, hop) }),
    // Lets players fetch the ENDLIST while the server closes.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: errorHandler,
    clientErrorHandler,
  })
  if (certificates !== undefined) {
    // Fastify and `http2.createSecureServer` do not pass them on.
    Object.assign(app.server, TIMEOUTS)
    followCertificates(certificates, app.server as unknown as Http2SecureServer, logger)
  }
  guard.protect(app.server)
  app.addHook('preClose', async () => guard.endWithin(app.server, CLOSE_TIMEOUT_MS))
  // API requests have a body even with GET; signature-hook.ts reads it. Other routes ignore bodies of any type.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _payload, done) => done(null, request.body))
  // Discards the body. Unread, it would stay in memory until the reply is sent, at 200 bytes for each one-byte chunk.
  app.addHook('preHandler', ({ raw, headers }, _reply, done) => {
    const hasBody = 'transfer-encoding' in headers || 'content-length' in headers
    // A body of HTTP/2 needs neither header.
    if (hasBody || raw.httpVersionMajor === 2) raw.resume()
    done()
  })
  app.setErrorHandler(errorHandler)
  app.setNotFoundHandler(notFoundHandler)
  void app.register(health, { prefix: '/health', listUnreadyReasons })
  void app.register(async (internal) => {
    internal.addHook('onError', async (_request, _reply, error) => {
      options.onRefused?.(asRefusal(error).code)
    })
    if (apiFrom !== undefined) allowAddresses(internal, apiFrom)
    if (control !== undefined) {
      const signed = apiOptions(control, options)
      void internal.register(async (limited) => {
        if (apiRate > 0) {
          const { clock } = signed
          limitRate(limited, { perSec: apiRate, clock, refusal: 'TOO_MANY_API_REQUESTS' })
        }
        void limited.register(api, { prefix: '/api', ...signed })
        void limited.register(openApi, { prefix: '/api' })
      })
      if (dashboard !== undefined) {
        const { clock, auditLogger } = signed
        const own = { ...dashboard, control, clock, auditLogger }
        void internal.register(admin, { prefix: '/admin', ...own })
      }
    }
    if (metrics !== undefined)
      void internal.register(metricsPlugin, { prefix: '/metrics', ...metrics })
  })
  if (playback !== undefined) {
    const sent = options.onSent && { onSent: options.onSent }
    for (const prefix of tokens === undefined ? [''] : ['', '/t/:token']) {
      const access = { source: playback, tokens }
      void app.register(playbackPlugin, { prefix: `${prefix}/video`, ...access, ...sent })
      void app.register(watch, { prefix: `${prefix}/watch`, ...access })
    }
  }
  return app
}

function apiOptions(control: StreamControl, options: AppOptions): ApiOptions {
  const { readHmacSecrets, maxAgeSec = 0, clock = machineClock, auditLogger } = options
  return { control, readHmacSecrets, maxAgeSec, clock, auditLogger }
}

/** Options for the server that Fastify creates; its types allow for one protocol, the routes use what both share. */
function serverOptions(
  guard: HttpGuard,
  certificates: CertificateSource | undefined,
): FastifyHttpOptions<FastifyInstance['server']> {
  const { ServerResponse, Http2ServerResponse } = guard
  if (certificates === undefined) return { ...TIMEOUTS, http: { ...TIMEOUTS, ServerResponse } }
  const https = {
    ...HTTP2_OPTIONS,
    ...certificates.read().options,
    allowHTTP1: true,
    handshakeTimeout: REQUEST_TIMEOUT_MS,
    Http1ServerResponse: ServerResponse,
    Http2ServerResponse,
  }
  return { http2: true, https, http2SessionTimeout: KEEP_ALIVE_TIMEOUT_MS } as object
}

function followCertificates(
  certificates: CertificateSource,
  server: Http2SecureServer,
  logger: Logger,
): void {
  const stop = certificates.follow({
    onChange: ({ options }) => server.setSecureContext(options),
    logger,
  })
  server.once('close', stop)
}
