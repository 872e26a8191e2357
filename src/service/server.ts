/**
 * Service: SRT listener -> streams -> HTTP, with keys, webhooks and a life cycle.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Journal } from '../admin/journal.ts'
import type { Archive } from '../archive/archive.ts'
import { openArchive } from './archiving.ts'
import { createReaderAdmission } from '../egress/reader-admission.ts'
import { describeCapacity } from './cache-report.ts'
import { systemClock } from '../timing/clock.ts'
import { completeSettings } from '../config/complete-settings.ts'
import { inVariableNames, renameIn, type NameSettings } from '../config/option-names.ts'
import type { Config, GivenSettings } from '../config/schema.ts'
import { parseUrls } from '../config/setting-types.ts'
import { SegmentCache } from '../hls/store/segment-cache.ts'
import type { PlaybackSource, ViewerIdentity } from '../playback/playback-source.ts'
import {
  type ClipRequest,
  type KickRequest,
  type ListRequest,
  type StartRequest,
  type StopRequest,
} from '../api/requests.ts'
import type {
  ClipReport,
  EncoderSource,
  StartedStream,
  StreamPage,
  StreamRecord,
} from '../api/records.ts'
import type { StreamControl } from '../api/control.ts'
import { AUDIT_LIMITS, limitLines } from '../timing/limited-logger.ts'
import type { Cluster, JoinCluster } from './cluster.ts'
import { Health, type UnreadyReason } from './health.ts'
import { HttpServers } from './http-servers.ts'
import type { Logger } from '../logger.ts'
import { Metrics } from './metrics/metrics.ts'
import { LocalControl } from './local-control.ts'
import { createNotifier, type Notifier } from './notifications.ts'
import { Records } from './records.ts'
import { PublicUrls } from './public-urls.ts'
import { nodeCallsOf, Settings } from './settings-in-use.ts'
import { sharedSettings, streamSettings } from './stream-defaults.ts'
import { StreamPorts } from './stream-ports.ts'
import { Slates } from './slates.ts'
import { SrtCaller } from './srt-caller.ts'
import { Streams } from './streams.ts'
import { hashOfViewer } from './viewers/viewer-count.ts'
import { admitEncoders, openListener } from './srt-listener.ts'
import type { Admission } from '../ingest/admission.ts'
import { Pushes } from '../egress/pushes.ts'
import { Pulls } from '../ingest/pulls.ts'
import type { PeerCalls } from '../outbound/stream-peers.ts'
import type { Listener } from '../srt/io/listener.ts'
import { parseSrtUrl } from '../srt/io/srt-url.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { parseAllowList } from '../outbound/address-rules.ts'
import { createWebhookDispatcher, type WebhookDispatcher } from '../webhook/dispatcher.ts'

/** Interval of the stream timer, in milliseconds. */
const TICK_MS = 250

/** Time limit for the last webhooks in `close`, in milliseconds. */
const WEBHOOK_FLUSH_MS = 1500

/** Time limit for the last files of the archive, and for the last packets of readers and pushes, in `close`, in milliseconds. */
const FLUSH_MS = 6000

/** Maximum number of warnings that wait for the start to succeed: callers on an open port may cause any number. */
const MAX_EARLY_WARNINGS = 100

/** Options of `Server.close`. */
export interface CloseOptions {
  /**
   * Time for which playlists stay available after ENDLIST is added, so that players load the tag; in a cluster, time in
   * which the encoders are sent to other nodes. Default 0.
   */
  readonly drainMs?: number
}

export interface ServerParts {
  /** Unix socket for workers in place of `HTTP_HOST` and `HTTP_PORT`, which they serve; default: none. */
  readonly socketPath?: string | undefined
  /** Whether another process of this service has the ports that are not shared, and tells that it has started. */
  readonly isSecondary?: boolean | undefined
  /** Default: there is no cluster. */
  readonly joinCluster?: JoinCluster | undefined
  /** Whether `handler` alone takes the requests of `HTTP_PORT`; default: false. */
  readonly isPortless?: boolean | undefined
  /** Rewrites messages about settings; default: they have the names of the environment. */
  readonly nameSettings?: NameSettings | undefined
}

