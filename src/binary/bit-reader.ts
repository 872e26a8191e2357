/**
 * Bit fields, most significant bit first, and the Exp-Golomb codes of H.264 and H.265 (ITU-T H.264 9.1).
 *
 * @module
 */

/**
 * Reader of bits from front to back. Bits past the end of the bytes read as 0 and set `overrun`, which is never reset:
 * a parser may read a whole structure and check `overrun` once, at the end.
 */
export class BitReader {
  readonly #bytes: Uint8Array
  #position = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Whether bits past the end of the bytes were read or skipped, or an Exp-Golomb code was invalid. */
  get overrun(): boolean {
    return this.#position > this.#bytes.length * 8
  }

  /** Number of bits read or skipped so far. */
  get position(): number {
    return this.#position
  }

  /**
   * @param count  number of bits, 0 to 32
   * @returns unsigned value of the next `count` bits
   */
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

  /** @returns copy of the next `count` bytes, from any bit position; empty, with `overrun` set, if fewer remain */
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

  /** ue(v): unsigned Exp-Golomb code, up to 2^32 - 2; 0 after an overrun. */
  readUe(): number {
    let leadingZeros = 0
    while (!this.overrun && !this.readFlag()) leadingZeros++
    // A valid code has at most 31 leading zeros: an invalid one sets `overrun`.
    if (leadingZeros > 31) this.#position = this.#bytes.length * 8 + 1
    const value = 2 ** leadingZeros - 1 + this.readBits(leadingZeros)
    return this.overrun ? 0 : value
  }

  /** se(v): signed Exp-Golomb code; ue(v) values 1, 2, 3, 4 map to 1, -1, 2, -2. */
  readSe(): number {
    const code = this.readUe()
    return code % 2 === 1 ? (code + 1) / 2 : 0 - code / 2
  }
}
