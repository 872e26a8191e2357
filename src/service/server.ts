/**
 * Service: SRT listener -> streams -> HTTP, with keys, webhooks and a life cycle.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeCapacity } from './cache-report.ts'
import { systemClock } from '../clock.ts'
import { completeOptions } from '../config/options.ts'
import type { Config, Options } from '../config/schema.ts'
import { parseUrls } from '../config/setting-types.ts'
import { SegmentCache } from '../hls/store/segment-cache.ts'
import type {
  KickRequest,
  ListRequest,
  PlaybackSource,
  StartedStream,
  StartRequest,
  StopRequest,
  StreamControl,
  StreamPage,
  StreamRecord,
  ViewerIdentity,
} from '../contract/streams.ts'
import { AUDIT_LIMITS, limitLines } from '../limited-logger.ts'
import type { ClusterMember } from './cluster/member.ts'
import { Health, type UnreadyReason } from './health.ts'
import { HttpServers } from './http-servers.ts'
import type { Logger } from '../logger.ts'
import { Metrics } from './metrics/metrics.ts'
import { LocalControl } from './local-control.ts'
import { createNotifier, type Notifier } from './notifications.ts'
import { Records } from './records.ts'
import { PublicUrls } from './public-urls.ts'
import { nodeCallsOf, Settings } from './settings.ts'
import { sharedSettings, streamSettings } from './stream-options.ts'
import { Streams } from './streams.ts'
import { openListener } from './srt-listener.ts'
import type { Listener } from '../srt/io/listener.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { parseAllowList } from '../webhook/address-rules.ts'
import { createWebhookDispatcher, type WebhookDispatcher } from '../webhook/dispatcher.ts'

/** Interval of the stream timer, in milliseconds. */
const TICK_MS = 250

/** Time limit for the last webhooks in `close`, in milliseconds. */
const WEBHOOK_FLUSH_MS = 1500

export interface CloseOptions {
  /**
   * Time for which playlists stay available after ENDLIST is added, so that players load the tag; in a cluster, time in
   * which the encoders are sent to other nodes. Default 0.
   */
  readonly drainMs?: number
}

/**
 * A running service. In a cluster `status`, `list` and `kick` are for the streams of this process. Queries: `status`, `findStream`, `publicUrl`, `httpPort`, `srtPort`, `list`. Commands:
 * `startStream`, `stopStream`, `kick`, `reload`, `drain`, `close`. Event `stream`: a stream with events of its own was started or resumed.
 */
