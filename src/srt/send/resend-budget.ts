/**
 * How much may be sent again. Losses go first, as the next to be late, but not at any price:
 *
 * - Where new packets wait because the bandwidth is used up, four of them leave for one that is sent again: a quarter on
 *   top is what libsrt grants (`SRTO_OHEADBW`). Losses that do not fit are too many for the line.
 * - No peer makes us send more than three times the stream, whatever it asks for. Two out of three packets may be lost
 *   before that is too little; what an outage left behind has been saved up for.
 *
 * @module
 */

/** Packets sent for the first time, while others wait, between two that are sent again. */
const NEW_PER_RESENT = 4

/** Packets that may be sent again for one that is sent for the first time. */
const RESENT_PER_NEW = 2

export class ResendBudget {
  readonly #maxPackets: number
  #packets: number
  #newInRow = NEW_PER_RESENT

  /** @param maxPackets  may be sent again at one time: all that is kept, once */
  constructor(maxPackets: number) {
    this.#maxPackets = maxPackets
    this.#packets = maxPackets
  }

  /** @param newWaits  packets wait to be sent for the first time, and may be */
  allows(newWaits: boolean): boolean {
    return this.#packets > 0 && (!newWaits || this.#newInRow >= NEW_PER_RESENT)
  }

  countNew(): void {
    this.#packets = Math.min(this.#maxPackets, this.#packets + RESENT_PER_NEW)
    this.#newInRow++
  }

  countResent(): void {
    this.#packets--
    this.#newInRow = 0
  }
}
