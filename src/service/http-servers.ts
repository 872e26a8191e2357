/**
 * HTTP servers of the service: playback, API and metrics on one port, or the API and metrics on ports of their own.
 *
 * @module
 */
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock, systemClock } from '../clock.ts'
import { parseAddressBlocks } from '../config/setting-types.ts'
import type { HttpReport } from '../contract/service-report.ts'
import type { PlaybackSource, StreamControl } from '../contract/streams.ts'
import { buildApp, type AppOptions } from '../http/app.ts'
import { HttpGuard, type HttpLimits } from '../http/guard/http-guard.ts'
import { CertificateSource } from '../http/tls/certificate-source.ts'
import type { Logger } from '../logger.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { explainAddress } from './bind-error.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Settings } from './settings.ts'

export interface HttpServersOptions {
  readonly settings: Settings
  readonly service: StreamControl & PlaybackSource
  readonly metrics: Metrics
  readonly listUnreadyReasons: () => readonly string[]
  /** Streams with an encoder. */
  readonly listPublished: () => readonly LiveStream[]
  /** Estimated number of viewers. */
  readonly countViewers: (stream: LiveStream) => number
  readonly logger: Logger
  /** Logger with a limit of its own: holders of `HMAC_SECRET` cause audit lines. */
  readonly auditLogger: Logger
}

/** Limits of the ports of the API and of metrics. */
const INTERNAL_LIMITS: HttpLimits = { maxConnections: 256, maxBufferedMib: 64 }

/** A server with its port setting. */
interface Listening {
  readonly app: FastifyInstance
  readonly guard: HttpGuard
  readonly setting: 'API' | 'HTTP' | 'METRICS'
  readonly port: number
}

/** Calling order: `listen`, then `close` or `abandon`. */
export class HttpServers {
  readonly #options: HttpServersOptions
  readonly #guard: HttpGuard
  readonly #main: FastifyInstance
  readonly #servers: readonly Listening[]
  /** One for each server. */
  readonly #certificates: CertificateSource[] = []

  constructor(options: HttpServersOptions) {
    const { settings, service, metrics } = options
    const { config } = settings
    const metricsParts = {
      metrics: {
        renderMetrics: () => metrics.render(),
        readTokens: () => settings.secrets.metrics,
      },
    }
    const { listPublished, countViewers } = options
    const dashboard = {
      source: service,
      readPassword: () => settings.secrets.admin,
      listPublished: () =>
        listPublished().map((stream) => ({
          id: stream.id,
          encoder: stream.encoder,
          countViewers: () => countViewers(stream),
        })),
    }
    const hasMetricsPort = config.metrics.port !== 0
    const apiParts = {
      control: service,
      ...(config.admin.password !== '' && { dashboard }),
      ...(!hasMetricsPort && config.metrics.token !== '' && metricsParts),
    }
    const hasApiPort = config.apiPort !== 0
    this.#options = options
    this.#guard = this.#createGuard(config.http)
    this.#main = this.#build(this.#guard, {
      playback: service,
      playbackTokens:
        config.playbackSecret === ''
          ? undefined
          : new PlaybackTokens(() => settings.secrets.playback),
      onSent: (...sent) => metrics.sent.add(...sent),
      ...(!hasApiPort && apiParts),
    })
    const internal = (
      setting: Listening['setting'],
      port: number,
      parts: Partial<AppOptions>,
    ): Listening[] => {
      if (port === 0) return []
      const guard = this.#createGuard(INTERNAL_LIMITS)
      return [{ app: this.#build(guard, parts), guard, setting, port }]
    }
    this.#servers = [
      { app: this.#main, guard: this.#guard, setting: 'HTTP', port: config.http.port },
      ...internal('API', config.apiPort, apiParts),
      ...internal('METRICS', config.metrics.port, metricsParts),
    ]
  }

  /** TCP port of playback and, unless it has its own, the API. */
  get port(): number {
    // The server listens on a port, never on a pipe, which has no `AddressInfo`.
    const [address] = this.#main.addresses() as AddressInfo[]
    return address?.port ?? this.#options.settings.config.http.port
  }

  /** Connections and memory of the main port, which have limits of their own there; counters of all ports. */
  report(): HttpReport {
    const { connections, bufferedBytes } = this.#guard.report()
    const counters = this.#servers.map(({ guard }) => guard.report()).reduce(addCounters)
    return { ...counters, connections, bufferedBytes }
  }

  async listen(): Promise<void> {
    const { http, apiHost } = this.#options.settings.config
    for (const { app, setting, port } of this.#servers) {
      const isInternal = setting !== 'HTTP' && apiHost !== ''
      const host = isInternal ? apiHost : http.host
      await app
        // For `localhost` Fastify opens a second server, which the guard does not see.
        .listen({ host: host === 'localhost' ? '127.0.0.1' : host, port })
        .catch(explainAddress(setting, host, isInternal ? 'API_HOST' : 'HTTP_HOST'))
    }
  }

  /** See `CertificateSource.reload`. */
  reloadCertificates(): void {
    for (const each of this.#certificates) each.reload()
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ app }) => app.close()))
  }

  /** Closes the ports at once, with all connections. */
  abandon(): void {
    for (const { app, guard } of this.#servers) {
      app.server.close()
      guard.destroy()
    }
  }

  #createGuard(limits: HttpLimits): HttpGuard {
    const { service, logger } = this.#options
    return new HttpGuard({ limits, playback: service, clock: systemClock, logger })
  }

  #build(guard: HttpGuard, parts: Partial<AppOptions>): FastifyInstance {
    const { settings, metrics, listUnreadyReasons, logger, auditLogger } = this.#options
    const { config } = settings
    const certificates = config.tls.cert === '' ? undefined : new CertificateSource(config.tls)
    if (certificates !== undefined) this.#certificates.push(certificates)
    return buildApp({
      ...parts,
      readHmacSecrets: () => settings.secrets.hmac,
      maxAgeSec: config.apiMaxAgeSec,
      apiRate: config.apiRate,
      apiFrom: parseAddressBlocks(config.apiFrom),
      trustProxy: parseAddressBlocks(config.trustProxy),
      // Not `systemClock`, which ignores a clock jump for 10 minutes: clients take `issued_at` from their own clocks.
      clock: machineClock,
      onRefused: (code) => metrics.countRefusal(code),
      guard,
      listUnreadyReasons,
      logger,
      auditLogger,
      certificates,
    })
  }
}

function addCounters(a: HttpReport, b: HttpReport): HttpReport {
  const names = Object.keys(a) as (keyof HttpReport)[]
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as {
    [Name in keyof HttpReport]: number
  }
}
