/**
 * State of a stream, and its time limits: expiry of all its keys, reconnect grace after an interruption, linger of its
 * files.
 *
 * @module
 */
import type { Clock } from '../timing/clock.ts'
import type { InterruptionReason, StopReason, StreamState } from '../api/records.ts'

/** Wait for an encoder after which the playlist appears with the segments so far. */
const LOST_AFTER_US = 10_000_000

interface LifeCycleOptions {
  readonly clock: Clock
  readonly lingerSec: number
  readonly reconnectGraceSec: number
}

/** Commands change the state; `due` is the reason to stop, once a time limit has passed. */
export class LifeCycle {
  readonly startedAtMs: number
  readonly #options: LifeCycleOptions
  #state: StreamState = 'READY'
  #keyExpiresAtUs = 0
  #isKept = false
  /** Time at which the stream was interrupted or, if later, the latest key was issued. */
  #waitingSinceUs = 0
  /** Time of the latest change of the state, of either clock. */
  #stateSinceUs: number
  #stateSinceMs: number
  #liveSinceMs: number | undefined
  #interruptionReason: InterruptionReason | undefined

  constructor(options: LifeCycleOptions) {
    this.#options = options
    this.startedAtMs = options.clock.wallMs()
    this.#stateSinceUs = this.#nowUs
    this.#stateSinceMs = this.startedAtMs
  }

  get state(): StreamState {
    return this.#state
  }

  /** Time of the latest change of the state, in milliseconds since 1970. */
  get stateSinceMs(): number {
    return this.#stateSinceMs
  }

  /** Time at which the stream stops by itself, in milliseconds since 1970; undefined with an encoder, and once stopped. */
  get stopsAtMs(): number | undefined {
    const stopsAtUs = this.#stopsAtUs
    return stopsAtUs === undefined ? undefined : this.#wallMs(stopsAtUs)
  }

  /** Start of the current live period, in milliseconds since 1970; undefined while the stream is not live. */
  get liveSinceMs(): number | undefined {
    return this.#liveSinceMs
  }

  /** Latest interruption; undefined unless the stream is interrupted. */
  get interruption(): { readonly reason: InterruptionReason; readonly atMs: number } | undefined {
    const reason = this.#state === 'INTERRUPTED' ? this.#interruptionReason : undefined
    return reason && { reason, atMs: this.#stateSinceMs }
  }

  /** Whether the stream has stopped and the linger of its files is over. */
  get over(): boolean {
    const lingerUs = this.#options.lingerSec * 1e6
    return this.#state === 'STOPPED' && this.#nowUs - this.#stateSinceUs >= lingerUs
  }

  /** Records a new stream key, and restarts the reconnect grace. */
  renewKey(expiresAtMs: number): void {
    const expiresAtUs = this.#nowUs + (expiresAtMs - this.#options.clock.wallMs()) * 1000
    this.#keyExpiresAtUs = Math.max(this.#keyExpiresAtUs, expiresAtUs)
    this.#waitingSinceUs = this.#nowUs
  }

  /** @param isKept  whether the stream runs until its last key expires, though its encoder is away for longer than the grace */
  keepUntilKeyExpires(isKept: boolean): void {
    this.#isKept = isKept
  }

  /** Enters STREAMING: an encoder connected, or a silent one sends media again. */
  stream(): void {
    this.#enter('STREAMING')
  }

  /** Starts a live period: the playlist is playable and grows. */
  goLive(): void {
    this.#liveSinceMs = this.#options.clock.wallMs()
  }

  /** Ends the live period without a change of the state. */
  leaveLive(): void {
    this.#liveSinceMs = undefined
  }

  interrupt(reason: InterruptionReason): void {
    this.#enter('INTERRUPTED')
    this.#interruptionReason = reason
    this.#waitingSinceUs = this.#nowUs
    this.#liveSinceMs = undefined
  }

  stop(): void {
    this.#enter('STOPPED')
    this.#liveSinceMs = undefined
  }

  /** Whether the stream has been waiting for an encoder for 10 s or more. */
  get lost(): boolean {
    return this.#state === 'INTERRUPTED' && this.#nowUs - this.#waitingSinceUs >= LOST_AFTER_US
  }

  /** Reason for which the stream is to stop now; undefined for none. */
  get due(): StopReason | undefined {
    if (this.#nowUs < (this.#stopsAtUs ?? Infinity)) return undefined
    return this.#state === 'READY' ? 'key-expired' : 'grace-expired'
  }

  get #stopsAtUs(): number | undefined {
    if (this.#state === 'READY') return this.#keyExpiresAtUs
    if (this.#state !== 'INTERRUPTED') return undefined
    const graceUs = this.#waitingSinceUs + this.#options.reconnectGraceSec * 1e6
    return this.#isKept ? Math.max(graceUs, this.#keyExpiresAtUs) : graceUs
  }

  #enter(state: StreamState): void {
    this.#state = state
    this.#stateSinceUs = this.#nowUs
    this.#stateSinceMs = this.#options.clock.wallMs()
  }

  /** Wall clock at a time of the monotonic clock. */
  #wallMs(timeUs: number): number {
    return this.#options.clock.wallMs() + (timeUs - this.#nowUs) / 1000
  }

  get #nowUs(): number {
    return this.#options.clock.nowUs()
  }
}
