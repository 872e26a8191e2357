/**
 * Ticks that come late. A process that was held up finds in its socket what peers sent meanwhile; that is to be read
 * before anybody is called late, lost or silent.
 *
 * @module
 */

/** A tick that comes this long after the one before it. */
const STALL_US = 100_000

export class StallDetector {
  #tickedUs: number
  #skipped = false

  constructor(nowUs: number) {
    this.#tickedUs = nowUs
  }

  /** Whether to leave this tick out. Never two in a row: a process that is always late has to go on. */
  shouldSkip(nowUs: number): boolean {
    this.#skipped = !this.#skipped && nowUs - this.#tickedUs > STALL_US
    this.#tickedUs = nowUs
    return this.#skipped
  }
}
