/**
 * HTTP servers of the service: playback, API and metrics on one port, or the API and metrics on ports of their own.
 *
 * @module
 */
import type { Journal } from '../admin/journal.ts'
import { uncachedMemoryBeside } from '../playback/uncached-memory.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { PlaybackTokens, signPlaybackToken } from '../auth/playback-token.ts'
import { machineClock, systemClock } from '../timing/clock.ts'
import { isWildcard, parseAddressBlocks } from '../config/setting-types.ts'
import type { HttpReport } from '../http/guard/http-report.ts'
import type { PlaybackSource } from '../playback/playback-source.ts'
import type { StreamControl } from '../api/control.ts'
import { buildApp, type AppOptions } from './app.ts'
import { passUnknown } from '../http/error-handler.ts'
import { HttpGuard, type HttpLimits } from '../http/guard/http-guard.ts'
import { maxOpenConnections } from '../http/guard/open-files.ts'
import { withRemote } from '../playback/remote-streams.ts'
import { CertificateSource } from '../http/tls/certificate-source.ts'
import type { Logger } from '../logger.ts'
import type { Cluster } from './cluster.ts'
import { mergeMetrics } from './metrics/merge-metrics.ts'
import type { Metrics } from './metrics/metrics.ts'
import { listenAt, portOf, type HttpAddress } from './open-server.ts'
import { readProcess } from './process-usage.ts'
import { nodeCallsOf, type Settings } from './settings-in-use.ts'
import type { Streams } from './streams.ts'
import { EDGE_REPORT, Edges } from './viewers/edges.ts'
import { addReports, WorkerTotals, type WorkerReport } from './viewers/worker-reports.ts'

interface HttpServersOptions {
  readonly settings: Settings
  /** Receiver of API calls, and source of streams for viewers. */
  readonly service: PlaybackSource & { readonly control: StreamControl }
  readonly streams: Streams
  readonly metrics: Metrics
  readonly listUnreadyReasons: () => readonly string[]
  /** Time lines of the dashboard; undefined without one. */
  readonly journal: Journal | undefined
  readonly logger: Logger
  /** Logger with a limit of its own: holders of `HMAC_SECRET` cause audit lines. */
  readonly auditLogger: Logger
  /** This node in its cluster; default: there is none. */
  readonly cluster?: Pick<Cluster, 'fenceOf' | 'routes' | 'playback' | 'callOthers'> | undefined
  /** Unix socket for workers in place of `HTTP_HOST` and `HTTP_PORT`, which they serve; default: none. */
  readonly socketPath?: string | undefined
  /** Whether another process opens `API_PORT` and `METRICS_PORT`; default: false. */
  readonly isSecondary?: boolean | undefined
  /** Whether `handle` alone takes the requests of `HTTP_PORT`; default: false. */
  readonly isPortless?: boolean | undefined
}

/** Limits of the ports of the API and of metrics. */
const INTERNAL_LIMITS: HttpLimits = { maxConnections: 256, maxBufferedMib: 64 }

/** Limits of the Unix socket. Workers apply those of the settings. */
const WORKER_LIMITS: HttpLimits = {
  maxConnections: Math.min(10_000, maxOpenConnections()),
  maxBufferedMib: 256,
}

/** Name of the call for the metrics of another process, and its time limit. */
const METRICS = 'metrics'
const METRICS_MS = 2000

/** Lifetime of the playback token of a check. */
const LOOPBACK_TOKEN_MS = 120_000

/** A server with its port setting. */
interface Listening {
  readonly app: FastifyInstance
  readonly guard: HttpGuard
  readonly setting: HttpAddress['setting']
  readonly port: number
}

/** Calling order: `listen`, `handle` for requests that came to a server of the application, then `close` or `abandon`. */
export class HttpServers {
  /** Edges on other machines, from their reports. */
  readonly edges: Edges
  readonly #options: HttpServersOptions
  readonly #guard: HttpGuard
  readonly #main: FastifyInstance
  readonly #servers: readonly Listening[]
  /** One for each server. */
  readonly #certificates: CertificateSource[] = []
  readonly #workers = new WorkerTotals()

