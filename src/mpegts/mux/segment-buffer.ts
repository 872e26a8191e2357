/**
 * The bytes of a segment while it is being filled. Each packet is copied once, into room that is asked for ahead.
 *
 * @module
 */
import { TS_PACKET_BYTES, type ContinuityCounters } from './continuity-counters.ts'

const LEAST_CAPACITY_BYTES = 64 * TS_PACKET_BYTES

export class SegmentBuffer {
  readonly #continuity: ContinuityCounters
  #bytes: Buffer
  #length = 0

  /** @param expectedBytes  what it will probably hold; more makes it grow */
  constructor(continuity: ContinuityCounters, expectedBytes: number) {
    this.#continuity = continuity
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(expectedBytes, LEAST_CAPACITY_BYTES))
  }

  get length(): number {
    return this.#length
  }

  /** Copies packets and gives them our continuity counters. */
  append(chunks: readonly Buffer[]): void {
    const from = this.#length
    for (const chunk of chunks) this.#copy(chunk)
    this.#continuity.renumber(this.#bytes, from, this.#length)
  }

  /** Moves everything from `offset` on to the end of another buffer; it keeps its counters. */
  moveTail(offset: number, other: SegmentBuffer): void {
    other.#copy(this.#bytes.subarray(offset, this.#length))
    this.#length = offset
  }

  /**
   * Its bytes, for good; the buffer is not to be used any more. The memory behind them is at most a quarter larger:
   * what was expected and did not come is given back.
   */
  finish(): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length)
    if (bytes.length * 1.25 >= this.#bytes.length) return bytes
    const exact = Buffer.allocUnsafeSlow(bytes.length)
    exact.set(bytes)
    return exact
  }

  #copy(chunk: Buffer): void {
    const end = this.#length + chunk.length
    if (end > this.#bytes.length) this.#grow(end)
    this.#bytes.set(chunk, this.#length)
    this.#length = end
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}
