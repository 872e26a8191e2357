/**
 * Limits of retransmissions, which are sent before new packets because they are due earlier:
 *
 * - While new packets wait for bandwidth, one retransmission is sent for every four of them: the overhead of 25 % that
 *   libsrt allows by default (`SRTO_OHEADBW`). A higher loss rate would exceed the bandwidth anyway.
 * - At most two packets are retransmitted for each new one, whatever the peer reports: enough for a loss rate of two
 *   thirds. Unused budget accumulates, so that an outage can be repaired at once.
 *
 * @module
 */

/** Minimum number of new packets between two retransmissions while new packets wait. */
const NEW_PER_RETRANSMISSION = 4

/** Budget earned by each new packet, in retransmissions. */
const RETRANSMISSIONS_PER_NEW = 2

export class RetransmissionBudget {
  readonly #maxPackets: number
  #packets: number
  /** Number of new packets sent since the latest retransmission. */
  #newInRow = NEW_PER_RETRANSMISSION

  /** @param maxPackets  maximum budget: one retransmission of the whole send buffer */
  constructor(maxPackets: number) {
    this.#maxPackets = maxPackets
    this.#packets = maxPackets
  }

  /** @param newWaits  whether a new packet waits and the peer's window has room for it */
  allows(newWaits: boolean): boolean {
    return this.#packets > 0 && (!newWaits || this.#newInRow >= NEW_PER_RETRANSMISSION)
  }

  countNew(): void {
    this.#packets = Math.min(this.#maxPackets, this.#packets + RETRANSMISSIONS_PER_NEW)
    this.#newInRow++
  }

  countRetransmission(): void {
    this.#packets--
    this.#newInRow = 0
  }
}