export class Server
  extends EventEmitter<{ stream: [stream: LiveStream] }>
  implements StreamControl, PlaybackSource
{
  /** The calls of the API, as `HTTP_PORT` has them: in a cluster, for the streams of all nodes. */
  readonly control: StreamControl
  readonly #settings: Settings
  readonly #logger: Logger
  readonly #urls: PublicUrls
  readonly #cluster: ClusterMember | undefined
  readonly #local: LocalControl
  readonly #streams: Streams
  readonly #webhooks: WebhookDispatcher
  readonly #notifier: Notifier
  readonly #metrics: Metrics
  readonly #http: HttpServers
  #listener: Listener | undefined
  #health: Health | undefined
  #ticker: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined

  /** Constructor for `createServer` and `createIngest` only; the latter has a Unix socket. */
  constructor(config: Config, logger: Logger, socketPath?: string, cluster?: ClusterMember) {
    super()
    this.#cluster = cluster
    this.#settings = new Settings(config)
    this.#logger = limitLines(logger, systemClock)
    this.#urls = new PublicUrls(config, this)
    this.#webhooks = createWebhookDispatcher({
      readKeys: () => this.#settings.secrets.webhook,
      allowed: parseAllowList(config.webhook.allow),
      logger: this.#logger,
      outbox: cluster?.outbox,
    })
    const urlsOf = (stream: LiveStream) =>
      this.#urls.playback(stream.id, this.#streams.formatsOf(stream))
    const notices = { urlsOf, announceEnd: cluster?.announceEnd }
    this.#notifier = createNotifier(this.#logger, this.#webhooks, notices)
    const cache = new SegmentCache({ maxBytes: config.cache.maxMib * 1024 * 1024 })
    const shared = sharedSettings(this.#settings, systemClock)
    this.#streams = new Streams({
      ...shared,
      cache,
      createEpoch: () => randomBytes(6).toString('hex'),
      onStream: (stream) => {
        this.#notifier.follow(stream)
        this.emit('stream', stream)
      },
      onResumed: (stream) => this.#notifier.resumed(stream),
      createSalt: () => randomBytes(4).readInt32LE(),
      onViewers: (stream, figures) => this.#notifier.viewers(stream, figures),
    })
    const countViewers = (stream: LiveStream) => this.#streams.viewersOf(stream)
    const audienceOf = (stream: LiveStream) => ({
      viewers: countViewers(stream),
      edges: this.#http.edges.of(stream),
    })
    const records = new Records({
      urlsOf,
      hasPlaybackSecret: config.playbackSecret !== '',
      audienceOf,
      ownTermsOf: (stream) => this.#streams.ownTermsOf(stream),
      ownershipOf: cluster?.ownershipOf,
      readLoad: () => this.#health && { ...this.#health.load, http: this.#http.report() },
    })
    this.#metrics = new Metrics({
      perStream: config.metrics.perStream,
      listStreams: () => this.#streams.all,
      audienceOf,
      readFigures: () => ({
        isReady: this.unreadyReasons.length === 0,
        cache: cache.stats,
        http: this.#http.report(),
        load: this.#health?.load,
        listener: this.#listener?.stats(),
        webhooks: this.#webhooks.stats(),
      }),
      readCluster: cluster && (() => cluster.report()),
    })
    const parts = {
      streams: this.#streams,
      records,
      notifier: this.#notifier,
      webhooks: this.#webhooks,
      urls: this.#urls,
    }
    this.#local = new LocalControl(parts)
    this.control =
      cluster?.join({ ...shared, ...parts, calls: nodeCallsOf(this.#settings)! }) ?? this.#local
    this.#http = new HttpServers({
      settings: this.#settings,
      service: this,
      metrics: this.#metrics,
      listUnreadyReasons: () => this.unreadyReasons,
      listPublished: () => this.#streams.published,
      countViewers,
      logger: this.#logger,
      auditLogger: limitLines(logger, systemClock, AUDIT_LIMITS),
      socketPath,
      cluster,
    })
  }

  /** UDP port of the SRT listener. */
  get srtPort(): number {
    return this.#listener?.address().port ?? this.#settings.config.srt.port
  }

  /** TCP port of the HTTP server. */
  get httpPort(): number {
    return this.#http.port
  }

  /** Base of public HTTP URLs, without a slash at the end. */
  get publicUrl(): string {
    return this.#urls.http
  }

  /** Opens the SRT and HTTP ports. */
  async listen(): Promise<void> {
    const onWarning = (message: string) => this.#logger.warn(message)
    this.#listener = await openListener({
      settings: this.#settings,
      streams: this.#cluster?.admission ?? this.#streams,
      isOverloaded: () => this.#health?.overloaded === true,
      onRejected: (remote, error, stream) => {
        this.#metrics.countReject(error.code)
        this.#notifier.rejected(remote, error, stream)
      },
      onWarning,
    })
    this.#health = new Health({
      listener: this.#listener,
      cache: this.#streams.cache,
      listPublished: () => this.#streams.published,
      onWarning,
    })
    await this.#http.listen()
    this.#cluster?.start(this.#urls.node)
    this.#ticker = setInterval(() => {
      this.#streams.tick()
      this.#health?.observe(systemClock.nowUs())
    }, TICK_MS)
  }

  /** Tells the log and webhooks that clients can reach the service. */
  announce(): void {
    const { config } = this.#settings
    const { cache, resumeStreams, defaultWebhookUrls } = config
    this.#logger.info(describeCapacity(cache.maxMib, streamSettings(config)))
    this.#logger.info({ http: this.publicUrl, srt_port: this.srtPort }, 'listening')
    this.#notifier.serviceStarted(parseUrls(defaultWebhookUrls), {
      publicUrl: this.publicUrl,
      srtUrl: this.#urls.srt,
      resumeStreams,
    })
  }

  /** @throws {MillraceError} `BODY_INVALID` for an id or URLs that the API refuses, `TOO_MANY_STREAMS`, `SHUTTING_DOWN` */
  startStream(request: StartRequest): Promise<StartedStream> {
    return this.control.startStream(request)
  }

  stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord> {
    return this.control.stopStream(streamId, request)
  }

  kick(streamId: string, request?: KickRequest): StreamRecord {
    return this.#local.kick(streamId, request)
  }

  status(streamId: string): StreamRecord {
    return this.#local.status(streamId)
  }

  list(request?: ListRequest): StreamPage {
    return this.#local.list(request)
  }

  /** Why no new streams are to be sent here; empty when ready. */
  get unreadyReasons(): readonly UnreadyReason[] {
    if (this.#closing !== undefined || this.#cluster?.isDraining) return ['draining']
    return this.#health?.reasonsAt(systemClock.nowUs()) ?? ['starting']
  }

  findStream(streamId: string): LiveStream | undefined {
    return this.#streams.find(streamId)
  }

  countViewer(stream: LiveStream, viewer: ViewerIdentity): void {
    this.#streams.countViewer(stream, viewer)
  }

  /**
   * Replaces all secrets except `SRT_PASSPHRASE`, and reads the files of TLS again. Other options and connections stay.
   *
   * @throws {MillraceError} `CONFIG_INVALID`; nothing has changed then
   */
  reload(options: Options): void {
    const secrets = this.#settings.readSecrets(completeOptions(options))
    this.#http.reloadCertificates()
    this.#settings.secrets = secrets
  }

  /** In a cluster: sends the encoders to other nodes, one each 2 s, and takes no more. Viewers are served until `close`. */
  async drain(): Promise<void> {
    await this.#cluster?.drain()
  }

  /** Ends all streams, or hands them over, and closes all ports. Settles when no timer, socket or memory is left. */
  close(options: CloseOptions = {}): Promise<void> {
    return (this.#closing ??= this.#shutDown(options.drainMs ?? 0))
  }

  /**
   * Closes the ports and nothing else, for a process that ends at once. Encoders get SHUTDOWN and call the next
   * process; playlists get no ENDLIST, so that viewers wait for the next process.
   */
  async abandon(): Promise<void> {
    clearInterval(this.#ticker)
    this.#http.abandon()
    // Begun at once: a second error ends the process before anything that comes later.
    await Promise.all([this.#cluster?.close(), this.#listener?.close()])
  }

  async #shutDown(drainMs: number): Promise<void> {
    await this.#cluster?.handOver(drainMs)
    const hadStreams = this.#streams.close('shutdown')
    await this.#listener?.close()
    const drained = hadStreams ? sleep(drainMs) : undefined
    await Promise.all([this.#webhooks.close({ timeoutMs: WEBHOOK_FLUSH_MS }), drained])
    clearInterval(this.#ticker)
    this.#health?.close()
    await this.#http.close()
    await this.#cluster?.close()
    this.#streams.discard()
    this.#logger.info('closed')
  }
}
