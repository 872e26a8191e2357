/**
 * Edge as a service: playback of the streams of other nodes over HTTP, with a life cycle.
 *
 * @module
 */
import { uncachedMemoryBeside } from '../../playback/uncached-memory.ts'
import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'
import { PlaybackTokens } from '../../auth/playback-token.ts'
import { systemClock } from '../../timing/clock.ts'
import { limitLines } from '../../timing/limited-logger.ts'
import { completeSettings } from '../../config/complete-settings.ts'
import type { Config, GivenSettings } from '../../config/schema.ts'
import { parseAddressBlocks } from '../../config/setting-types.ts'
import { buildEdgeApp } from './edge-app.ts'
import { Edge } from './edge.ts'
import { IngestNodes } from './ingest-nodes.ts'
import { NodeClient } from './node-client.ts'
import type { EdgeCluster } from './registry-owners.ts'
import { fixedOwner } from './stream-origin.ts'
import { OriginWatch } from './origin-watch.ts'
import { OwnerReports } from './owner-reports.ts'
import { MillraceError } from '../../errors.ts'
import {
  NO_CLIENTS,
  WORKER_REPORTS,
  type StreamAudience,
  type WorkerReport,
} from '../../service/viewers/worker-reports.ts'
import { HttpGuard } from '../../http/guard/http-guard.ts'
import type { HttpReport } from '../../http/guard/http-report.ts'
import { CertificateSource } from '../../http/tls/certificate-source.ts'
import { openLogger, type Logger } from '../../logger.ts'
import { listenAt, openServer, portOf, type ProgramOptions } from '../../service/open-server.ts'
import { PublicUrls } from '../../service/public-urls.ts'
import { nodeCallsOf, Settings } from '../../service/settings-in-use.ts'

/** Interval of the reports of a worker. */
const REPORT_MS = 1000

/**
 * Starts an edge. If the start fails, nothing is left running.
 *
 * @param cluster  default: that of `REDIS_URL`, or `EDGE_OF` is the origin of all streams
 * @throws {MillraceError} `CONFIG_INVALID`, or `ADDRESS_IN_USE` with the address
 */
export async function createEdgeServer(
  options: ProgramOptions,
  cluster?: EdgeCluster,
): Promise<EdgeServer> {
  const server = await createWorker(options, cluster)
  server.announce()
  return server
}

/** Starts an edge of this machine's ingest processes, of which the first one alone tells the log that clients can reach the service. */
export async function createWorker(
  options: ProgramOptions,
  cluster?: EdgeCluster,
): Promise<EdgeServer> {
  const config = completeSettings({ ...options, role: 'edge' })
  const logger = limitLines(options.logger ?? openLogger(config), systemClock)
  const joined = cluster ?? (await joinCluster(config, logger))
  if (config.edgeOf === '' && joined === undefined) {
    throw new MillraceError('CONFIG_INVALID', {
      message:
        'EDGE_OF is not set: expected the origin, unix:/path, or an http or https URL, or REDIS_URL instead',
    })
  }
  return openServer(new EdgeServer(config, logger, joined))
}

/** The client of Redis is loaded by nodes of a cluster alone. */
async function joinCluster(config: Config, logger: Logger): Promise<EdgeCluster | undefined> {
  if (config.redisUrl === '' || config.edgeOf !== '') return undefined
  const { openRegistry } = await import('./registry-owners.ts')
  return openRegistry(config.redisUrl, logger)
}

/** URL of a node that is reached over a Unix socket. */
const LOCAL_URL = 'http://origin'

/** A running edge. */
export class EdgeServer {
  readonly #settings: Settings
  readonly #logger: Logger
  readonly #client: NodeClient
  /** Whether the origin is this machine's own service, over Unix sockets. */
  readonly #isLocal: boolean
  readonly #listIngestNodes: EdgeCluster['listIngestNodes']
  readonly #edge: Edge
  /** Undefined for an edge that other nodes do not know. */
  readonly #ownerReports: OwnerReports | undefined
  readonly #guard: HttpGuard
  readonly #app: FastifyInstance
  readonly #certificates: CertificateSource | undefined
  /** Undefined for an edge of a cluster or of this machine's own service. */
  readonly #origin: OriginWatch | undefined
  readonly #closing = new AbortController()
  readonly #leaveCluster: () => Promise<void>
  #reporter: NodeJS.Timeout | undefined

