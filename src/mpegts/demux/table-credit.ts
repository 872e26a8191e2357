/**
 * Credit for table changes. Each transport packet earns one, each change of a PAT or PMT costs some, so a source whose
 * tables change with every packet costs little more CPU than one whose tables stay. A change beyond the credit is ignored
 * until its section is repeated.
 *
 * @module
 */

/** Credit for the first tables of a multiplex of 60 programs, or for 40 changes of a usual program at once. */
const MAX_CREDIT = 32_768

/** The price of one packet stands for the CPU time of demultiplexing one, about 0.2 µs. */
export class TableCredit {
  #credit = MAX_CREDIT
  #packets = 0

  /**
   * @param price  price of the change in packets, at most 32,768
   * @param packets  number of packets received so far
   * @returns whether the credit suffices; the price is deducted then
   */
  pay(price: number, packets: number): boolean {
    this.#credit = Math.min(MAX_CREDIT, this.#credit + packets - this.#packets)
    this.#packets = packets
    if (price > this.#credit) return false
    this.#credit -= price
    return true
  }
}
