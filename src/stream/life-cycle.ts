/**
 * State of a stream, and its time limits: expiry of all its keys, reconnect grace after an interruption, linger of its
 * files.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import type { StopReason, StreamState } from '../contract/state.ts'

/** Wait for an encoder after which the playlist appears with the segments so far. */
const LOST_AFTER_US = 10_000_000

export interface LifeCycleOptions {
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
  /** Time at which the stream was interrupted or, if later, the latest key was issued. */
  #waitingSinceUs = 0
  #stoppedAtUs = 0
  #liveSinceMs: number | undefined

  constructor(options: LifeCycleOptions) {
    this.#options = options
    this.startedAtMs = options.clock.wallMs()
  }

  get state(): StreamState {
    return this.#state
  }

  /** Start of the current live period, in milliseconds since 1970; undefined while the stream is not live. */
  get liveSinceMs(): number | undefined {
    return this.#liveSinceMs
  }

  /** Whether the stream has stopped and the linger of its files is over. */
  get over(): boolean {
    const lingerUs = this.#options.lingerSec * 1e6
    return this.#state === 'STOPPED' && this.#nowUs - this.#stoppedAtUs >= lingerUs
  }

  /** Records a new stream key, and restarts the reconnect grace. */
  renewKey(expiresAtMs: number): void {
    const expiresAtUs = this.#nowUs + (expiresAtMs - this.#options.clock.wallMs()) * 1000
    this.#keyExpiresAtUs = Math.max(this.#keyExpiresAtUs, expiresAtUs)
    this.#waitingSinceUs = this.#nowUs
  }

  /** Enters STREAMING: an encoder connected, or a silent one sends media again. */
  stream(): void {
    this.#state = 'STREAMING'
  }

  /** Starts a live period: the playlist is playable and grows. */
  goLive(): void {
    this.#liveSinceMs = this.#options.clock.wallMs()
  }

  /** Ends the live period without a change of the state. */
  leaveLive(): void {
    this.#liveSinceMs = undefined
  }

  interrupt(): void {
    this.#state = 'INTERRUPTED'
    this.#waitingSinceUs = this.#nowUs
    this.#liveSinceMs = undefined
  }

  stop(): void {
    this.#state = 'STOPPED'
    this.#stoppedAtUs = this.#nowUs
    this.#liveSinceMs = undefined
  }

  /** Whether the stream has been waiting for an encoder for 10 s or more. */
  get lost(): boolean {
    return this.#state === 'INTERRUPTED' && this.#nowUs - this.#waitingSinceUs >= LOST_AFTER_US
  }

  /** Reason for which the stream is to stop now; undefined for none. */
  get due(): StopReason | undefined {
    const graceUs = this.#options.reconnectGraceSec * 1e6
    if (this.#state === 'INTERRUPTED' && this.#nowUs - this.#waitingSinceUs >= graceUs) {
      return 'grace-expired'
    }
    return this.#state === 'READY' && this.#nowUs >= this.#keyExpiresAtUs
      ? 'key-expired'
      : undefined
  }

  get #nowUs(): number {
    return this.#options.clock.nowUs()
  }
}
