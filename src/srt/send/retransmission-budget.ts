/**
 * Limits of retransmissions. They go before new packets, as the next to be too late, but within two limits:
 *
 * - While new packets wait for bandwidth, four of them leave for one retransmission: libsrt also grants a quarter on top
 *   (`SRTO_OHEADBW`). Losses beyond that are more than the line can carry.
 * - Retransmissions are at most twice the new packets, whatever the peer reports. That is enough for a loss of two packets
 *   in three, and the budget saved before an outage repairs it.
 *
 * @module
 */

/** New packets between two retransmissions while new packets wait. */
const NEW_PER_RETRANSMISSION = 4

/** Retransmissions that a new packet pays for. */
const RETRANSMISSIONS_PER_NEW = 2

export class RetransmissionBudget {
  readonly #maxPackets: number
  #packets: number
  #newInRow = NEW_PER_RETRANSMISSION

  /** @param maxPackets  largest budget: the whole send buffer once */
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
