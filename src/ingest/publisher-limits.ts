/**
 * How many publishers there may be, and what the holders of one stream's keys may ask for: so that neither takes from
 * others.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { TokenBucket } from '../token-bucket.ts'

/** Callers that wait for an encoder to give way. */
const MAX_WAITING_PER_STREAM = 2

/** Connections of a stream. An encoder on a line that fails every two seconds takes as many. */
const CONNECTIONS_PER_SEC = 0.5
const CONNECTIONS_AT_ONCE = 30

interface StreamShare {
  waiting: number
  readonly connections: TokenBucket
}

export class PublisherLimits {
  readonly #maxPublishers: number
  readonly #shares = new WeakMap<LiveStream, StreamShare>()
  #publishers = 0

  /** @param maxPublishers  `MAX_PUBLISHERS` */
  constructor(maxPublishers: number) {
    this.#maxPublishers = maxPublishers
  }

  /**
   * Keeps a waiting place of the stream while `work` goes on.
   *
   * @throws {MillraceError} `STREAM_BUSY` where all are taken
   */
  async wait(stream: LiveStream, nowUs: number, work: () => Promise<void>): Promise<void> {
    const share = this.#shareOf(stream, nowUs)
    if (share.waiting >= MAX_WAITING_PER_STREAM) throw new MillraceError('STREAM_BUSY')
    share.waiting++
    await work().finally(() => share.waiting--)
  }

  /** @throws {MillraceError} `TOO_MANY_CONNECTIONS`, where one more would be; counts none */
  checkConnections(stream: LiveStream, nowUs: number): void {
    if (!this.#shareOf(stream, nowUs).connections.has(nowUs)) {
      throw new MillraceError('TOO_MANY_CONNECTIONS')
    }
  }

  /**
   * To be called for what is connected: a key without its passphrase shall not take from those who have both.
   *
   * @throws {MillraceError} `TOO_MANY_CONNECTIONS`
   */
  countConnection(stream: LiveStream, nowUs: number): void {
    if (!this.#shareOf(stream, nowUs).connections.take(nowUs)) {
      throw new MillraceError('TOO_MANY_CONNECTIONS')
    }
  }

  /** @throws {MillraceError} `TOO_MANY_PUBLISHERS`, where one more for this stream replaces none */
  checkRoom({ encoder }: LiveStream): void {
    if (encoder === undefined && this.#publishers >= this.#maxPublishers) {
      throw new MillraceError('TOO_MANY_PUBLISHERS')
    }
  }

  publisherCame(): void {
    this.#publishers++
  }

  publisherLeft(): void {
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
