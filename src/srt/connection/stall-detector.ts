/**
 * Detection of late ticks. After a stall of the process, the sockets hold packets that the peers sent meanwhile. These
 * packets must be read before any packet counts as late or lost, or any peer as gone.
 *
 * @module
 */

/** Time since the previous tick above which a tick counts as late. */
const STALL_US = 100_000

export class StallDetector {
  #tickedUs: number
  #skipped = false

  constructor(nowUs: number) {
    this.#tickedUs = nowUs
  }

  /** Whether to skip this tick because it is late; never two in a row, so that an overloaded process makes progress. */
  shouldSkip(nowUs: number): boolean {
    this.#skipped = !this.#skipped && nowUs - this.#tickedUs > STALL_US
    this.#tickedUs = nowUs
    return this.#skipped
  }
}
