/**
 * Streams and their keys: start, stop, resumption, and admission of keys.
 *
 * @module
 */
import { KeyFloors } from '../auth/key-floors.ts'
import { keyIdOf, KeyList, type KeyFacts } from '../auth/key-list.ts'
import {
  deriveEncryption,
  issueStreamKeys,
  STREAM_KEY_LIFETIME_SEC,
  type IssuedKeys,
  type StreamKeyClaims,
} from '../auth/stream-key.ts'
import type { Clock } from '../timing/clock.ts'
import { MillraceError, NO_STREAM } from '../errors.ts'
import type { Format } from '../hls/file-names.ts'
import type { KickRequest, StartRequest, StopRequest } from '../api/requests.ts'
import type { EncoderSource, KeyReport, StopReason, StreamRecord } from '../api/records.ts'
import { given, MEDIA_OPTIONS, POLICY_OPTIONS, type OwnMedia } from '../api/stream-options.ts'
import type { ContinuedStream } from '../stream/live-stream-options.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import {
  StreamRegistry,
  type RegistryOptions,
  type StreamFilter,
} from '../stream/stream-registry.ts'
import {
  checkOptions,
  ownOptions,
  streamMedia,
  type MediaSettings,
  type OptionBounds,
} from './stream-defaults.ts'
import { applyClaims, Resumption } from './resumption.ts'
import { Viewers, type ViewerFigures } from './viewers/viewers.ts'

