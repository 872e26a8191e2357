/**
 * Detects whether the process reads its sockets as fast as datagrams arrive. If it does not, packets may lie unread:
 * packets that seem late or lost may have arrived, and peers that seem silent may have sent.
 *
 * @module
 */

/** Time since the previous tick above which a tick counts as late. */
const STALL_US = 100_000

export class ReadProgress {
  #tickedUs: number
  #skipped = false
  #behind = false

  constructor(nowUs: number) {
    this.#tickedUs = nowUs
  }

  /** Whether the sockets were never found empty between the latest two ticks: datagrams may lie unread. */
  get behind(): boolean {
    return this.#behind
  }

  /**
   * @param drained  whether all sockets were found empty at some time since the previous tick
   * @returns whether to skip this tick because it is late; never two in a row, so that the timers always advance
   */
  tick(nowUs: number, drained: boolean): boolean {
    this.#behind = !drained
    this.#skipped = !this.#skipped && nowUs - this.#tickedUs > STALL_US
    this.#tickedUs = nowUs
    return this.#skipped
  }
}