/**
 * A service: `listen`, then `announce`, at the end `close`, or `abandon` alone. Getters, `status`, `list` and `findStream` are
 * queries, the other methods are commands. In a cluster `status`, `list`, `kick`, `switchSource` and `findStream` are for the
 * streams of this process. Event `stream`: a stream with events of its own was started, resumed, or taken over.
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
  readonly #cluster: Cluster | undefined
  readonly #local: LocalControl
  readonly #streams: Streams
  readonly #ports: StreamPorts
  readonly #admission: Admission
  readonly #srtCaller: SrtCaller
  readonly #pulls: Pulls
  readonly #pushes: Pushes
  readonly #webhooks: WebhookDispatcher
  readonly #notifier: Notifier
  readonly #archive: Archive | undefined
  readonly #metrics: Metrics
  readonly #http: HttpServers
  readonly #nameSettings: NameSettings
  readonly #isSecondary: boolean
  #listener: Listener | undefined
  #health: Health | undefined
  #ticker: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined
  /** Warnings until `announce`: the log of a start that fails is its error alone. */
  #earlyWarnings: string[] | undefined = []

  /** Constructor for `create-server.ts` only. */
  constructor(config: Config, logger: Logger, parts: ServerParts = {}) {
    super()
    const { joinCluster, nameSettings = inVariableNames, isSecondary = false } = parts
    this.#isSecondary = isSecondary
    this.#nameSettings = nameSettings
    this.#settings = new Settings(config)
    this.#logger = limitLines(logger, systemClock)
    this.#urls = new PublicUrls(config, this)
    const journal = config.admin.password === '' ? undefined : new Journal(systemClock)
    this.#webhooks = createWebhookDispatcher({
      readKeys: () => this.#settings.secrets.webhook,
      allowed: parseAllowList(config.webhook.allow),
      logger: this.#logger,
      onAttempt: (attempt) => {
        const { streamId } = attempt.event
        if (streamId !== undefined) journal?.noteDelivery(streamId, attempt)
      },
      // At the end of all nodes nobody is left to deliver the rest.
      readOutbox: () =>
        this.#closing !== undefined && this.#cluster?.othersGoOn === false
          ? undefined
          : this.#cluster?.outbox,
    })
    const urlsOf = (stream: LiveStream) =>
      this.#urls.playback(stream.id, this.#streams.formatsOf(stream))
    this.#notifier = createNotifier(this.#logger, this.#webhooks, {
      urlsOf,
      journal,
      announceEnd: (...end) => this.#cluster?.announceEnd(...end) === true,
    })
    this.#archive = openArchive({
      settings: this.#settings,
      logger: this.#logger,
      notifier: this.#notifier,
    })
    const slates = new Slates(config.slateDir, {
      onFailed: (message) => this.#logger.warn(`${message}. Viewers wait instead.`),
    })
    const cache = new SegmentCache({ maxBytes: config.cache.maxMib * 1024 * 1024 })
    this.#streams = new Streams({
      ...sharedSettings(this.#settings, systemClock),
      cache,
      readSlate: (name) => slates.get(name),
      createEpoch: () => randomBytes(6).toString('hex'),
      onListenerError: (err) =>
        this.#logger.error({ err }, 'a listener of the event of a stream has thrown'),
      onStream: (stream) => {
        this.#notifier.follow(stream)
        this.#archive?.follow(stream)
        this.#pulls.follow(stream)
        this.#pushes.follow(stream)
        this.emit('stream', stream)
      },
      onResumed: (stream) => this.#notifier.resumed(stream),
      createSalt: () => randomBytes(4).readInt32LE(),
      onViewers: (stream, figures) => this.#notifier.viewers(stream, figures),
    })
    this.#ports = new StreamPorts({
      settings: this.#settings,
      streams: this.#streams,
      readListener: () => this.#listener,
    })
    const audienceOf = (stream: LiveStream) => ({
      viewers: this.#streams.viewersOf(stream),
      edges: this.#http.edges.of(stream),
    })
    const records = new Records({
      urlsOf,
      hasPlaybackSecret: config.playbackSecret !== '',
      audienceOf,
      ownPolicyOf: (stream) => {
        const publishPort = this.#ports.portOf(stream.id)
        return { ...this.#streams.ownPolicyOf(stream), ...(publishPort && { publishPort }) }
      },
      pullOf: (stream) => this.#pulls.reportOf(stream),
      pushesOf: (stream) => this.#pushes.reportOf(stream),
      archiveOf: (stream) => this.#archive?.reportOf(stream),
      ownershipOf: (streamId) => this.#cluster?.ownershipOf(streamId),
      keysOf: (stream) => this.#streams.keysOf(stream),
      readLoad: () => this.#health && { ...this.#health.load, http: this.#http.report() },
    })
    this.#srtCaller = new SrtCaller({
      allowed: parseAllowList(config.pull.allow)!,
      onWarning: this.#warn,
    })
    const shared = {
      streams: this.#streams,
      records,
      notifier: this.#notifier,
      webhooks: this.#webhooks,
      urls: this.#urls,
      slates,
      srtCaller: this.#srtCaller,
      archive: this.#archive,
      readPlaybackSecrets: () => this.#settings.secrets.playback,
    }
    this.#local = new LocalControl({ ...shared, ports: this.#ports })
    this.#cluster = joinCluster?.({
      ...shared,
      config,
      logger: this.#logger,
      settings: this.#settings,
      calls: nodeCallsOf(this.#settings)!,
      expectCaller: (caller) => this.#listener?.expect(caller),
    })
    this.control = this.#cluster?.control ?? this.#local
    this.#admission = admitEncoders({
      settings: this.#settings,
      streams: this.#cluster?.admission ?? this.#streams,
      streamOfPort: (port) => (this.#cluster ?? this.#ports).ownerOf(port),
      isOverloaded: () => this.#health?.overloaded === true,
      onRejected: (remote, error, stream) => {
        this.#metrics.countReject(error.code)
        this.#notifier.rejected(remote, error, stream)
      },
    })
    const calls: PeerCalls = {
      parseUrl: parseSrtUrl,
      call: (target, options) => this.#srtCaller.call(target, options),
      latencyMs: config.srt.latencyMs,
      clock: systemClock,
      random: Math.random,
    }
    this.#pulls = new Pulls({ ...calls, admission: this.#admission, defer: setImmediate })
    this.#pushes = new Pushes({
      ...calls,
      isOverloaded: () => this.#health?.overloaded === true,
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
        srtla: this.#listener?.srtlaStats(),
        webhooks: this.#webhooks.stats(),
        archive: this.#archive?.stats,
        pulls: this.#pulls.stats,
        pushes: this.#pushes.stats,
      }),
      clusterFamilies: this.#cluster?.metrics,
    })
    this.#http = new HttpServers({
      settings: this.#settings,
      service: this,
      streams: this.#streams,
      metrics: this.#metrics,
      listUnreadyReasons: () => this.unreadyReasons,
      journal,
      logger: this.#logger,
      auditLogger: limitLines(logger, systemClock, AUDIT_LIMITS),
      socketPath: parts.socketPath,
      isSecondary,
      isPortless: parts.isPortless,
      cluster: this.#cluster,
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

  /** Answers a request that came to a server of the application, see `HttpServers.handle`. */
  readonly handler = (...exchange: Parameters<HttpServers['handle']>): void =>
    this.#http.handle(...exchange)

  /** Base of public HTTP URLs, without a slash at the end. */
  get publicUrl(): string {
    return this.#urls.http
  }

  /** Opens the SRT and HTTP ports. */
  async listen(): Promise<void> {
    this.#listener = await openListener({
      settings: this.#settings,
      publish: (...request) => this.#admission.admit(...request),
      read: createReaderAdmission({
        streams: this.#cluster?.admission ?? this.#streams,
        readPlaybackSecrets: () => this.#settings.secrets.playback,
        maxReaders: this.#settings.config.srt.maxReaders,
        isOverloaded: () => this.#health?.overloaded === true,
        clock: systemClock,
        onRejected: (remote, error, stream) => {
          this.#metrics.countReject(error.code)
          this.#notifier.readerRejected(remote, error, stream)
        },
        onReader: (...reader) => this.#notifier.reader(...reader),
      }),
      move: async (...caller) => this.#cluster?.move(...caller),
      onWarning: this.#warn,
    })
    this.#health = new Health({
      listener: this.#listener,
      cache: this.#streams.cache,
      listPublished: () => this.#streams.published,
      closeReaders: () => this.#streams.closeReaders(),
      onWarning: this.#warn,
    })
    await this.#http.listen()
    this.#cluster?.start(this.#urls.node)
    this.#ticker = setInterval(() => {
      this.#streams.tick()
      this.#pulls.tick()
      this.#pushes.tick()
      this.#archive?.tick()
      this.#health?.observe(systemClock.nowUs())
    }, TICK_MS)
  }

  /** Tells the log and webhooks that clients can reach the service. */
  announce(): void {
    const { config } = this.#settings
    const { cache, resumeStreams, defaultWebhookUrls } = config
    for (const warning of this.#earlyWarnings ?? []) this.#logger.warn(warning)
    this.#earlyWarnings = undefined
    this.#logger.info(describeCapacity(cache.maxMib, streamSettings(config)))
    if (this.#isSecondary) return
    const srtla = config.srtla.port === 0 ? {} : { srtla_port: config.srtla.port }
    this.#logger.info({ http: this.publicUrl, srt_port: this.srtPort, ...srtla }, 'listening')
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

  revokeKey(streamId: string, keyId: string): Promise<StreamRecord> {
    return this.control.revokeKey(streamId, keyId)
  }

  kick(streamId: string, request?: KickRequest): StreamRecord {
    return this.#local.kick(streamId, request)
  }

  switchSource(streamId: string, source: EncoderSource): StreamRecord {
    return this.#local.switchSource(streamId, source)
  }

  clip(streamId: string, request: ClipRequest): Promise<ClipReport> {
    return this.control.clip(streamId, request)
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
    this.#streams.countViewer(stream, hashOfViewer(viewer))
  }

  /**
   * Replaces all secrets except `SRT_PASSPHRASE`, and reads the files of TLS again. Other options and connections stay.
   *
   * @throws {MillraceError} `CONFIG_INVALID`; nothing has changed then
   */
  reload(options: GivenSettings): void {
    try {
      const secrets = this.#settings.readSecrets(completeSettings(options))
      this.#http.reloadCertificates()
      this.#settings.secrets = secrets
    } catch (error) {
      throw renameIn(error, this.#nameSettings)
    }
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
    await Promise.all([
      this.#cluster?.close(),
      this.#listener?.close(),
      this.#pulls.close(),
      this.#pushes.close(0),
    ])
  }

  readonly #warn = (message: string): void => {
    if (this.#earlyWarnings === undefined) this.#logger.warn(message)
    else if (this.#earlyWarnings.length < MAX_EARLY_WARNINGS) this.#earlyWarnings.push(message)
  }

  async #shutDown(drainMs: number): Promise<void> {
    await this.#cluster?.handOver(drainMs)
    const hadStreams = this.#streams.close('shutdown')
    this.#srtCaller.close()
    const drained = hadStreams ? sleep(drainMs) : undefined
    await Promise.all([
      this.#pulls.close(),
      this.#pushes.close(FLUSH_MS),
      this.#listener?.close(FLUSH_MS),
      this.#archive?.close(FLUSH_MS),
      this.#cluster?.settleEnds(),
    ])
    await Promise.all([this.#webhooks.close({ timeoutMs: WEBHOOK_FLUSH_MS }), drained])
    clearInterval(this.#ticker)
    this.#health?.close()
    await this.#http.close()
    await this.#cluster?.close()
    this.#streams.discard()
    // A start that failed, with an error of its own, has no ticker.
    if (this.#ticker !== undefined) this.#logger.info('closed')
  }
}
