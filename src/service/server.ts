/**
 * The service put together: SRT listener -> streams -> HTTP, with keys, webhooks and a life cycle.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { isIPv6, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { Value } from 'typebox/value'
import { webhookKeys } from '../auth/standard-webhooks.ts'
import { explainAddress } from './bind-error.ts'
import { CacheReport, describeCapacity } from './cache-report.ts'
import { machineClock, systemClock } from '../clock.ts'
import {
  completeOptions,
  configWarnings,
  isWildcard,
  parseAddresses,
  parseSecrets,
  parseUrls,
  type Config,
  type Options,
} from '../config/schema.ts'
import { MillraceError } from '../errors.ts'
import { SegmentCache } from '../hls/store/segment-cache.ts'
import { buildApp } from '../http/app.ts'
import { HttpGuard, type HttpGuardStats } from '../http/guard/http-guard.ts'
import { formatBodyError, StartStreamBody } from '../contract/schema.ts'
import type {
  PlaybackSource,
  StartedStream,
  StartRequest,
  StopRequest,
  StreamControl,
  StreamRecord,
} from '../contract/streams.ts'
import { createAdmission } from '../ingest/admission.ts'
import { limitLines } from '../limited-logger.ts'
import { LoadMonitor } from './load-monitor.ts'
import { createLogger, type Logger } from '../logger.ts'
import { parseProgramChoice } from '../mpegts/program-choice.ts'
import { createNotifier, type Notifier } from './notifications.ts'
import { firstAddress } from './first-address.ts'
import { Streams } from './streams.ts'
import { createListener, type Listener } from '../srt/io/listener.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { parseAllowList } from '../webhook/address-rules.ts'
import { createWebhookDispatcher, type WebhookDispatcher } from '../webhook/dispatcher.ts'

/** How often streams are told that time has passed. */
const TICK_MS = 250

/** How long `close` waits for the webhooks that tell of the end. */
const WEBHOOK_FLUSH_MS = 1500

export interface ServerOptions extends Options {
  /** Where log lines go; by default JSON on standard output from `logLevel` on. */
  readonly logger?: Logger
}

export interface CloseOptions {
  /** How long playlists can still be fetched after their ENDLIST, so that players learn of the end; default 0. */
  readonly drainMs?: number
}

/**
 * Starts the service.
 *
 * @throws {MillraceError} `CONFIG_INVALID`, or `ADDRESS_IN_USE` naming the address; nothing is left running
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const config = completeOptions(options)
  const logger = options.logger ?? createLogger(config.logLevel)
  for (const warning of configWarnings(config)) logger.warn(warning)
  const server = new Server(config, logger)
  try {
    await server.listen()
  } catch (error) {
    await server.close()
    throw error
  }
  return server
}

/**
 * A running service. Questions: `status`, `findStream`, `httpUrl`, `srtPort`. Commands: `startStream`,
 * `stopStream`, `close`. Event `stream`: a stream was started; follow it by its own events.
 */
