/**
 * Timestamp-based packet delivery (draft-sharabayko-srt 4.5): when a packet would be played, on the receiver's clock.
 *
 * HLS cuts by the timestamps of the media, not by arrival, so packets in order are handed on at once. The delivery time
 * serves one purpose here: it says how long a missing packet is worth waiting for (4.6).
 *
 * @module
 */
import { TimestampUnwrapper } from '../../binary/timestamp-32.ts'

/**
 * The fastest packet of so long a time shows where the sender's clock stands. libsrt takes 1000 round trips, which are
 * minutes on a slow stream.
 */
const DRIFT_WINDOW_US = 10_000_000

/** Clocks drift by no more than that within a window; a path that grows longer is followed as slowly. */
const MAX_DRIFT_STEP_US = 10_000

/**
 * Beyond this it is no drift, but a clock that was set. A packet so far ahead of its time is delivered as if it were sent
 * when it came; once all are so far behind, the new time holds.
 */
const CLOCK_JUMP_US = 2_000_000

export interface TsbpdOptions {
  /** Timestamp of the handshake that opened the connection. */
  readonly handshakeTimestampUs: number
  /** When that handshake arrived. */
  readonly handshakeArrivedUs: number
  readonly latencyUs: number
}

export class DeliveryClock {
  readonly #latencyUs: number
  readonly #timestamps: TimestampUnwrapper
  /** The receiver's time at the sender's timestamp 0 (4.5.1.1). */
  #baseUs: number
  #driftUs = 0
  /** The least that a packet came after its time, since the window began. */
  #leastLagUs = Infinity
  #windowEndsUs: number

  constructor({ handshakeTimestampUs, handshakeArrivedUs, latencyUs }: TsbpdOptions) {
    this.#latencyUs = latencyUs
    this.#timestamps = new TimestampUnwrapper(handshakeTimestampUs)
    this.#baseUs = handshakeArrivedUs - handshakeTimestampUs
    this.#windowEndsUs = handshakeArrivedUs + DRIFT_WINDOW_US
  }

  /** How far delivery has moved after the sender's clock and the path (4.7). */
  get driftUs(): number {
    return this.#driftUs
  }

  /** To be told of every packet's timestamp, or of one in some minutes at least. */
  deliveryUs(timestampUs: number, nowUs: number): number {
    const sentUs = this.#baseUs + this.#timestamps.unwrap(timestampUs)
    const lagUs = nowUs - sentUs
    if (lagUs < -CLOCK_JUMP_US) return nowUs + this.#latencyUs
    if (lagUs < this.#leastLagUs) this.#leastLagUs = lagUs
    if (nowUs >= this.#windowEndsUs) this.#followDrift(nowUs)
    return sentUs + this.#latencyUs
  }

  #followDrift(nowUs: number): void {
    const lagUs = this.#leastLagUs
    const stepUs =
      lagUs > CLOCK_JUMP_US
        ? lagUs
        : Math.min(Math.max(lagUs, -MAX_DRIFT_STEP_US), MAX_DRIFT_STEP_US)
    this.#baseUs += stepUs
    this.#driftUs += stepUs
    this.#leastLagUs = Infinity
    this.#windowEndsUs = nowUs + DRIFT_WINDOW_US
  }
}
