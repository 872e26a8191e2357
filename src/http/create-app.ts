/**
 * Fastify application without routes: guarded connections, timeouts, TLS, and one format of failures.
 *
 * @module
 */
import type { Http2SecureServer } from 'node:http2'
import type { BlockList } from 'node:net'
import Fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify'
import type { Logger } from '../logger.ts'
import { isTrusted } from './access.ts'
import { createClientErrorHandler, createErrorHandler, notFoundHandler } from './error-handler.ts'
import { REQUEST_TIMEOUT_MS } from './guard/guarded-session.ts'
import type { HttpGuard } from './guard/http-guard.ts'
import { HTTP2_OPTIONS } from './guard/http2-streams.ts'
import type { CertificateSource } from './tls/certificate-source.ts'

export interface ApplicationOptions {
  readonly guard: HttpGuard
  /** Proxies whose `X-Forwarded-For` is believed; default: none. */
  readonly trustProxy?: BlockList | undefined
  /** Whether every peer is a proxy that is believed, as on a private Unix socket; default: false. */
  readonly trustPeers?: boolean
  /** Certificate for HTTPS, with HTTP/2 and HTTP/1.1; undefined for plain HTTP/1.1. */
  readonly certificates?: CertificateSource | undefined
  /** Receives internal errors. Requests are not logged. */
  readonly logger: Logger
}

/** Time for which a connection stays open after a reply, without another request. */
export const KEEP_ALIVE_TIMEOUT_MS = 60_000

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
export function createApp(options: ApplicationOptions): FastifyInstance {
  const { guard, trustProxy, trustPeers = false, certificates, logger } = options
  const errorHandler = createErrorHandler(logger)
  // No `logger` option: Fastify would create a child logger for each request.
  const app = Fastify({
    ...serverOptions(guard, certificates),
    ...((trustPeers || trustProxy) && {
      trustProxy: (address: string | undefined, hop: number) =>
        (trustPeers && hop === 0) || (trustProxy !== undefined && isTrusted(trustProxy, address)),
    }),
    // Lets players fetch the ENDLIST while the server closes.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: errorHandler,
    clientErrorHandler: createClientErrorHandler(),
  })
  if (certificates !== undefined) {
    // Fastify and `http2.createSecureServer` do not pass them on.
    Object.assign(app.server, TIMEOUTS)
    followCertificates(certificates, app.server as unknown as Http2SecureServer, logger)
  }
  guard.protect(app.server)
  app.addHook('preClose', async () => guard.endWithin(app.server, CLOSE_TIMEOUT_MS))
  // API requests have a body even with GET; signature-hook.ts reads it. Other routes read none.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _payload, done) => done(null, request.body))
  app.setErrorHandler(errorHandler)
  app.setNotFoundHandler(notFoundHandler)
  return app
}

/**
 * Lets replies leave before `app` closes: Node destroys a connection whose reply has ended, although it may wait in the
 * socket. Call it after all other plugins are registered.
 */
export function closeAfterReplies(app: FastifyInstance, guard: HttpGuard): void {
  // Hooks run in the order of plugins: the others end what waits.
  void app.register(async (last) => last.addHook('preClose', () => guard.allReplied()))
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
