/**
 * Timestamp-based packet delivery (TSBPD, draft-sharabayko-srt 4.5): computes when a packet is due for delivery.
 *
 * HLS cuts by the timestamps of the media, not by arrival, so packets in order are delivered at once. The delivery time
 * only limits how long the receiver waits for a missing packet (4.6).
 *
 * @module
 */
import { PacketTimestamps } from '../wire/counters.ts'

/**
 * Duration of a window. Its packet with the shortest delay gives the offset of the sender's clock. libsrt averages 1000
 * round trips instead, which takes minutes on a slow stream.
 */
const DRIFT_WINDOW_US = 10_000_000

/** Max correction per window. Clocks drift by less; if the path delay grows, the clock follows at this rate. */
const MAX_DRIFT_STEP_US = 10_000

/**
 * Offset above which the sender's clock counts as set to another time, not as drifted. A packet whose timestamp is this
 * far in the future is due one latency after its arrival. If the timestamps of a whole window are this far in the past,
 * the base moves by the whole offset at once.
 */
const CLOCK_JUMP_US = 2_000_000

export interface DeliveryClockOptions {
  /** Timestamp of the handshake that opened the connection. */
  readonly handshakeTimestampUs: number
  /** Arrival time of the handshake that opened the connection. */
  readonly handshakeArrivedUs: number
  /** Receive latency. */
  readonly latencyUs: number
}

export class DeliveryClock {
  readonly #latencyUs: number
  readonly #timestamps: PacketTimestamps
  /** Receiver's time at the sender's timestamp 0 (4.5.1.1). */
  #baseUs: number
  #driftUs = 0
  /** Shortest delay between timestamp and arrival of a packet in the current window; may be negative. */
  #minLagUs = Infinity
  #windowEndsUs: number

  constructor({ handshakeTimestampUs, handshakeArrivedUs, latencyUs }: DeliveryClockOptions) {
    this.#latencyUs = latencyUs
    this.#timestamps = new PacketTimestamps(handshakeTimestampUs)
    this.#baseUs = handshakeArrivedUs - handshakeTimestampUs
    this.#windowEndsUs = handshakeArrivedUs + DRIFT_WINDOW_US
  }

  /** Sum of all corrections so far, for drift of the sender's clock and changes of the path delay (4.7). */
  get driftUs(): number {
    return this.#driftUs
  }

  /** Delivery time of a packet. To be called for every packet: each timestamp also adjusts the clock. */
  deliveryUs(timestampUs: number, nowUs: number): number {
    const sentUs = this.#baseUs + this.#timestamps.unwrap(timestampUs)
    const lagUs = nowUs - sentUs
    if (lagUs < -CLOCK_JUMP_US) return nowUs + this.#latencyUs
    if (lagUs < this.#minLagUs) this.#minLagUs = lagUs
    if (nowUs >= this.#windowEndsUs) this.#followDrift(nowUs)
    return sentUs + this.#latencyUs
  }

  #followDrift(nowUs: number): void {
    const lagUs = this.#minLagUs
    const stepUs =
      lagUs > CLOCK_JUMP_US
        ? lagUs
        : Math.min(Math.max(lagUs, -MAX_DRIFT_STEP_US), MAX_DRIFT_STEP_US)
    this.#baseUs += stepUs
    this.#driftUs += stepUs
    this.#minLagUs = Infinity
    this.#windowEndsUs = nowUs + DRIFT_WINDOW_US
  }
}