  /** Constructor for `createEdgeServer` only. */
  constructor(config: Config, logger: Logger, cluster?: EdgeCluster) {
    const settings = new Settings(config)
    const socketPath = /^unix:(.+)$/.exec(config.edgeOf)?.[1]
    const socketPathOf = socketPath === undefined ? cluster?.socketPathOf : () => socketPath
    const isLocal = socketPathOf !== undefined
    const nodeCalls = nodeCallsOf(settings)
    // A single ingest process is no other node.
    const client = new NodeClient({
      socketPathOf,
      calls: socketPath === undefined ? nodeCalls : undefined,
      // A signature would make a client of a worker a node.
      signsFilesOnly: isLocal,
    })
    const {
      owners,
      listIngestNodes,
      close = async () => undefined,
    } = cluster ?? at(isLocal ? LOCAL_URL : config.edgeOf)
    const readPlaybackSecrets = () => settings.secrets.playback
    const hasTokens = config.playbackSecret !== ''
    const maxBytes = config.cache.maxMib * 1024 * 1024
    this.#settings = settings
    this.#logger = logger
    this.#leaveCluster = close
    this.#certificates = config.tls.cert === '' ? undefined : new CertificateSource(config.tls)
    this.#client = client
    this.#isLocal = isLocal
    this.#listIngestNodes = listIngestNodes
    this.#edge = new Edge({ client, owners, maxBytes, readPlaybackSecrets })
    this.#origin =
      cluster === undefined && !isLocal
        ? new OriginWatch({ client, url: config.edgeOf, signal: this.#closing.signal, logger })
        : undefined
    const onRefused = (message: string) => logger.warn(message)
    const readName = () => config.nodeUrl || `${hostname()}:${this.port}`
    this.#ownerReports =
      client.signs && !isLocal
        ? new OwnerReports({ edge: this.#edge, client, readName, onRefused })
        : undefined
    const uncachedMemory = uncachedMemoryBeside((id) => this.#edge.memory.findStream(id))
    this.#guard = new HttpGuard({ limits: config.http, uncachedMemory, clock: systemClock, logger })
    this.#app = buildEdgeApp({
      edge: this.#edge,
      client,
      owners,
      origin: this.#origin,
      ingestNodes: new IngestNodes({ client, list: listIngestNodes, isOrdered: isLocal }),
      isLocal,
      nodeCalls,
      onSent: ({ id }, name, sizeBytes) => this.#edge.audience.addSent(id, name, sizeBytes),
      playbackTokens: hasTokens ? new PlaybackTokens(readPlaybackSecrets) : undefined,
      guard: this.#guard,
      trustProxy: parseAddressBlocks(config.trustProxy),
      certificates: this.#certificates,
      logger,
    })
  }

  /** TCP port. */
  get port(): number {
    return portOf(this.#app) ?? this.#settings.config.http.port
  }

  async listen(): Promise<void> {
    const { host, port } = this.#settings.config.http
    await listenAt(this.#app, { setting: 'HTTP', host, port })
    void this.#origin?.probe()
    this.#reporter = setInterval(() => this.#report(), REPORT_MS)
  }

  /** Tells the log that clients can reach the edge. */
  announce(): void {
    const { config } = this.#settings
    const urls = new PublicUrls(config, { httpPort: this.port, srtPort: 0 })
    this.#logger.info({ http: urls.http, origin: config.edgeOf }, 'listening')
  }

  /**
   * Replaces `PLAYBACK_SECRET` and `CLUSTER_SECRET`, and reads the files of TLS again.
   *
   * @throws {MillraceError} `CONFIG_INVALID`; nothing has changed then
   */
  reload(options: GivenSettings): void {
    const secrets = this.#settings.readSecrets(completeSettings({ ...options, role: 'edge' }))
    this.#certificates?.reload()
    this.#settings.secrets = secrets
  }

  /** Closes the port, after open responses. Settles when no timer, socket or memory of the edge is left. */
  async close(): Promise<void> {
    clearInterval(this.#reporter)
    await this.#app.close()
    this.#closing.abort()
    this.#edge.close()
    await Promise.all([this.#client.close(), this.#leaveCluster()])
  }

  /** Closes the port at once, with all connections. */
  async abandon(): Promise<void> {
    this.#app.server.close()
    this.#guard.destroy()
  }

  /** Finds out which nodes are back, and reports to them, to a local one about all clients; a report that fails is lost. */
  #report(): void {
    const http = this.#guard.report()
    const streams = this.#edge.audience.take()
    if (this.#origin === undefined) this.#client.probe()
    else void this.#origin.probe()
    this.#ownerReports?.send(streams)
    if (this.#isLocal) void this.#reportTo(http, streams).catch(() => undefined)
  }

  /** Tells each ingest process about viewers of its streams, and the first one about all clients. */
  async #reportTo(http: HttpReport, streams: WorkerReport['streams']): Promise<void> {
    const [first, ...others] = await this.#listIngestNodes()
    const audiences = new Map<string | undefined, Record<string, StreamAudience>>([[first, {}]])
    for (const [streamId, audience] of Object.entries(streams)) {
      const owner =
        others.length === 0 ? first : await this.#edge.findOwner(streamId).catch(() => undefined)
      const own = audiences.get(owner) ?? {}
      own[streamId] = audience
      audiences.set(owner, own)
    }
    const worker = `${process.pid}`
    const sent = [...audiences].map(async ([url, own]) => {
      if (url === undefined) return
      const report: WorkerReport = { worker, http: url === first ? http : NO_CLIENTS, streams: own }
      const body = Buffer.from(JSON.stringify(report))
      await this.#client.post(url, WORKER_REPORTS, body, this.#closing.signal)
    })
    await Promise.all(sent)
  }
}

/** The one node that an edge knows. */
function at(url: string): EdgeCluster {
  return { owners: fixedOwner(url), listIngestNodes: async () => [url] }
}
