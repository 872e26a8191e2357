/**
 * A peer that this service calls, for `pull_url` or `push_urls`, and the rule of retries: again 1 to 30 s after each
 * failure, at a random time that is later on average with each failure in a row.
 *
 * @module
 */
import type { PeerReport, PeerState } from '../api/records.ts'
import { MillraceError, type ErrorCode } from '../errors.ts'
import type { SrtUrl } from '../srt/io/srt-url.ts'
import type { CloseReason } from '../srt/types.ts'
import type { Clock } from '../timing/clock.ts'

/** Bounds of the wait for the next call. The upper one of the first wait is twice the lower one, then it doubles. */
const MIN_WAIT_US = 1_000_000
const MAX_WAIT_US = 30_000_000

/** Duration of a connection after which its end is no further failure in a row. */
const STEADY_US = 10_000_000

/** Why a call is due again although the peer was connected. */
const ENDS: Readonly<Record<CloseReason, string>> = {
  shutdown: 'the peer has ended the connection',
  timeout: 'the peer has fallen silent',
  closed: 'this side has ended the connection',
}

/** Failed calls by what operators can do about them; other failures are refusals of this service. */
const REASONS: Readonly<Record<string, string>> = {
  SRT_TIMEOUT: 'not reached',
  SRT_REJECTED: 'refused',
  ADDRESS_FORBIDDEN: 'PULL_ALLOW forbids it',
}

/** A call that has failed. */
interface CallFailure {
  readonly code: ErrorCode
  /** `host:port` */
  readonly remote: string
  /** Undefined where operators can do nothing about it. */
  readonly reason: string | undefined
}

/** A connection to the peer, such as a `Caller` of SRT. */
export interface PeerConnection {
  /** Resolves when the connection ends; never rejects. */
  readonly closed: Promise<CloseReason>
  close(): Promise<void>
}

interface RemotePeerOptions {
  readonly target: Pick<SrtUrl, 'host' | 'port'>
  /**
   * Calls the peer. The message of a rejection is for operators, and has no secrets.
   *
   * @param signal  aborted by `close`
   */
  readonly call: (signal: AbortSignal) => Promise<PeerConnection>
  /** Called for each call that fails. */
  readonly onFailure: (failure: CallFailure) => void
  readonly clock: Clock
  /** Draws a number from 0 up to 1. */
  readonly random: () => number
}

/** Commands: `tick` about 4 times a second, which begins the calls, and `close`. Query: `report`. */
export class RemotePeer {
  readonly #options: RemotePeerOptions
  readonly #remote: string
  readonly #closing = new AbortController()
  #connection: PeerConnection | undefined
  #state: PeerState = 'WAITING'
  #sinceMs: number
  #dueUs = -Infinity
  #maxWaitUs = MIN_WAIT_US
  #calls = 0
  #error: string | undefined

  constructor(options: RemotePeerOptions) {
    const { host, port } = options.target
    this.#options = options
    this.#remote = `${host.includes(':') ? `[${host}]` : host}:${port}`
    this.#sinceMs = options.clock.wallMs()
  }

  get report(): PeerReport {
    const { clock } = this.#options
    const waitMs = Math.max(0, this.#dueUs - clock.nowUs()) / 1000
    const isWaiting = this.#state === 'WAITING'
    return {
      remote: this.#remote,
      state: this.#state,
      since: new Date(this.#sinceMs),
      calls: this.#calls,
      ...(isWaiting && { nextCallAt: new Date(clock.wallMs() + waitMs) }),
      ...(this.#error !== undefined && { error: this.#error }),
    }
  }

  tick(): void {
    const isDue = this.#state === 'WAITING' && this.#options.clock.nowUs() >= this.#dueUs
    if (isDue && !this.#closing.signal.aborted) void this.#call()
  }

  /** Ends the connection, and calls no more. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#connection?.close()
  }

  async #call(): Promise<void> {
    const { call, clock, onFailure } = this.#options
    const { signal } = this.#closing
    this.#enter('CALLING')
    this.#calls++
    try {
      const connection = await call(signal)
      if (signal.aborted) return void connection.close()
      this.#connection = connection
    } catch (error) {
      if (signal.aborted) return
      this.#wait(error instanceof Error ? error.message : String(error))
      const code = error instanceof MillraceError ? error.code : 'INTERNAL'
      onFailure({ code, remote: this.#remote, reason: REASONS[code] })
      return
    }
    this.#enter('CONNECTED')
    this.#error = undefined
    const connectedUs = clock.nowUs()
    const reason = await this.#connection.closed
    this.#connection = undefined
    if (clock.nowUs() - connectedUs >= STEADY_US) this.#maxWaitUs = MIN_WAIT_US
    this.#wait(ENDS[reason])
  }

  #wait(error: string): void {
    const { clock, random } = this.#options
    this.#maxWaitUs = Math.min(2 * this.#maxWaitUs, MAX_WAIT_US)
    this.#dueUs = clock.nowUs() + MIN_WAIT_US + random() * (this.#maxWaitUs - MIN_WAIT_US)
    this.#error = error
    this.#enter('WAITING')
  }

  #enter(state: PeerState): void {
    this.#state = state
    this.#sinceMs = this.#options.clock.wallMs()
  }
}