  constructor(options: HttpServersOptions) {
    const { settings, service, streams, metrics } = options
    const { config } = settings
    const metricsParts = {
      metrics: {
        renderMetrics: () => this.#renderMetrics(),
        readTokens: () => settings.secrets.metrics,
      },
    }
    const { journal, socketPath, isPortless = false, isSecondary = false, cluster } = options
    const calls = nodeCallsOf(settings)
    const readPlaybackSecrets = () => settings.secrets.playback
    const dashboard = journal && {
      journal,
      loopbackUrl: (streamId: string) => this.#loopbackUrl(streamId),
      source: service,
      allStreams: this.#allStreams(options),
      readPassword: () => settings.secrets.admin,
      readProcess: () => ({
        ...readProcess(),
        sentBytes: metrics.sent.total,
        hasWorkers: socketPath !== undefined,
      }),
      listPublished: () =>
        streams.published.map((stream) => ({
          id: stream.id,
          encoder: stream.encoder,
          countViewers: () => streams.viewersOf(stream),
        })),
    }
    const hasMetricsPort = config.metrics.port !== 0
    const apiParts = {
      control: service.control,
      ...(dashboard && { dashboard }),
      ...(!hasMetricsPort && config.metrics.token !== '' && metricsParts),
    }
    const hasApiPort = config.apiPort !== 0
    this.#options = options
    this.edges = new Edges(streams, systemClock, (streamId, viewers) =>
      cluster?.playback.countViewers(streamId, viewers),
    )
    const takeReport = async (body: unknown) => {
      this.edges.take(body)
      return {}
    }
    this.#guard = this.#createGuard(socketPath === undefined ? config.http : WORKER_LIMITS)
    this.#main = this.#build(this.#guard, {
      playbackTokens:
        config.playbackSecret === '' ? undefined : new PlaybackTokens(readPlaybackSecrets),
      ...(socketPath === undefined ? this.#viewerParts() : this.#workerParts()),
      nodeRoutes: calls && {
        ...cluster?.routes,
        [EDGE_REPORT]: takeReport,
        [METRICS]: () => this.#readMetrics(),
      },
      remote: cluster?.playback,
      ...(!hasApiPort && apiParts),
      // `/` belongs to the application.
      hasFrontPage: !isPortless,
    })
    const internal = (
      setting: Listening['setting'],
      port: number,
      parts: Partial<AppOptions>,
    ): Listening[] => {
      if (port === 0 || isSecondary) return []
      const guard = this.#createGuard(INTERNAL_LIMITS)
      return [{ app: this.#build(guard, parts), guard, setting, port }]
    }
    this.#servers = [
      { app: this.#main, guard: this.#guard, setting: 'HTTP', port: config.http.port },
      ...internal('API', config.apiPort, apiParts),
      ...internal('METRICS', config.metrics.port, metricsParts),
    ]
  }

  /** TCP port of playback and, unless it has its own, the API; 0 without one. */
  get port(): number {
    const { isPortless, settings } = this.#options
    return portOf(this.#main) ?? (isPortless ? 0 : settings.config.http.port)
  }

  /**
   * Connections and memory of the main port, which have limits of their own there, or of all workers; counters of all
   * ports.
   */
  report(): HttpReport {
    const reports = this.#servers.map(({ guard }) => guard.report())
    if (this.#options.socketPath !== undefined) {
      reports[0] = this.#workers.http(systemClock.nowUs())
    }
    const { connections, bufferedBytes } = reports[0]!
    return { ...reports.reduce(addReports), connections, bufferedBytes }
  }

  async listen(): Promise<void> {
    const { settings, socketPath, isPortless } = this.#options
    const { http, apiHost } = settings.config
    for (const { app, setting, port } of this.#servers) {
      if (setting === 'HTTP' && socketPath !== undefined) {
        await app.listen({ path: socketPath })
        continue
      }
      if (setting === 'HTTP' && isPortless) {
        await app.ready()
        continue
      }
      const isInternal = setting !== 'HTTP' && apiHost !== ''
      const host = isInternal ? apiHost : http.host
      const hostSetting = isInternal ? 'API_HOST' : 'HTTP_HOST'
      await listenAt(app, { setting, host, port, hostSetting })
    }
  }

  /**
   * Answers a request as `HTTP_PORT` does.
   *
   * @param next  answers a request for which there is no route; default: it is refused
   */
  handle(request: IncomingMessage, response: ServerResponse, next?: () => void): void {
    if (next !== undefined) passUnknown(request, next)
    this.#main.server.emit('request', request, response)
  }

  /** See `CertificateSource.reload`. */
  reloadCertificates(): void {
    for (const each of this.#certificates) each.reload()
    const { settings, socketPath } = this.#options
    // Workers read the files later: none may be the only one that refuses them.
    const { tls } = settings.config
    if (socketPath !== undefined && tls.cert !== '') new CertificateSource(tls).read()
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ app }) => app.close()))
    // Fastify does not close a server that has never listened, at whose end the guard ends its timers.
    if (this.#options.isPortless) this.#main.server.close()
  }

