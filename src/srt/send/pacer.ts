/**
 * Pacing of data packets at the maximum bandwidth (live congestion control, draft-sharabayko-srt 5.1).
 *
 * The draft waits for a period after every packet. This pacer sends all packets that are due before the next tick at
 * once: a finer timer would cost more CPU than the smoother traffic is worth.
 *
 * @module
 */
import { TICK_MS } from '../timers.ts'
import { IP_UDP_HEADER_BYTES } from '../wire/packet.ts'

const AHEAD_US = TICK_MS * 1000

export class Pacer {
  readonly #usPerByte: number
  /** Time at which the last packet would have left at the exact rate. */
  #sentUntilUs = 0

  constructor(maxBandwidthBps: number) {
    this.#usPerByte = 8e6 / maxBandwidthBps
  }

  maySend(nowUs: number): boolean {
    return this.#sentUntilUs < nowUs + AHEAD_US
  }

  /** Counts a datagram that was sent, and its IP and UDP headers. */
  countSent(bytes: number, nowUs: number): void {
    const fromUs = Math.max(this.#sentUntilUs, nowUs)
    this.#sentUntilUs = fromUs + (bytes + IP_UDP_HEADER_BYTES) * this.#usPerByte
  }
}
