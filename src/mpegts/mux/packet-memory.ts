/**
 * Memory for outgoing packets: slabs of a few sizes, filled from front to back. Bytes are copied into them once and never
 * moved. Neighbors in a slab may belong to two segments; the slab lives as long as either.
 *
 * @module
 */
import { PACKET_BYTES } from '../packet.ts'

/** Whole packets in 32, 64, 128 and 256 KiB. */
const SLAB_SIZES = [32, 64, 128, 256].map(
  (kib) => Math.floor((kib * 1024) / PACKET_BYTES) * PACKET_BYTES,
)

export const MIN_SLAB_BYTES = SLAB_SIZES[0]!
export const MAX_SLAB_BYTES = SLAB_SIZES.at(-1)!

/** Few enough buffers for an HTTP reply, 2 to 4 µs each, and a rest that is small beside the segment. */
const SLABS_PER_SEGMENT = 4

/** The only place that allocates memory for media. */
function allocate(sizeBytes: number): Buffer {
  return Buffer.allocUnsafeSlow(sizeBytes)
}

/** Takes neighboring packets in one buffer. */
export type OnRun = (buffer: Buffer, start: number, end: number) => void

export class PacketMemory {
  #slab: Buffer = Buffer.alloc(0)
  #length = 0
  #slabBytes = MIN_SLAB_BYTES

  /** Takes slabs that suit segments of this size from now on. */
  expect(segmentBytes: number): void {
    const fitting = SLAB_SIZES.find((sizeBytes) => sizeBytes * SLABS_PER_SEGMENT >= segmentBytes)
    this.#slabBytes = fitting ?? MAX_SLAB_BYTES
  }

  /**
   * Copies whole packets behind those written before.
   *
   * @param onRun  told where they lie, in order: more than one run where a slab ends in between
   */
  write(chunks: readonly Buffer[], onRun: OnRun): void {
    let start = this.#length
    for (const chunk of chunks) {
      for (let taken = 0; taken < chunk.length;) {
        if (this.#length === this.#slab.length) {
          if (this.#length > start) onRun(this.#slab, start, this.#length)
          this.#slab = allocate(this.#slabBytes)
          this.#length = 0
          start = 0
        }
        const count = Math.min(chunk.length - taken, this.#slab.length - this.#length)
        const piece = count === chunk.length ? chunk : chunk.subarray(taken, taken + count)
        this.#slab.set(piece, this.#length)
        this.#length += count
        taken += count
      }
    }
    if (this.#length > start) onRun(this.#slab, start, this.#length)
  }
}

/** @returns a copy in a buffer of its own, for packets that are as likely to be dropped as to be written */
export function storePackets(chunks: readonly Buffer[], sizeBytes: number): Buffer {
  const stored = allocate(sizeBytes)
  let length = 0
  for (const chunk of chunks) {
    stored.set(chunk, length)
    length += chunk.length
  }
  return stored
}
