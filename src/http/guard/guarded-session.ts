/**
 * An HTTP/2 connection: its streams, which begin one per turn, the reading rate of each, and how often the client resets
 * them.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { TokenBucket } from '../../timing/token-bucket.ts'
import type { TurnQueue } from '../turn-queue.ts'
import { PieceAllowance } from './body-pieces.ts'
import { hasSentRequest, type GuardedHttp2Response } from './guarded-http2-response.ts'
import type { Holder, UncachedMemory } from './held-memory.ts'
import { ReaderProgress } from './reader-progress.ts'

/**
 * Streams that a client may reset at once and per second: a player that changes the level or seeks cancels some. More
 * is a flood ("rapid reset", CVE-2023-44487), which nghttp2 alone ends after 1000.
 */
const RESETS_AT_ONCE = 100
const RESETS_PER_SEC = 10

/**
 * Input that a connection may send: per second, for each request, and as a part of what it gets (WINDOW_UPDATE). Frames
 * that open no stream (PING, SETTINGS, DATA of a stream that has ended) cost CPU and nothing else counts them.
 */
const INPUT_BYTES_PER_SEC = 128 * 1024
const INPUT_BYTES_PER_REQUEST = 16 * 1024
const INPUT_PER_OUTPUT = 1 / 64

/** Time limit for receiving a request: the first since the connection began, later ones since their first byte. */
export const REQUEST_TIMEOUT_MS = 10_000

interface OpenStream {
  readonly openedMs: number
  readonly progress: ReaderProgress
  isCancelled: boolean
}

/**
 * Calling order: `add` and `remove` as streams open and close; `begin` and `finish` as responses do; `isFlooding`, `cancelLate` and
 * `holder` about once a second.
 */
export class GuardedSession {
  /** TCP socket below TLS. */
  readonly socket: Socket
  /** For the bodies of all requests. */
  readonly pieces = new PieceAllowance()
  readonly #session: ServerHttp2Session
  /** Schedules the next of `#waiting`: the connection has one place, however many streams it has. */
  readonly #turns: TurnQueue
  /** Streams whose request has not begun, oldest first, each with the function that begins it. */
  readonly #waiting = new Map<ServerHttp2Stream, () => void>()
  readonly #streams = new Map<GuardedHttp2Response, OpenStream>()
  readonly #resets: TokenBucket
  /** Input allowed since `#inputMs`, in bytes. */
  #allowedBytes = 0
  #inputBytes = 0
  #outputBytes = 0
  #inputMs: number
  #isStuck = false

  constructor(session: ServerHttp2Session, socket: Socket, turns: TurnQueue, nowMs: number) {
    this.#session = session
    this.socket = socket
    this.#turns = turns
    this.#resets = new TokenBucket(RESETS_PER_SEC, nowMs * 1000, RESETS_AT_ONCE)
    this.#inputMs = nowMs
  }

  get isBusy(): boolean {
    return this.#streams.size > 0
  }

  /** @param begin  begins the request of the stream, in its turn */
  add(stream: ServerHttp2Stream, begin: () => void): void {
    this.pieces.addRequest()
    this.#waiting.set(stream, begin)
    this.#turns.add(this.#beginNext)
  }

  remove(stream: ServerHttp2Stream): void {
    this.#waiting.delete(stream)
  }

  readonly #beginNext = (): void => {
    const [next] = this.#waiting
    if (next === undefined) return
    const [stream, begin] = next
    this.#waiting.delete(stream)
    if (this.#waiting.size > 0) this.#turns.add(this.#beginNext)
    // Its `close` event may be on its way.
    if (!stream.destroyed && !stream.closed) begin()
  }

  begin(response: GuardedHttp2Response, nowMs: number): void {
    this.#allowedBytes += INPUT_BYTES_PER_REQUEST
    const progress = new ReaderProgress()
    this.#streams.set(response, { openedMs: nowMs, progress, isCancelled: false })
  }

  finish(response: GuardedHttp2Response): void {
    this.#streams.delete(response)
  }

  /** Whether a stream has not ended since it was cancelled: after an error of the connection, Node 20 leaves it open. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** @returns whether the client may reset a stream now; if not, it floods the service with resets */
  mayReset(nowMs: number): boolean {
    return this.#resets.take(nowMs * 1000)
  }

  /** Whether the client has sent more than requests can be since the previous call. */
  isFlooding(nowMs: number): boolean {
    const { bytesRead, bytesWritten } = this.socket
    this.#allowedBytes +=
      (INPUT_BYTES_PER_SEC * Math.max(nowMs - this.#inputMs, 1000)) / 1000 +
      (bytesWritten - this.#outputBytes) * INPUT_PER_OUTPUT
    const isFlooding = bytesRead - this.#inputBytes > this.#allowedBytes
    this.#allowedBytes = 0
    this.#inputBytes = bytesRead
    this.#outputBytes = bytesWritten
    this.#inputMs = nowMs
    return isFlooding
  }

  /**
   * Cancels streams whose request is not complete in time, and those whose response is read too slowly.
   *
   * @returns number of slow readers
   */
  cancelLate(nowMs: number): number {
    let slow = 0
    for (const [response, open] of this.#streams) {
      const { progress, openedMs } = open
      this.#isStuck ||= open.isCancelled
      const { sentBytes, stream } = response
      // A body that is sent as it comes is in the stream alone.
      const waitingBytes = Math.max(sizeOf(response) - sentBytes, stream.writableLength)
      const isSlow = progress.observe(sentBytes, waitingBytes, nowMs)
      if (isSlow) slow++
      const isLate = nowMs - openedMs >= REQUEST_TIMEOUT_MS && !hasSentRequest(stream)
      if (!isSlow && !isLate) continue
      stream.close(constants.NGHTTP2_CANCEL)
      open.isCancelled = true
    }
    return slow
  }

  /** Memory that the connection holds, without the bodies that are in the cache, and its reading rate. */
  holder(uncachedMemory: UncachedMemory, nowMs: number): Holder {
    const streams = [...this.#streams]
    return {
      // Encryption copies what is written.
      ownBytes: streams.reduce(
        (sum, [{ stream }]) => sum + stream.readableLength + stream.writableLength,
        0,
      ),
      bodies: streams.flatMap(([{ req, bodies }]) => uncachedMemory(req.url, bodies)),
      bytesPerSec: Math.min(
        ...streams.map(([{ sentBytes }, { progress }]) => progress.bytesPerSec(sentBytes, nowMs)),
      ),
    }
  }

  /** Ends the connection once its streams have ended. */
  end(): void {
    this.#session.close()
  }

  get isDestroyed(): boolean {
    return this.#session.destroyed
  }

  destroy(): void {
    this.#session.destroy()
  }
}

function sizeOf({ bodies }: GuardedHttp2Response): number {
  return totalBytes(bodies)
}
