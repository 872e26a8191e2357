/**
 * Streams and their keys: what starts, stops and resumes a stream, and which keys publish it.
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
import { MillraceError } from '../errors.ts'
import type { StartRequest, StopRequest } from '../contract/streams.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { StreamRegistry, type RegistryOptions } from '../stream/registry.ts'
import type { StopReason } from '../contract/state.ts'
import { Resumption } from './resumption.ts'

export type StreamsOptions = RegistryOptions & {
  readonly clock: Clock
  /** `JWT_SECRET`: the first signs new keys; any of them may have signed a key. */
  readonly jwtSecrets: readonly [newest: string, ...older: string[]]
  /** Whether a key from before this process started brings its stream back. */
  readonly resume: boolean
  /** Of a stream that is not given its own. */
  readonly webhookUrls: readonly string[]
  /** A new stream, before anything else happens to it. */
  readonly onStream: (stream: LiveStream) => void
  /** The first encoder of a stream that a key brought back is connected. */
  readonly onResumed: (stream: LiveStream) => void
}

/** Commands: `start`, `stop`, `admit`, `tick`, `close`, `discard`. Questions: `find`. */
export class Streams {
  readonly #options: StreamsOptions
  readonly #registry: StreamRegistry
  readonly #floors = new KeyFloors()
  readonly #resumption: Resumption
  /** Streams that a key brought back. */
  readonly #resumed = new WeakSet<LiveStream>()
  #closed = false

  constructor(options: StreamsOptions) {
    const { clock, resume } = options
    this.#options = options
    this.#registry = new StreamRegistry(options)
    this.#resumption = new Resumption({ enabled: resume, startedMs: clock.wallMs() })
    this.#registry.on('stream', (stream) => {
      stream.webhookUrls = options.webhookUrls
      stream.once('end', ({ reason }) => {
        // A newer key may still bring back what waited for its encoder in vain.
        if (reason !== 'key-expired') this.#resumption.end(stream.id, clock.wallMs())
      })
      options.onStream(stream)
    })
  }

  /** undefined where the id was never started or is forgotten. */
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
   * The running stream of that id or a new one, with a new key.
   *
   * @param request  checked already
   * @throws {MillraceError} `SHUTTING_DOWN`, `TOO_MANY_STREAMS`
   */
  async start(request: StartRequest): Promise<{ stream: LiveStream; key: StreamKey }> {
    if (this.#closed) throw new MillraceError('SHUTTING_DOWN')
    const { streamId, webhookUrls, encryption } = request
    const { clock } = this.#options
    const stream = this.#registry.start(streamId)
    const now = this.#floors.issueTime(streamId, clock.wallMs())
    stream.renewKey(now.getTime() + STREAM_KEY_LIFETIME_SEC * 1000)
    if (webhookUrls !== undefined) stream.webhookUrls = webhookUrls
    const secret = this.#secretOf(stream)
    // Kept while the stream runs: an encoder with an older key may come back.
    if (encryption === true) {
      const sinceSec = Math.floor(now.getTime() / 1000)
      stream.encryption ??= deriveEncryption({ streamId, secret, sinceSec })
    }
    const encryptedSinceSec = stream.encryption?.sinceSec
    const key = await issueStreamKey({ streamId, secret, now, encryptedSinceSec })
    return { stream, key }
  }

  /**
   * Ends a stream. One that is not there is not resumed either, and its keys are revoked all the same.
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
   * The stream that a verified key publishes.
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

  /** Lets time pass; 4 times a second is plenty. */
  tick(): void {
    this.#registry.tick()
  }

  /**
   * Ends all streams for good.
   *
   * @returns whether any was running
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
      throw new MillraceError('STREAM_NOT_FOUND')
    }
    const stream = this.#registry.start(claims.streamId, { resumed: true })
    this.#resumed.add(stream)
    stream.once('publish', () => this.#options.onResumed(stream))
    return stream
  }

  /** What signs keys of the stream: with encryption the secret of its passphrase, which its keys prove after a restart. */
  #secretOf({ id: streamId, encryption }: LiveStream): string {
    const { jwtSecrets } = this.#options
    const [newest] = jwtSecrets
    if (encryption === undefined) return newest
    const { sinceSec, passphrase } = encryption
    const derives = (secret: string) =>
      deriveEncryption({ streamId, secret, sinceSec }).passphrase === passphrase
    return jwtSecrets.find(derives) ?? newest
  }
}

/** Each key of a resumed stream tells a part of what was known before the restart, whichever comes first. */
function adoptClaims(stream: LiveStream, { encryption, expiresAtSec }: StreamKeyClaims): void {
  // With an encoder, the stream does not depend on its keys, and its grace is not to be renewed.
  if (stream.status === 'READY') stream.renewKey(expiresAtSec * 1000)
  const knownSinceSec = stream.encryption?.sinceSec ?? -Infinity
  if (encryption !== undefined && encryption.sinceSec > knownSinceSec)
    stream.encryption = encryption
}