export class Server
  extends EventEmitter<{ stream: [stream: LiveStream] }>
  implements StreamControl, PlaybackSource
{
  readonly #config: Config
  readonly #logger: Logger
  readonly #cacheReport: CacheReport
  readonly #streams: Streams
  readonly #webhooks: WebhookDispatcher
  readonly #notifier: Notifier
  readonly #httpGuard: HttpGuard
  readonly #app: FastifyInstance
  #listener: Listener | undefined
  #load: LoadMonitor | undefined
  #ticker: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined

  /** Use `createServer`. */
  constructor(config: Config, logger: Logger) {
    super()
    const hmacSecrets = parseSecrets(config.hmacSecret)
    this.#config = config
    this.#logger = limitLines(logger, systemClock)
    this.#webhooks = createWebhookDispatcher({
      keys: webhookKeys(config.webhook.secret, hmacSecrets),
      allowed: parseAllowList(config.webhook.allow),
      logger: this.#logger,
    })
    this.#notifier = createNotifier(this.#logger, this.#webhooks, {
      playlistUrl: (id) => this.#playlistUrl(id),
    })
    const cache = new SegmentCache({ maxBytes: config.cache.maxMib * 1024 * 1024 })
    this.#cacheReport = new CacheReport(cache)
    this.#streams = new Streams({
      ...config.hls,
      program: parseProgramChoice(config.ts.program),
      maxStreams: config.maxStreams,
      reconnectGraceSec: config.reconnectGraceSec,
      maxBitrateBps: config.ingest.maxMbps * 1e6 || Infinity,
      clock: systemClock,
      cache,
      createEpoch: () => randomBytes(6).toString('hex'),
      jwtSecrets: parseSecrets(config.jwtSecret),
      resume: config.resumeStreams,
      webhookUrls: parseUrls(config.defaultWebhookUrls),
      onStream: (stream) => {
        this.#notifier.follow(stream)
        this.emit('stream', stream)
      },
      onResumed: (stream) => this.#notifier.resumed(stream),
    })
    const http = { playback: this, clock: systemClock, logger: this.#logger }
    this.#httpGuard = new HttpGuard({ ...http, limits: config.http })
    this.#app = buildApp({
      ...http,
      clock: machineClock,
      control: this,
      hmacSecrets,
      maxAgeSec: config.apiMaxAgeSec,
      guard: this.#httpGuard,
    })
  }

  /** UDP port of the SRT listener. */
  get srtPort(): number {
    return this.#listener?.address().port ?? this.#config.srt.port
  }

  /** TCP port of the HTTP server. */
  get httpPort(): number {
    // It listens on a port, never on a pipe, which would have no `AddressInfo`.
    const [address] = this.#app.addresses() as AddressInfo[]
    return address?.port ?? this.#config.http.port
  }

  /** Base of this server's public URLs, without a slash at its end. */
  get publicUrl(): string {
    const { url } = this.#config.public
    return url === '' ? `http://${this.#publicHost}:${this.httpPort}` : url.replace(/\/+$/, '')
  }

  /** Opens the SRT and HTTP ports. */
  async listen(): Promise<void> {
    const { srt, http, jwtSecret } = this.#config
    const onWarning = (message: string) => this.#logger.warn(message)
    const listener = await createListener({
      host: parseAddresses(srt.host),
      port: srt.port,
      latencyMs: srt.latencyMs,
      ...(srt.passphrase !== '' && { passphrase: srt.passphrase }),
      accept: createAdmission({
        streams: this.#streams,
        jwtSecrets: parseSecrets(jwtSecret),
        maxPublishers: this.#config.maxPublishers,
        clock: systemClock,
        sleep: (ms, signal) => sleep(ms, undefined, { signal }),
        defer: setImmediate,
        onRejected: (...refusal) => this.#notifier.rejected(...refusal),
      }),
      onWarning,
    }).catch(explainAddress('SRT', srt.host))
    this.#listener = listener
    const readKernelDrops = () => listener.kernelDrops()
    this.#load = new LoadMonitor({ clock: systemClock, readKernelDrops, onWarning })
    await this.#app
      // At `localhost` Fastify would open a second server, which nothing guards.
      .listen({ host: http.host === 'localhost' ? '127.0.0.1' : http.host, port: http.port })
      .catch(explainAddress('HTTP', http.host))
    this.#ticker = setInterval(() => {
      this.#streams.tick()
      this.#cacheReport.observe(systemClock.nowUs()).forEach(onWarning)
    }, TICK_MS)
    this.#logger.info(describeCapacity(this.#config.cache.maxMib, this.#config.hls))
    this.#logger.info({ http: this.publicUrl, srt_port: this.srtPort }, 'listening')
    const { resumeStreams, defaultWebhookUrls } = this.#config
    this.#notifier.serviceStarted(parseUrls(defaultWebhookUrls), {
      publicUrl: this.publicUrl,
      srtUrl: this.#srtUrl,
      resumeStreams,
    })
  }

  /**
   * @throws {MillraceError} `BODY_INVALID` for an id or URLs that the API would not take, `TOO_MANY_STREAMS`,
   *   `SHUTTING_DOWN`
   */
  async startStream(request: StartRequest): Promise<StartedStream> {
    checkStartRequest(request)
    this.#webhooks.check(request.webhookUrls ?? [])
    const { stream, key } = await this.#streams.start(request)
    const { id: streamId, status, encryption } = stream
    const passphrase = encryption && { passphrase: encryption.passphrase }
    const secured = encryption ? `&passphrase=${encryption.passphrase}&pbkeylen=32` : ''
    const srtUrl = `${this.#srtUrl}?streamid=${key.streamKey}${secured}`
    const issued = { srtUrl, ...key, ...passphrase }
    this.#notifier.ready(stream, issued)
    return { streamId, status, ...issued, playlistUrl: this.#playlistUrl(streamId) }
  }

  async stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord> {
    return this.#record(this.#streams.stop(streamId, request))
  }

  status(streamId: string): StreamRecord {
    return this.#record(this.#streams.get(streamId))
  }

  findStream(streamId: string): LiveStream | undefined {
    return this.#streams.find(streamId)
  }

  /** Connections of the HTTP server, and what was refused or cut. */
  httpStats(): HttpGuardStats {
    return this.#httpGuard.stats()
  }

  /** Ends all streams and closes all ports; what was started is gone when it settles. */
  close(options: CloseOptions = {}): Promise<void> {
    this.#closing ??= this.#shutDown(options.drainMs ?? 0)
    return this.#closing
  }

  /**
   * Closes the ports and nothing else, for a process that is to end at once: encoders are told, so that they call the
   * process that comes next; playlists get no ENDLIST, so that viewers wait for it.
   */
  async abandon(): Promise<void> {
    clearInterval(this.#ticker)
    this.#app.server.close()
    this.#app.server.closeAllConnections()
    await this.#listener?.close()
  }

  async #shutDown(drainMs: number): Promise<void> {
    const hadStreams = this.#streams.close('shutdown')
    await this.#listener?.close()
    await Promise.all([
      this.#webhooks.close({ timeoutMs: WEBHOOK_FLUSH_MS }),
      hadStreams ? sleep(drainMs) : undefined,
    ])
    clearInterval(this.#ticker)
    this.#load?.close()
    await this.#app.close()
    this.#streams.discard()
    this.#logger.info('closed')
  }

  /** As a URL writes it. */
  get #publicHost(): string {
    const [first = ''] = parseAddresses(this.#config.srt.host)
    const host = this.#config.public.host || (isWildcard(first) ? firstAddress() : first)
    return isIPv6(host) ? `[${host}]` : host
  }

  #playlistUrl(streamId: string): string {
    return `${this.publicUrl}/video/${streamId}/playlist.m3u8`
  }

  get #srtUrl(): string {
    return `srt://${this.#publicHost}:${this.srtPort}`
  }

  #record(stream: LiveStream): StreamRecord {
    const playlistUrl = this.#playlistUrl(stream.id)
    return { ...stream.report(), playlistUrl, service: this.#load?.load }
  }
}

/** The library takes what the API takes. */
function checkStartRequest({ streamId, webhookUrls, encryption }: StartRequest): void {
  const body = {
    stream_id: streamId,
    ...(webhookUrls !== undefined && { webhook_urls: webhookUrls }),
    ...(encryption !== undefined && { encryption }),
  }
  const errors = Value.Errors(StartStreamBody, body)
  if (errors.length === 0) return
  throw new MillraceError('BODY_INVALID', { message: formatBodyError(errors).message })
}
