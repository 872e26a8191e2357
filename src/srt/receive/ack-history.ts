/**
 * Full ACKs that wait for their ACKACK, by number (draft-sharabayko-srt 3.2.4, 3.2.8 and 4.10).
 *
 * @module
 */

/** Number of ACKs stored: with at most one ACK per 10 ms, enough for round trips of up to 2.5 s. */
const CAPACITY = 256

const MAX_ACK_NUMBER = 0xffffffff

export class AckHistory {
  readonly #numbers = new Uint32Array(CAPACITY)
  readonly #positions = new Int32Array(CAPACITY)
  readonly #sentUs = new Float64Array(CAPACITY)
  #lastNumber = 0

  /** @returns ACK number for an ACK of this position, from 1 on */
  push(position: number, nowUs: number): number {
    this.#lastNumber = this.#lastNumber === MAX_ACK_NUMBER ? 1 : this.#lastNumber + 1
    const slot = this.#lastNumber % CAPACITY
    this.#numbers[slot] = this.#lastNumber
    this.#positions[slot] = position
    this.#sentUs[slot] = nowUs
    return this.#lastNumber
  }

  /** @returns position and time of the ACK with this number; undefined if it is too old, confirmed or never sent */
  take(ackNumber: number): { position: number; sentUs: number } | undefined {
    const slot = ackNumber % CAPACITY
    if (ackNumber === 0 || this.#numbers[slot] !== ackNumber) return undefined
    this.#numbers[slot] = 0
    return { position: this.#positions[slot]!, sentUs: this.#sentUs[slot]! }
  }
}
