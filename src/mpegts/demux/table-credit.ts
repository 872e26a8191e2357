/**
 * What changes of tables may cost. A change is paid for with transport packets, so that a source whose tables change
 * with each packet costs no more than one whose tables stand: what cannot be paid for is passed over, and read when it
 * is sent again.
 *
 * @module
 */

/** Pays for the tables that a multiplex of 60 programs begins with, and for 40 changes of a usual program at once. */
const MAX_CREDIT = 32_768

/** A change at the price of one packet takes about as long as a packet: 0.2 µs. */
export class TableCredit {
  #credit = MAX_CREDIT
  #packets = 0

  /**
   * @param price  in packets, at most 32,768
   * @param packets  seen so far
   * @returns whether the change is paid for
   */
  pay(price: number, packets: number): boolean {
    this.#credit = Math.min(MAX_CREDIT, this.#credit + packets - this.#packets)
    this.#packets = packets
    if (price > this.#credit) return false
    this.#credit -= price
    return true
  }
}
