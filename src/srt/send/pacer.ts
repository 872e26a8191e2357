/**
 * Spreads sending over time, so that a burst handed in at once does not leave at once (live congestion control,
 * draft-sharabayko-srt 5.1).
 *
 * Where the draft waits out a period for every packet, this one lets go what is due until the next tick: timers finer
 * than that would cost more than they smooth.
 *
 * @module
 */
import { TICK_MS } from '../timers.ts'

const AHEAD_US = TICK_MS * 1000

/** IPv4 and UDP headers: they count towards the bandwidth. */
const IP_UDP_HEADER_BYTES = 28

export class Pacer {
  readonly #usPerByte: number
  /** When the last packet would have left, had each waited for its turn. */
  #sentUntilUs = 0

  constructor(maxBandwidthBps: number) {
    this.#usPerByte = 8e6 / maxBandwidthBps
  }

  maySend(nowUs: number): boolean {
    return this.#sentUntilUs < nowUs + AHEAD_US
  }

  /** Accounts for a datagram that left. */
  sent(bytes: number, nowUs: number): void {
    const fromUs = Math.max(this.#sentUntilUs, nowUs)
    this.#sentUntilUs = fromUs + (bytes + IP_UDP_HEADER_BYTES) * this.#usPerByte
  }
}
