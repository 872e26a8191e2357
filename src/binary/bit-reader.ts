/**
 * Fields that are not whole bytes, most significant bit first, and the Exp-Golomb codes of H.264 and H.265
 * (ITU-T H.264 9.1).
 *
 * @module
 */

/**
 * Reads forward through bytes. Past their end every read gives 0 and `overrun` becomes true for good, so a parser
 * reads a whole structure and asks once, at the end, whether any of it was there.
 */
export class BitReader {
  readonly #bytes: Uint8Array
  #position = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** More was read than the bytes hold, or a code was longer than any valid one. */
  get overrun(): boolean {
    return this.#position > this.#bytes.length * 8
  }

  /** Bits read or skipped so far. */
  get position(): number {
    return this.#position
  }

  /** @param count  0-32 bits @returns them as an unsigned number */
  readBits(count: number): number {
    let value = 0
    let left = count
    while (left > 0) {
      const inByte = 8 - (this.#position & 7)
      const taken = Math.min(inByte, left)
      const byte = this.#bytes[this.#position >>> 3] ?? 0
      const bits = (byte >> (inByte - taken)) & ((1 << taken) - 1)
      value = value * 2 ** taken + bits
      this.#position += taken
      left -= taken
    }
    return value
  }

  readFlag(): boolean {
    return this.readBits(1) === 1
  }

  /** @returns a copy, whether or not it begins at the border of a byte; empty where there are not so many */
  readBytes(count: number): Buffer {
    const shift = this.#position & 7
    const begin = this.#position >>> 3
    this.#position += count * 8
    if (this.overrun) return Buffer.alloc(0)
    if (shift === 0) return Buffer.from(this.#bytes.subarray(begin, begin + count))
    const bytes = Buffer.allocUnsafe(count)
    for (let i = 0; i < count; i++) {
      const pair = (this.#bytes[begin + i]! << 8) | this.#bytes[begin + i + 1]!
      bytes[i] = pair >> (8 - shift)
    }
    return bytes
  }

  skipBits(count: number): void {
    this.#position += count
  }

  /** ue(v): unsigned Exp-Golomb code, up to 2^32 - 2. */
  readUe(): number {
    let leadingZeros = 0
    while (!this.overrun && !this.readFlag()) leadingZeros++
    // No valid code has more; the reader stops trusting the bytes.
    if (leadingZeros > 31) this.#position = this.#bytes.length * 8 + 1
    const value = 2 ** leadingZeros - 1 + this.readBits(leadingZeros)
    return this.overrun ? 0 : value
  }

  /** se(v): signed Exp-Golomb code; 1, 2, 3, 4 of ue(v) stand for 1, -1, 2, -2. */
  readSe(): number {
    const code = this.readUe()
    return code % 2 === 1 ? (code + 1) / 2 : 0 - code / 2
  }
}
