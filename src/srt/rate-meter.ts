/**
 * Packets and bytes per second, averaged over the last window of one second or more.
 *
 * @module
 */
import type { ReceivingRate } from './wire/ack.ts'

const WINDOW_US = 1_000_000

export class RateMeter implements ReceivingRate {
  #windowStartUs: number
  #packets = 0
  #bytes = 0
  #packetsPerSec = 0
  #bytesPerSec = 0

  constructor(nowUs: number) {
    this.#windowStartUs = nowUs
  }

  get packetsPerSec(): number {
    return this.#packetsPerSec
  }

  get bytesPerSec(): number {
    return this.#bytesPerSec
  }

  /** @param totals  counts since the meter was created */
  tick(totals: { packets: number; bytes: number }, nowUs: number): void {
    const elapsedUs = nowUs - this.#windowStartUs
    if (elapsedUs < WINDOW_US) return
    this.#packetsPerSec = ((totals.packets - this.#packets) * 1e6) / elapsedUs
    this.#bytesPerSec = ((totals.bytes - this.#bytes) * 1e6) / elapsedUs
    this.#packets = totals.packets
    this.#bytes = totals.bytes
    this.#windowStartUs = nowUs
  }
}
