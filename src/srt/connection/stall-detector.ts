/**
 * Detection of late ticks. A process that was held up finds in its socket what the peers sent meanwhile, and must read it
 * before it takes a packet for late or lost, or a peer for gone.
 *
 * @module
 */

/** Time between two ticks from which the later one counts as late. */
const STALL_US = 100_000

export class StallDetector {
  #tickedUs: number
  #skipped = false

  constructor(nowUs: number) {
    this.#tickedUs = nowUs
  }

  /** Whether to skip this tick, as a late one; never two in a row, so a process that is always late still makes progress. */
  shouldSkip(nowUs: number): boolean {
    this.#skipped = !this.#skipped && nowUs - this.#tickedUs > STALL_US
    this.#tickedUs = nowUs
    return this.#skipped
  }
}
