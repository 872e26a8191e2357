/**
 * Streams and their keys: start, stop, resumption, and admission of keys.
 *
 * @module
 */
import { KeyFloors } from '../auth/key-floors.ts'
import {
  deriveEncryption,
  issueStreamKey,
  STREAM_KEY_LIFETIME_SEC,
  type StreamKey,
  type StreamKeyClaims,
} from '../auth/stream-key.ts'
import type { Clock } from '../clock.ts'
import type { Continuation, RegisteredStream } from '../cluster/registry/records.ts'
import { decodeSettings } from '../cluster/stream-settings.ts'
import { MillraceError } from '../errors.ts'
import type { MediaSource } from '../hls/playlist/earlier-segments.ts'
import type {
  Format,
  KickRequest,
  StartRequest,
  StopRequest,
  StreamOptions,
  StreamRecord,
  ViewerIdentity,
} from '../contract/streams.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { StreamRegistry, type RegistryOptions, type StreamFilter } from '../stream/registry.ts'
import type { StopReason } from '../contract/state.ts'
import { manifestOf } from './registered-manifest.ts'
import {
  checkMedia,
  ownOptions,
  streamMedia,
  streamTerms,
  type MediaSettings,
} from './stream-options.ts'
import { ownOptionsOf, RegisteredTerms } from './registered-terms.ts'
import { adoptClaims, Resumption } from './resumption.ts'
import { Viewers, type ViewerFigures } from './viewers/viewers.ts'

export type StreamsOptions = RegistryOptions &
  MediaSettings & {
    readonly clock: Clock
    /** Reads the values of `JWT_SECRET`: the first signs new keys, older ones may have signed keys that are still valid. */
    readonly readJwtSecrets: () => readonly [newest: string, ...older: string[]]
    /** Whether a key issued before this process started resumes its stream. */
    readonly resume: boolean
    /** Whether viewers need playback tokens, unless the stream is public. */
    readonly hasPlaybackSecret: boolean
    /** Webhook URLs of streams without their own. */
    readonly webhookUrls: readonly string[]
    /** Called with each new stream, before the stream emits an event. */
    readonly onStream: (stream: LiveStream) => void
    /** Called when the first encoder of a resumed stream is connected. */
    readonly onResumed: (stream: LiveStream) => void
    /** Draws 32 random bits. */
    readonly createSalt: () => number
    /** See `ViewersOptions.onChange`. */
    readonly onViewers: (stream: LiveStream, figures: ViewerFigures) => void
  }

/**
 * Commands: `start`, `stop`, `kick`, `admit`, `adopt`, `leave`, `countViewer`, `tick`, `close`, `discard`. Queries: `find`,
 * `get`, `room`, `list`, `published`, `viewersOf`, `formatsOf`, `ownTermsOf`.
 */
export class Streams {
  readonly cache: RegistryOptions['cache']
  readonly #options: StreamsOptions
  readonly #registry: StreamRegistry
  readonly #floors = new KeyFloors()
  readonly #registered: RegisteredTerms
  readonly #resumption: Resumption
  /** Streams that `admit` resumed, without an API call. */
  readonly #resumed = new WeakSet<LiveStream>()
  readonly #viewers: Viewers
  readonly #ownOptions = new WeakMap<LiveStream, StreamOptions>()
  #closed = false