  /** Closes the ports at once, with all connections. */
  abandon(): void {
    for (const { app, guard } of this.#servers) {
      app.server.close()
      guard.destroy()
    }
  }

  /** Streams of all nodes, whether or not viewers need a token. */
  #allStreams({ settings, service, cluster }: HttpServersOptions): PlaybackSource {
    if (cluster === undefined) return service
    const isPublic = settings.config.playbackSecret === ''
    const others = isPublic ? cluster.playback.open : cluster.playback.protected
    return withRemote(service, others, cluster.fenceOf)
  }

  /** URL at which this machine itself plays a stream, with a token where viewers need one. */
  #loopbackUrl(streamId: string): string {
    const { settings, isPortless } = this.#options
    const { config, secrets } = settings
    const { host } = config.http
    const address = isWildcard(host) ? (host === '::' ? '::1' : '127.0.0.1') : host
    const [secret] = secrets.playback
    const expiresAt = new Date(systemClock.wallMs() + LOOPBACK_TOKEN_MS)
    const token = secret && `/t/${signPlaybackToken({ streamId, secret, expiresAt })}`
    const scheme = config.tls.cert === '' ? 'http' : 'https'
    const own = `${scheme}://${isIPv6(address) ? `[${address}]` : address}:${this.port}`
    const base = isPortless ? config.public.url.replace(/\/+$/, '') : own
    return new URL(`${base}${token ?? ''}/video/${streamId}/master.m3u8`).href
  }

  /** Metrics of all processes of this service. */
  async #renderMetrics(): Promise<string> {
    const { cluster, settings } = this.#options
    const own = await this.#readMetrics()
    if (cluster === undefined || settings.config.ingest.workers === 1) return own.text
    const others = await cluster.callOthers(METRICS, METRICS_MS)
    return mergeMetrics([own, ...(others as (typeof own)[])])
  }

  /** Metrics of this process, which other nodes know by its URL. */
  async #readMetrics() {
    const { metrics, settings } = this.#options
    const { nodeUrl } = settings.config
    const process = nodeUrl === '' ? '' : new URL(nodeUrl).hostname
    return { process, text: await metrics.render() }
  }

  /** Playback for viewers. */
  #viewerParts(): Partial<AppOptions> {
    const { service, metrics } = this.#options
    return { playback: service, onSent: (...sent) => metrics.sent.add(...sent) }
  }

  /** Playback for workers, which count their viewers themselves. */
  #workerParts(): Partial<AppOptions> {
    const { service } = this.#options
    return {
      playback: { findStream: (streamId) => service.findStream(streamId) },
      onWorkerReport: (report) => this.#take(report),
      trustPeers: true,
    }
  }

  #take(report: WorkerReport): void {
    const { streams, metrics, cluster } = this.#options
    this.#workers.push(report, systemClock.nowUs())
    for (const [streamId, { sentBytes, viewers }] of Object.entries(report.streams)) {
      const stream = streams.find(streamId)
      if (stream === undefined) {
        cluster?.playback.countViewers(streamId, viewers)
        continue
      }
      for (const [name, bytes] of Object.entries(sentBytes)) metrics.sent.add(stream, name, bytes)
      for (const viewer of viewers) streams.countViewer(stream, viewer)
    }
  }

  #createGuard(limits: HttpLimits): HttpGuard {
    const { service, logger, cluster } = this.#options
    const uncachedMemory = uncachedMemoryBeside(
      (id) => service.findStream(id) ?? cluster?.playback.memory.findStream(id),
    )
    return new HttpGuard({ limits, uncachedMemory, clock: systemClock, logger })
  }

  #build(guard: HttpGuard, parts: Partial<AppOptions>): FastifyInstance {
    const { settings, metrics, cluster, listUnreadyReasons, logger, auditLogger } = this.#options
    const { config } = settings
    // Workers encrypt; the Unix socket carries plain HTTP.
    const isPlain = config.tls.cert === '' || parts.trustPeers === true
    const certificates = isPlain ? undefined : new CertificateSource(config.tls)
    if (certificates !== undefined) this.#certificates.push(certificates)
    return buildApp({
      ...parts,
      nodeCalls: nodeCallsOf(settings),
      fenceOf: cluster?.fenceOf,
      frameAncestors: config.watchFrameAncestors,
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
