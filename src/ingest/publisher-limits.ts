/**
 * Limits on publishers: their total, and the callers and connections of one stream, so that the holders of one key
 * cannot affect other streams.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { TokenBucket } from '../token-bucket.ts'

/** Maximum number of callers that wait to replace the encoder of a stream. */
const MAX_WAITING_PER_STREAM = 2

/** Rate and burst of new connections to a stream: enough for an encoder on a line that fails every two seconds. */
const CONNECTIONS_PER_SEC = 0.5
const CONNECTIONS_AT_ONCE = 30

interface StreamShare {
  waiting: number
  readonly connections: TokenBucket
}

export class PublisherLimits {
  readonly #maxPublishers: number
  readonly #isOverloaded: () => boolean
  readonly #shares = new WeakMap<LiveStream, StreamShare>()
  #publishers = 0

  /**
   * @param maxPublishers  `MAX_PUBLISHERS`
   * @param isOverloaded  whether the process reads packets more slowly than they arrive
   */
  constructor(maxPublishers: number, isOverloaded: () => boolean) {
    this.#maxPublishers = maxPublishers
    this.#isOverloaded = isOverloaded
  }

  /**
   * Occupies a waiting place of the stream during `work`.
   *
   * @throws {MillraceError} `STREAM_BUSY` if all places are taken
   */
  async wait(stream: LiveStream, nowUs: number, work: () => Promise<void>): Promise<void> {
    const share = this.#shareOf(stream, nowUs)
    if (share.waiting >= MAX_WAITING_PER_STREAM) throw new MillraceError('STREAM_BUSY')
    share.waiting++
    await work().finally(() => share.waiting--)
  }

  /** Checks the rate without counting a connection. @throws {MillraceError} `TOO_MANY_CONNECTIONS` */
  checkConnections(stream: LiveStream, nowUs: number): void {
    if (!this.#shareOf(stream, nowUs).connections.has(nowUs)) {
      throw new MillraceError('TOO_MANY_CONNECTIONS')
    }
  }

  /**
   * Counts an established connection. A caller without the passphrase never connects, so it does not use up the rate,
   * even with a valid stream key.
   *
   * @throws {MillraceError} `TOO_MANY_CONNECTIONS`
   */
  countConnection(stream: LiveStream, nowUs: number): void {
    if (!this.#shareOf(stream, nowUs).connections.take(nowUs)) {
      throw new MillraceError('TOO_MANY_CONNECTIONS')
    }
  }

  /**
   * Checks whether one more encoder may connect. A caller that replaces an encoder of the stream adds no load and is
   * admitted unless the stream is banned.
   *
   * @throws {MillraceError} `STREAM_BANNED`, `OVERLOADED`, or `TOO_MANY_PUBLISHERS` at the limit
   */
  checkRoom({ encoder, terms }: LiveStream, nowUs: number): void {
    if (nowUs < (terms.bannedUntilUs ?? -Infinity)) throw new MillraceError('STREAM_BANNED')
    if (encoder !== undefined) return
    if (this.#isOverloaded()) throw new MillraceError('OVERLOADED')
    if (this.#publishers >= this.#maxPublishers) throw new MillraceError('TOO_MANY_PUBLISHERS')
  }

  addPublisher(): void {
    this.#publishers++
  }

  removePublisher(): void {
    this.#publishers--
  }

  #shareOf(stream: LiveStream, nowUs: number): StreamShare {
    let share = this.#shares.get(stream)
    if (share === undefined) {
      const connections = new TokenBucket(CONNECTIONS_PER_SEC, nowUs, CONNECTIONS_AT_ONCE)
      share = { waiting: 0, connections }
      this.#shares.set(stream, share)
    }
    return share
  }
}