  constructor(options: StreamsOptions) {
    const { clock, resume, createSalt, onViewers } = options
    this.#options = options
    this.cache = options.cache
    this.#viewers = new Viewers({ createSalt, onChange: onViewers })
    this.#registry = new StreamRegistry(options)
    this.#registered = new RegisteredTerms(options, this.#floors)
    this.#resumption = new Resumption({ enabled: resume, startedMs: clock.wallMs() })
    this.#registry.on('stream', (stream) => {
      stream.webhookUrls = options.webhookUrls
      stream.once('end', ({ reason }) => {
        // No encoder has connected yet: a key that expires later may still resume the stream.
        if (reason !== 'key-expired') this.#resumption.end(stream.id, clock.wallMs())
      })
      options.onStream(stream)
    })
  }

  /** See `StreamRegistry.room`. */
  get room(): number {
    return this.#registry.room
  }

  /** @returns undefined for an id that was never started, or whose stopped stream is no longer retained */
  find(streamId: string): LiveStream | undefined {
    return this.#registry.find(streamId)
  }

  /** @throws {MillraceError} `STREAM_NOT_FOUND` */
  get(streamId: string): LiveStream {
    const stream = this.find(streamId)
    if (stream === undefined) throw new MillraceError('STREAM_NOT_FOUND')
    return stream
  }

  /**
   * Issues a new key for a stream, and starts the stream unless it is running.
   *
   * @param request  already checked against the schema
   * @throws {MillraceError} `BODY_INVALID` if the settings do not allow a value, `SHUTTING_DOWN`, `TOO_MANY_STREAMS`
   */
  async start(request: StartRequest): Promise<{ stream: LiveStream; key: StreamKey }> {
    if (this.#closed) throw new MillraceError('SHUTTING_DOWN')
    const { streamId, webhookUrls, encryption } = request
    const { clock } = this.#options
    checkMedia(request, this.#options)
    const media = streamMedia(this.#options, request)
    const terms = streamTerms(request, this.#options)
    const present = this.find(streamId)
    const running = present?.status === 'STOPPED' ? undefined : present
    const stream = this.#registry.start(streamId, { media })
    const known = running && (this.#ownOptions.get(running) ?? {})
    this.#ownOptions.set(stream, ownOptions(request, known))
    stream.terms = { ...stream.terms, ...terms }
    const now = this.#floors.issueTime(streamId, clock.wallMs())
    stream.renewKey(now.getTime() + STREAM_KEY_LIFETIME_SEC * 1000)
    if (webhookUrls !== undefined) stream.webhookUrls = webhookUrls
    const secret = this.#secretOf(stream)
    // The passphrase stays the same until the stream stops, for encoders that return with an older key.
    if (encryption === true) {
      const sinceSec = Math.floor(now.getTime() / 1000)
      stream.encryption ??= deriveEncryption({ streamId, secret, sinceSec })
    }
    const encryptedSinceSec = stream.encryption?.sinceSec
    const key = await issueStreamKey({ streamId, secret, now, encryptedSinceSec })
    return { stream, key }
  }

  /**
   * Ends a stream and excludes it from resumption; `revoke` also revokes the keys issued so far. For an unknown stream,
   * both take effect before the exception.
   *
   * @throws {MillraceError} `STREAM_NOT_FOUND`
   */
  stop(streamId: string, { revoke = false }: StopRequest = {}): LiveStream {
    const wallMs = this.#options.clock.wallMs()
    if (revoke) this.#floors.revoke(streamId, wallMs)
    this.#resumption.end(streamId, wallMs)
    const stream = this.find(streamId)
    if (stream === undefined) {
      const message = 'no such stream; the keys issued for it so far are revoked'
      throw new MillraceError('STREAM_NOT_FOUND', revoke ? { message } : {})
    }
    stream.stop('api')
    return stream
  }

  /**
   * Finds or resumes the stream of a verified key.
   *
   * @throws {MillraceError} `STREAM_KEY_REVOKED`, `STREAM_NOT_FOUND`, `TOO_MANY_STREAMS`
   */
  admit(claims: StreamKeyClaims): LiveStream {
    if (this.#floors.isRevoked(claims)) throw new MillraceError('STREAM_KEY_REVOKED')
    const present = this.find(claims.streamId)
    const stream =
      present === undefined || present.status === 'STOPPED' ? this.#resume(claims) : present
    if (this.#resumed.has(stream)) adoptClaims(stream, claims)
    return stream
  }

  /** Continues a stream of the cluster, with the media that there is of it. @throws {MillraceError} as `start` */
  adopt(continuation: Continuation, mediaOf?: MediaSource): LiveStream {
    if (this.#closed) throw new MillraceError('SHUTTING_DOWN')
    const { stream: registered } = continuation
    const manifest = manifestOf(continuation, this.#options)
    const { id, reason: ended } = registered
    const settings = decodeSettings(registered.settings)
    const media = streamMedia(this.#options, settings.media)
    const stream = this.#registry.start(id, { media, continued: { manifest, mediaOf, ended } })
    this.#ownOptions.set(stream, ownOptionsOf(settings))
    this.#registered.adopt(stream, registered)
    return stream
  }

  /** Forgets a stream that another node of the cluster continues. */
  leave(stream: LiveStream): void {
    this.#registry.leave(stream)
  }

  /**
   * Disconnects the encoder of a stream, and refuses encoders for `banSec`.
   *
   * @throws {MillraceError} `STREAM_NOT_FOUND`
   */
  kick(streamId: string, { banSec = 0 }: KickRequest = {}): LiveStream {
    const stream = this.get(streamId)
    const bannedUntilUs = this.#options.clock.nowUs() + banSec * 1e6
    stream.terms = { ...stream.terms, bannedUntilUs }
    stream.disconnect('kicked')
    return stream
  }

  /** Brings a stream of this node in line with its record in the registry of the cluster. */
  refresh(registered: RegisteredStream): void {
    const stream = this.find(registered.id)
    if (stream === undefined || stream.status === 'STOPPED') return
    this.#ownOptions.set(stream, ownOptionsOf(decodeSettings(registered.settings)))
    if (registered.status === 'STOPPED') stream.stop(registered.reason ?? 'api')
    else this.#registered.refresh(stream, registered)
  }

  formatsOf(stream: LiveStream): readonly Format[] {
    return this.#ownOptions.get(stream)?.formats ?? this.#options.formats
  }

  /** Options that the stream has of its own, and its ban. */
  ownTermsOf(stream: LiveStream): Pick<StreamRecord, 'options' | 'bannedUntil'> {
    const { clock } = this.#options
    const bannedMs = ((stream.terms.bannedUntilUs ?? -Infinity) - clock.nowUs()) / 1000
    return {
      options: this.#ownOptions.get(stream) ?? {},
      ...(bannedMs > 0 && { bannedUntil: new Date(clock.wallMs() + bannedMs) }),
    }
  }

  /** Counts a viewer to whom a file of the stream is sent. */
  countViewer(stream: LiveStream, viewer: ViewerIdentity): void {
    this.#viewers.push(stream, viewer, this.#options.clock.nowUs())
  }

  /** Estimated number of viewers. */
  viewersOf(stream: LiveStream): number {
    return this.#viewers.count(stream, this.#options.clock.nowUs())
  }

  /** See `StreamRegistry.list`. */
  list(filter: StreamFilter): readonly LiveStream[] {
    return this.#registry.list(filter)
  }

  /** All streams, in no order; those whose linger is over may be among them. */
  get all(): Iterable<LiveStream> {
    return this.#registry
  }

  /** Advances the timers of the streams; due about 4 times a second. */
  tick(): void {
    this.#registry.tick()
    this.#viewers.tick(this.#options.clock.nowUs())
  }

  /** Streams with an encoder, the one that connected last at the end. */
  get published(): readonly LiveStream[] {
    return this.#registry.published
  }

  /**
   * Ends all streams and refuses new ones.
   *
   * @returns whether any stream was running
   */
  close(reason: StopReason): boolean {
    this.#closed = true
    const running = [...this.#registry].some(({ status }) => status !== 'STOPPED')
    this.#registry.stopAll(reason)
    return running
  }

  /** Releases the memory of all segments. */
  discard(): void {
    for (const stream of this.#registry) stream.discard()
  }

  #resume(claims: StreamKeyClaims): LiveStream {
    if (this.#closed || !this.#resumption.allows(claims)) {
      const message = 'no such stream: call start-stream before the encoder connects'
      throw new MillraceError('STREAM_NOT_FOUND', { message })
    }
    const stream = this.#registry.start(claims.streamId, { resumed: true })
    this.#resumed.add(stream)
    stream.once('publish', () => this.#options.onResumed(stream))
    return stream
  }

  /**
   * Secret that signs new keys of the stream: the secret from which its passphrase was derived; without encryption, the
   * newest secret.
   */
  #secretOf({ id: streamId, encryption }: LiveStream): string {
    const jwtSecrets = this.#options.readJwtSecrets()
    const [newest] = jwtSecrets
    if (encryption === undefined) return newest
    const { sinceSec, passphrase } = encryption
    const derives = (secret: string) =>
      deriveEncryption({ streamId, secret, sinceSec }).passphrase === passphrase
    return jwtSecrets.find(derives) ?? newest
  }
}
