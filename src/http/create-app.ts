/**
 * Fastify application without routes: guarded connections, timeouts, TLS, and one format of failures.
 *
 * @module
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { BlockList } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import { MillraceError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { trustOf } from './client-address.ts'
import {
  createClientErrorHandler,
  createErrorHandler,
  notFoundHandler,
  writeRefusal,
} from './error-handler.ts'
import { REQUEST_TIMEOUT_MS } from './guard/guarded-session.ts'
import type { HttpGuard } from './guard/http-guard.ts'
import { HTTP2_OPTIONS } from './guard/http2-streams.ts'
import type { CertificateSource } from './tls/certificate-source.ts'

export interface ApplicationOptions {
  readonly guard: HttpGuard
  /** Gets each request before the router; returns whether it responds. Default: the router gets all. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Proxies whose `X-Forwarded-For` is believed; default: none. */
  readonly trustProxy?: BlockList | undefined
  /** Whether every peer is a proxy that is believed, as on a private Unix socket; default: false. */
  readonly trustPeers?: boolean
  /** Certificate for HTTPS, with HTTP/2 and HTTP/1.1; undefined for plain HTTP/1.1. */
  readonly certificates?: CertificateSource | undefined
  /** Receives internal errors. Requests are not logged. */
  readonly logger: Logger
}

/** Time for which a connection stays open after a response, without another request. */
const KEEP_ALIVE_TIMEOUT_MS = 60_000

/** Time limit of responses in progress when the server closes. */
const CLOSE_TIMEOUT_MS = 1000

/** Limits of HTTP/1.1. */
const HTTP1_LIMITS = {
  maxHeaderSize: 8192,
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
    serverFactory: (router) => {
      const listener: RequestListener = (request, response) => {
        if (request.rawHeaders.length > MAX_FIELDS * 2)
          writeRefusal(response, TOO_MANY_FIELDS, [], 431)
        else if (headBytes(request) > MAX_HEAD_BYTES)
          writeRefusal(response, HEAD_TOO_LARGE, [], 431)
        else if (hasSeveralHosts(request)) writeRefusal(response, SEVERAL_HOSTS)
        else if (options.before?.(request, response) !== true) router(request, response)
      }
      return certificates === undefined
        ? createServer({ ...HTTP1_LIMITS, ServerResponse: guard.ServerResponse }, listener)
        : createTlsServer(options, certificates, listener)
    },
    // For the URL that `listen` returns.
    ...(certificates && { https: {} as never }),
    ...((trustPeers || trustProxy) && { trustProxy: trustOf(trustProxy, trustPeers) }),
    // Lets players fetch the ENDLIST while the server closes.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: errorHandler,
    clientErrorHandler: createClientErrorHandler(),
  })
  guard.protect(app.server)
  app.addHook('preClose', async () => guard.endWithin(app.server, CLOSE_TIMEOUT_MS))
  // API requests have a body even with GET; body-reader.ts reads it. Other routes read none.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _payload, done) => done(null, request.body))
  app.setErrorHandler(errorHandler)
  app.setNotFoundHandler(notFoundHandler)
  return app
}

/**
 * Max header fields of a request, which holds them until it is answered: 1000 of them, in 16 KB, took 100 KB, and 4500 clients
 * that read nothing a heap of 512 MB. Proxies add up to 30 to the 20 of a browser.
 */
const MAX_FIELDS = 100

const TOO_MANY_FIELDS = new MillraceError('REQUEST_MALFORMED', {
  message: `the HTTP request is malformed: it has more than ${MAX_FIELDS} header fields`,
})

/** Max size of a head, names and values. Node and nghttp2 see to it, but for a client that does not acknowledge SETTINGS. */
const MAX_HEAD_BYTES = 8192

const HEAD_TOO_LARGE = new MillraceError('REQUEST_MALFORMED', {
  message: `the HTTP request is malformed: its head has more than ${MAX_HEAD_BYTES} bytes`,
})

function headBytes({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, { length }) => sum + length, 0)
}

const SEVERAL_HOSTS = new MillraceError('REQUEST_MALFORMED', {
  message: 'the HTTP request is malformed: it has more than one Host field',
})

/** Such a request is refused, since a proxy may have read the other field (RFC 9112 section 3.2). */
function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}

/**
 * Lets responses leave before `app` closes: Node destroys a connection whose response has ended, although it may wait in the
 * socket. Call it after all other plugins are registered.
 */
export function closeAfterResponses(app: FastifyInstance, guard: HttpGuard): void {
  // Hooks run in the order of plugins: the others end what waits.
  void app.register(async (last) => last.addHook('preClose', () => guard.allSent()))
}

/** HTTP/2 and HTTP/1.1 over TLS; Fastify's types allow for one protocol, its routes use what both share. */
function createTlsServer(
  { guard, logger }: ApplicationOptions,
  certificates: CertificateSource,
  listener: RequestListener,
): Server {
  const server = createSecureServer(
    {
      ...HTTP2_OPTIONS,
      ...certificates.read().options,
      allowHTTP1: true,
      // Default of `node:https`, not of HTTP/2: each piece of a body would wait for the delayed acknowledgement of the client.
      noDelay: true,
      handshakeTimeout: REQUEST_TIMEOUT_MS,
      Http1ServerResponse: guard.ServerResponse,
      Http2ServerResponse: guard.Http2ServerResponse,
    },
    listener as unknown as Http2Listener,
  )
  // It takes no such options.
  Object.assign(server, HTTP1_LIMITS)
  server.on('session', (session) => {
    session.setTimeout(KEEP_ALIVE_TIMEOUT_MS, () => session.close())
  })
  const stop = certificates.follow({
    onChange: ({ options }) => server.setSecureContext(options),
    logger,
  })
  server.once('close', stop)
  return server as unknown as Server
}

type Http2Listener = (request: Http2ServerRequest, response: Http2ServerResponse) => void
