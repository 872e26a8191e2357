/**
 * How much arrives in a second, over the last whole one.
 *
 * @module
 */
import type { ReceivingRate } from './wire/ack.ts'

const WINDOW_US = 1_000_000

export class RateMeter implements ReceivingRate {
  #sinceUs: number
  #packets = 0
  #bytes = 0
  #packetsPerSec = 0
  #bytesPerSec = 0

  constructor(nowUs: number) {
    this.#sinceUs = nowUs
  }

  get packetsPerSec(): number {
    return this.#packetsPerSec
  }

  get bytesPerSec(): number {
    return this.#bytesPerSec
  }

  /** @param totals  counters since the beginning */
  tick(totals: { packets: number; bytes: number }, nowUs: number): void {
    const elapsedUs = nowUs - this.#sinceUs
    if (elapsedUs < WINDOW_US) return
    this.#packetsPerSec = ((totals.packets - this.#packets) * 1e6) / elapsedUs
    this.#bytesPerSec = ((totals.bytes - this.#bytes) * 1e6) / elapsedUs
    this.#packets = totals.packets
    this.#bytes = totals.bytes
    this.#sinceUs = nowUs
  }
}
