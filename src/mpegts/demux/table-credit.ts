/**
 * Credit for table changes. Each transport packet earns 1, and each change of a PAT or PMT has a price, so a source
 * whose tables change with every packet costs little more CPU than one whose tables never change. A change that exceeds
 * the credit is ignored until its section is repeated.
 *
 * @module
 */

/** Maximum credit: enough for 8 changes at once of a PMT with 1012 bytes, the maximum, or for 150 with 50 bytes. */
const MAX_CREDIT = 32_768

/** Credit of one source. Its unit is the CPU time of demultiplexing one packet, about 0.2 µs. */
export class TableCredit {
  #credit = MAX_CREDIT
  #packets = 0

  /**
   * @param price  price of the change in packets, at most `MAX_CREDIT`
   * @param packets  number of packets received so far
   * @returns whether the credit suffices; if so, the price is deducted
   */
  pay(price: number, packets: number): boolean {
    this.#credit = Math.min(MAX_CREDIT, this.#credit + packets - this.#packets)
    this.#packets = packets
    if (price > this.#credit) return false
    this.#credit -= price
    return true
  }
}
