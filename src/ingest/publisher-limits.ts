/**
 * Limits on publishers: their total, and the waiting publishers, the connections and the lines of each encoder of a stream, so
 * that the holders of one key affect neither other streams nor the other encoder.
 *
 * @module
 */
import type { EncoderSource } from '../api/records.ts'
import { MillraceError } from '../errors.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { TokenBucket } from '../timing/token-bucket.ts'

/** Maximum number of publishers that wait to replace an encoder. */
const MAX_WAITING = 2

/** Rate and burst of new connections of an encoder: enough for an encoder on a line that fails every two seconds. */
const CONNECTIONS_PER_SEC = 0.5
const CONNECTIONS_AT_ONCE = 30

/** Rate and burst of lines that join an encoder: as much for each line of a socket group. */
const LINES_PER_SEC = 8 * CONNECTIONS_PER_SEC
const LINES_AT_ONCE = 8 * CONNECTIONS_AT_ONCE

interface Share {
  waiting: number
  readonly connections: TokenBucket
  readonly lines: TokenBucket
}

export class PublisherLimits {
  readonly #maxPublishers: number
  readonly #isOverloaded: () => boolean
  readonly #shares = new WeakMap<LiveStream, Map<EncoderSource, Share>>()
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
   * Occupies a waiting place for an encoder during `work`.
   *
   * @throws {MillraceError} `STREAM_BUSY` if all places are taken
   */
  async wait(
    stream: LiveStream,
    source: EncoderSource,
    nowUs: number,
    work: () => Promise<void>,
  ): Promise<void> {
    const share = this.#shareOf(stream, source, nowUs)
    if (share.waiting >= MAX_WAITING) throw new MillraceError('STREAM_BUSY')
    share.waiting++
    await work().finally(() => share.waiting--)
  }

  /** Checks the rate without counting a connection. @throws {MillraceError} `TOO_MANY_CONNECTIONS` */
  checkConnections(stream: LiveStream, source: EncoderSource, nowUs: number): void {
    if (!this.#shareOf(stream, source, nowUs).connections.has(nowUs)) {
      throw new MillraceError('TOO_MANY_CONNECTIONS')
    }
  }

  /**
   * Counts an established connection. An encoder without the passphrase never connects, so it does not use up the rate,
   * even with a valid stream key.
   *
   * @throws {MillraceError} `TOO_MANY_CONNECTIONS`
   */
  countConnection(stream: LiveStream, source: EncoderSource, nowUs: number): void {
    if (!this.#shareOf(stream, source, nowUs).connections.take(nowUs)) {
      throw new MillraceError('TOO_MANY_CONNECTIONS')
    }
  }

  /**
   * Checks whether one more encoder may connect. One that replaces an encoder of its kind adds no load and is
   * admitted unless the stream is banned.
   *
   * @throws {MillraceError} `STREAM_BANNED`, `OVERLOADED`, or `TOO_MANY_PUBLISHERS` at the limit
   */
  checkRoom(stream: LiveStream, source: EncoderSource, nowUs: number): void {
    checkBan(stream, nowUs)
    if (stream.encoderOf(source) !== undefined) return
    if (this.#isOverloaded()) throw new MillraceError('OVERLOADED')
    if (this.#publishers >= this.#maxPublishers) throw new MillraceError('TOO_MANY_PUBLISHERS')
  }

  /**
   * Counts a further line of an encoder. It adds load, and the stream goes on without it: under overload none joins.
   *
   * @throws {MillraceError} `STREAM_BANNED`, `OVERLOADED` or `TOO_MANY_CONNECTIONS`
   */
  countLine(stream: LiveStream, source: EncoderSource, nowUs: number): void {
    checkBan(stream, nowUs)
    if (this.#isOverloaded()) throw new MillraceError('OVERLOADED')
    if (this.#shareOf(stream, source, nowUs).lines.take(nowUs)) return
    const message =
      'lines join this stream more than 4 times a second: let each wait 2 s or more between calls'
    throw new MillraceError('TOO_MANY_CONNECTIONS', { message })
  }

  addPublisher(): void {
    this.#publishers++
  }

  removePublisher(): void {
    this.#publishers--
  }

  #shareOf(stream: LiveStream, source: EncoderSource, nowUs: number): Share {
    const shares = this.#shares.get(stream) ?? new Map<EncoderSource, Share>()
    this.#shares.set(stream, shares)
    let share = shares.get(source)
    if (share === undefined) {
      const connections = new TokenBucket(CONNECTIONS_PER_SEC, nowUs, CONNECTIONS_AT_ONCE)
      const lines = new TokenBucket(LINES_PER_SEC, nowUs, LINES_AT_ONCE)
      share = { waiting: 0, connections, lines }
      shares.set(source, share)
    }
    return share
  }
}

/** @throws {MillraceError} `STREAM_BANNED` */
function checkBan({ policy }: LiveStream, nowUs: number): void {
  if (nowUs < (policy.bannedUntilUs ?? -Infinity)) throw new MillraceError('STREAM_BANNED')
}
