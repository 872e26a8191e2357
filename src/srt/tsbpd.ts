/**
 * Timestamp-based packet delivery (draft-sharabayko-srt 4.5): when a packet would be played, on the receiver's clock.
 *
 * HLS cuts by the timestamps of the media, not by arrival, so packets in order are handed on at once. The delivery time
 * serves one purpose here: it says how long a missing packet is worth waiting for (4.6).
 *
 * @module
 */
import { TimestampUnwrapper } from '../binary/timestamp-32.ts'

/** How far beyond its latency a packet's delivery may lie. More is a broken clock and waits no longer than the latency. */
const MAX_AHEAD_US = 2_000_000

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
  readonly #baseUs: number

  constructor({ handshakeTimestampUs, handshakeArrivedUs, latencyUs }: TsbpdOptions) {
    this.#latencyUs = latencyUs
    this.#timestamps = new TimestampUnwrapper(handshakeTimestampUs)
    this.#baseUs = handshakeArrivedUs - handshakeTimestampUs
  }

  /** To be told of every packet's timestamp, or of one in some minutes at least. */
  deliveryUs(timestampUs: number, nowUs: number): number {
    const dueUs = this.#baseUs + this.#timestamps.unwrap(timestampUs) + this.#latencyUs
    return dueUs > nowUs + this.#latencyUs + MAX_AHEAD_US ? nowUs + this.#latencyUs : dueUs
  }
}
