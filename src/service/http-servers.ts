/**
 * HTTP servers of the service: playback and API on one port, and metrics on a port of their own if there is one.
 *
 * @module
 */
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { machineClock, systemClock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { parseOptionalSecrets, parseSecrets } from '../config/setting-types.ts'
import type { HttpReport } from '../contract/service-report.ts'
import type { PlaybackSource, StreamControl } from '../contract/streams.ts'
import { buildApp, type AppOptions } from '../http/app.ts'
import { HttpGuard, type HttpLimits } from '../http/guard/http-guard.ts'
import { CertificateSource } from '../http/tls/certificate-source.ts'
import type { Logger } from '../logger.ts'
import { explainAddress } from './bind-error.ts'
import type { Metrics } from './metrics/metrics.ts'

export interface HttpServersOptions {
  readonly config: Config
  readonly service: StreamControl & PlaybackSource
  readonly metrics: Metrics
  readonly listUnreadyReasons: () => readonly string[]
  readonly logger: Logger
}

/** Limits of the port of metrics. */
const METRICS_LIMITS: HttpLimits = { maxConnections: 64, maxBufferedMib: 64 }

/** Calling order: `listen`, then `close` or `abandon`. */
export class HttpServers {
  readonly #options: HttpServersOptions
  readonly #guard: HttpGuard
  readonly #main: FastifyInstance
  readonly #metrics: FastifyInstance | undefined

  constructor(options: HttpServersOptions) {
    const { config, service, metrics } = options
    const { port, token } = config.metrics
    const tokens = parseOptionalSecrets(token)
    const metricsOptions = { renderMetrics: () => metrics.render(), tokens }
    this.#options = options
    this.#guard = this.#createGuard(config.http)
    this.#main = this.#build(this.#guard, {
      control: service,
      playback: service,
      onSent: (...sent) => metrics.sent.add(...sent),
      metrics: port === 0 && tokens.length > 0 ? metricsOptions : undefined,
    })
    if (port === 0) return
    this.#metrics = this.#build(this.#createGuard(METRICS_LIMITS), { metrics: metricsOptions })
  }

  /** TCP port of playback and the API. */
  get port(): number {
    // The server listens on a port, never on a pipe, which has no `AddressInfo`.
    const [address] = this.#main.addresses() as AddressInfo[]
    return address?.port ?? this.#options.config.http.port
  }

  report(): HttpReport {
    return this.#guard.report()
  }

  async listen(): Promise<void> {
    const { http, metrics } = this.#options.config
    // For `localhost` Fastify opens a second server, which the guard does not see.
    const host = http.host === 'localhost' ? '127.0.0.1' : http.host
    await this.#main.listen({ host, port: http.port }).catch(explainAddress('HTTP', http.host))
    await this.#metrics
      ?.listen({ host, port: metrics.port })
      .catch(explainAddress('METRICS', http.host, 'HTTP_HOST'))
  }

  async close(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.close()))
  }

  /** Closes the ports at once, with all connections. */
  abandon(): void {
    for (const { server } of this.#apps) {
      server.close()
      server.closeAllConnections()
    }
  }

  get #apps(): FastifyInstance[] {
    return [this.#main, ...(this.#metrics === undefined ? [] : [this.#metrics])]
  }

  #createGuard(limits: HttpLimits): HttpGuard {
    const { service, logger } = this.#options
    return new HttpGuard({ limits, playback: service, clock: systemClock, logger })
  }

  #build(guard: HttpGuard, parts: Partial<AppOptions>): FastifyInstance {
    const { config, metrics, listUnreadyReasons, logger } = this.#options
    return buildApp({
      ...parts,
      hmacSecrets: parseSecrets(config.hmacSecret),
      maxAgeSec: config.apiMaxAgeSec,
      // Not `systemClock`, which ignores a clock jump for 10 minutes: clients take `issued_at` from their own clocks.
      clock: machineClock,
      onRefused: (code) => metrics.countRefusal(code),
      guard,
      listUnreadyReasons,
      logger,
      ...(config.tls.cert !== '' && { certificates: new CertificateSource(config.tls) }),
    })
  }
}
