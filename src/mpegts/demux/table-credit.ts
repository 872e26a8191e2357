/**
 * Credit for table changes. Each transport packet earns 1, and each change of a PAT or PMT has a price, so a source
 * whose tables change with every packet costs little more CPU than one whose tables never change. A change beyond the
 * credit is ignored until its section is repeated.
 *
 * @module
 */

/** Maximum credit: enough for the first tables of 60 programs, or for 40 changes of a usual program at once. */
const MAX_CREDIT = 32_768

/** Credit of one source. Its unit is the CPU time of demultiplexing one packet, about 0.2 µs. */
export class TableCredit {
  #credit = MAX_CREDIT
  #packets = 0

  /**
   * @param price  price of the change in packets, at most 32,768
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