export type StreamsOptions = RegistryOptions &
  MediaSettings &
  OptionBounds & {
    readonly clock: Clock
    /** Reads the values of `JWT_SECRET`: the first signs new keys, older ones may have signed keys that are still valid. */
    readonly readJwtSecrets: () => readonly [newest: string, ...older: string[]]
    /** Whether a key issued before this process started resumes its stream. */
    readonly resume: boolean
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
 * Commands: `start`, `stop`, `revokeKey`, `listKeys`, `kick`, `switchSource`, `admit`, `continueStream`, `leave`, `closeReaders`, `setMedia`,
 * `refuseKeysBefore`, `countViewer`, `tick`; last `close`, then `discard`. All else are queries.
 */
export class Streams {
  readonly cache: RegistryOptions['cache']
  readonly #options: StreamsOptions
  readonly #registry: StreamRegistry
  readonly #floors = new KeyFloors()
  readonly #keys = new WeakMap<LiveStream, KeyList>()
  readonly #resumption: Resumption
  /** Streams that `admit` resumed, without an API call. */
  readonly #resumed = new WeakSet<LiveStream>()
  readonly #viewers: Viewers
  readonly #ownMedia = new WeakMap<LiveStream, OwnMedia>()
  #closed = false

  constructor(options: StreamsOptions) {
    const { clock, resume, createSalt, onViewers } = options
    this.#options = options
    this.cache = options.cache
    this.#viewers = new Viewers({ createSalt, onChange: onViewers })
    this.#registry = new StreamRegistry(options)
    this.#resumption = new Resumption({ enabled: resume, startedMs: clock.wallMs() })
    this.#registry.on('stream', (stream) => {
      const isRevoked = (key: KeyFacts) => this.#floors.isRevoked({ streamId: stream.id, ...key })
      this.#keys.set(stream, new KeyList(isRevoked))
      stream.on('publish', ({ keyId }) => {
        if (keyId !== undefined) this.listKeys(stream, { [keyId]: clock.wallMs() })
      })
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
  async start(request: StartRequest): Promise<{ stream: LiveStream } & IssuedKeys> {
    if (this.#closed) throw new MillraceError('SHUTTING_DOWN')
    const { streamId, webhookUrls, encryption, pullUrl, pushUrls } = request
    const { keyLifetimeSec: lifetimeSec = STREAM_KEY_LIFETIME_SEC } = request
    const { clock } = this.#options
    checkOptions(request, this.#options)
    const media = streamMedia(this.#options, request)
    const present = this.find(streamId)
    const running = present?.status === 'STOPPED' ? undefined : present
    const stream = this.#registry.start(streamId, { media })
    const ownMedia = running ? this.#ownMedia.get(running) : given(MEDIA_OPTIONS, request)
    this.#ownMedia.set(stream, ownMedia ?? {})
    stream.configure({
      policy: { ...stream.policy, ...given(POLICY_OPTIONS, request) },
      ...(webhookUrls !== undefined && { webhookUrls }),
      ...(pullUrl !== undefined && { pullUrl: pullUrl || undefined }),
      ...(pushUrls !== undefined && { pushUrls }),
    })
    const now = this.#floors.issueTime(streamId, clock.wallMs(), lifetimeSec)
    stream.renewKey(now.getTime() + lifetimeSec * 1000)
    const secret = this.#secretOf(stream)
    // The passphrase stays the same until the stream stops, for encoders that return with an older key.
    if (encryption === true && stream.encryption === undefined) {
      const sinceSec = Math.floor(now.getTime() / 1000)
      stream.configure({ encryption: deriveEncryption({ streamId, secret, sinceSec }) })
    }
    if (stream.policy.alwaysOn === true) this.#registry.activate(stream)
    const encryptedSinceSec = stream.encryption?.sinceSec
    const keyOptions = { streamId, secret, now, lifetimeSec, encryptedSinceSec }
    const issuedAtSec = Math.floor(now.getTime() / 1000)
    const times = { issuedAtSec, expiresAtSec: issuedAtSec + lifetimeSec }
    this.listKeys(stream, { [keyIdOf(times)]: 0 })
    if (request.backup === true)
      this.listKeys(stream, { [keyIdOf({ ...times, source: 'backup' })]: 0 })
    return { stream, ...(await issueStreamKeys(keyOptions, request)) }
  }

  /**
   * Ends a stream and excludes it from resumption; `revoke` also revokes the keys issued so far. For an unknown stream,
   * both take effect before the exception.
   *
   * @throws {MillraceError} `STREAM_NOT_FOUND`
   */
  stop(streamId: string, { revoke = false }: StopRequest = {}): LiveStream {
    const wallMs = this.#options.clock.wallMs()
    const stream = this.find(streamId)
    // Its issuer, another process, may have been ahead of this clock.
    const [newestKey] = stream === undefined ? [] : this.keysOf(stream)
    const issuedMs = newestKey?.issuedAt?.getTime() ?? 0
    if (revoke) this.#floors.revoke(streamId, Math.max(wallMs, issuedMs))
    this.#resumption.end(streamId, wallMs)
    if (stream === undefined) {
      throw new MillraceError('STREAM_NOT_FOUND', revoke ? { message: NO_STREAM.keysRevoked } : {})
    }
    stream.stop('api')
    return stream
  }

  /**
   * Refuses a key from now on, also of a stream that is unknown so far, and disconnects its encoder.
   *
   * @param keyId  see `key-list.ts`
   * @throws {MillraceError} `STREAM_NOT_FOUND`, when the key is refused already
   */
  revokeKey(streamId: string, keyId: string): LiveStream {
    this.#floors.revokeKey(streamId, keyId, this.#options.clock.wallMs())
    const stream = this.find(streamId)
    if (stream === undefined)
      throw new MillraceError('STREAM_NOT_FOUND', { message: NO_STREAM.keyRevoked })
    stream.disconnect('kicked', keyId)
    return stream
  }

  /** @throws {MillraceError} `STREAM_KEY_REVOKED` */
  checkKey(claims: StreamKeyClaims): void {
    if (this.#floors.isRevoked(claims)) throw new MillraceError('STREAM_KEY_REVOKED')
  }

  /** Adds keys to those that the stream is known to have. @param usedMs  see `KeyList.add`, by key id */
  listKeys(stream: LiveStream, usedMs: Readonly<Record<string, number>>): void {
    const wallMs = this.#options.clock.wallMs()
    for (const [keyId, ms] of Object.entries(usedMs)) this.#keys.get(stream)?.add(keyId, wallMs, ms)
  }

  /** Keys of the stream that hold, as far as they are known. */
  keysOf(stream: LiveStream): readonly KeyReport[] {
    return this.#keys.get(stream)?.list(this.#options.clock.wallMs()) ?? []
  }

  /** See `KeyList.uses`. */
  keyUsesOf(stream: LiveStream): Readonly<Record<string, number>> {
    return this.#keys.get(stream)?.uses(this.#options.clock.wallMs()) ?? {}
  }

  /**
   * Finds or resumes the stream of a verified key.
   *
   * @throws {MillraceError} `STREAM_KEY_REVOKED`, `STREAM_NOT_FOUND`, `TOO_MANY_STREAMS`
   */
  admit(claims: StreamKeyClaims): LiveStream {
    this.checkKey(claims)
    const present = this.find(claims.streamId)
    const stream =
      present === undefined || present.status === 'STOPPED' ? this.#resume(claims) : present
    if (this.#resumed.has(stream)) applyClaims(stream, claims)
    return stream
  }

  /**
   * Continues a stream that another process has left.
   *
   * @param own  media options that the stream has of its own
   * @throws {MillraceError} `SHUTTING_DOWN`, `TOO_MANY_STREAMS`
   */
  continueStream(streamId: string, own: OwnMedia, continued: ContinuedStream): LiveStream {
    if (this.#closed) throw new MillraceError('SHUTTING_DOWN')
    const media = streamMedia(this.#options, own)
    const stream = this.#registry.start(streamId, { media, continued })
    this.#ownMedia.set(stream, own)
    return stream
  }

  /** Forgets a stream that another process continues. */
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
    stream.configure({ policy: { ...stream.policy, bannedUntilUs } })
    stream.disconnect('kicked')
    return stream
  }

  /**
   * Puts an encoder on air at its next key frame.
   *
   * @throws {MillraceError} `STREAM_NOT_FOUND`
   */
  switchSource(streamId: string, preferredSource: EncoderSource): LiveStream {
    const stream = this.get(streamId)
    stream.switchSource(preferredSource)
    return stream
  }

  /** Replaces the media options that a stream has of its own. */
  setMedia(stream: LiveStream, own: OwnMedia): void {
    this.#ownMedia.set(stream, own)
  }

  /** Revokes the keys of a stream that were issued before a time in seconds since 1970. */
  refuseKeysBefore(streamId: string, issuedAtSec: number): void {
    this.#floors.raise(streamId, issuedAtSec)
  }

  formatsOf(stream: LiveStream): readonly Format[] {
    return this.#ownMedia.get(stream)?.formats ?? this.#options.formats
  }

  /** Options that the stream has of its own, and its ban. */
  ownPolicyOf(stream: LiveStream): Pick<StreamRecord, 'options' | 'bannedUntil'> {
    const { clock } = this.#options
    const bannedMs = ((stream.policy.bannedUntilUs ?? -Infinity) - clock.nowUs()) / 1000
    return {
      options: ownOptions({ ...this.#ownMedia.get(stream), ...stream.policy }),
      ...(bannedMs > 0 && { bannedUntil: new Date(clock.wallMs() + bannedMs) }),
    }
  }

  /**
   * Counts a viewer to whom a file of the stream is sent, here, by a worker or by an edge.
   *
   * @param viewer  see `hashOfViewer`
   */
  countViewer(stream: LiveStream, viewer: number): void {
    this.#viewers.push(stream, [String(viewer)], this.#options.clock.nowUs())
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

  /** Disconnects all readers over SRT. @returns their number */
  closeReaders(): number {
    let readers = 0
    for (const stream of this.#registry) {
      readers += stream.readers
      stream.closeReaders()
    }
    return readers
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
    if (this.#closed || !this.#resumption.allows(claims))
      throw new MillraceError('STREAM_NOT_FOUND', { message: NO_STREAM.start })
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
