/**
 * State of a stream, and the times that end it: expiry of its last key, the grace of a lost encoder, the linger of its
 * files.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import type { StopReason, StreamState } from '../contract/state.ts'

export interface LifeCycleOptions {
  readonly clock: Clock
  readonly lingerSec: number
  readonly reconnectGraceSec: number
}

/** Commands change the state; `due` tells when time is up. */
export class LifeCycle {
  readonly startedAtMs: number
  readonly #options: LifeCycleOptions
  #state: StreamState = 'READY'
  #keyExpiresAtUs = 0
  /** When the encoder was lost, or a key issued after that. */
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

  /** Since when the playlist can be played and grows, in milliseconds since 1970; undefined where it does not. */
  get liveSinceMs(): number | undefined {
    return this.#liveSinceMs
  }

  /** Stopped, and the linger of its files is over. */
  get over(): boolean {
    const lingerUs = this.#options.lingerSec * 1e6
    return this.#state === 'STOPPED' && this.#nowUs - this.#stoppedAtUs >= lingerUs
  }

  /** A key was issued: an encoder has the whole grace to come back with it. */
  renewKey(expiresAtMs: number): void {
    const expiresAtUs = this.#nowUs + (expiresAtMs - this.#options.clock.wallMs()) * 1000
    this.#keyExpiresAtUs = Math.max(this.#keyExpiresAtUs, expiresAtUs)
    this.#waitingSinceUs = this.#nowUs
  }

  /** An encoder is connected and sends. */
  stream(): void {
    this.#state = 'STREAMING'
  }

  /** The playlist can be played and grows. */
  goLive(): void {
    this.#liveSinceMs = this.#options.clock.wallMs()
  }

  /** The playlist waits for another encoder; the state stays. */
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

  /** Why the stream is to stop now, if it is. */
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
