/**
 * Detects whether the process reads its sockets as fast as datagrams arrive. If it does not, packets may lie unread:
 * packets that seem late or lost may have arrived, peers that seem silent may have sent, and round trips seem long.
 *
 * @module
 */

/** Time since the previous tick above which a tick counts as late. */
const STALL_US = 100_000

export class ReadProgress {
  #tickedUs: number
  #isLate = false
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
    this.#isLate = this.#isLateAt(nowUs)
    this.#skipped = !this.#skipped && this.#isLate
    this.#tickedUs = nowUs
    return this.#skipped
  }

  /** Whether a datagram that is read now may have lain unread for long: its time says nothing about the network. */
  mayHaveWaited(nowUs: number): boolean {
    return this.#behind || this.#isLate || this.#isLateAt(nowUs)
  }

  #isLateAt(nowUs: number): boolean {
    return nowUs - this.#tickedUs > STALL_US
  }
}
