/**
 * Memory of outgoing packets: slabs of a few sizes, filled from front to back. Bytes are copied once and never moved.
 * A slab may hold the packets of two segments, and lives as long as either.
 *
 * @module
 */
import { PACKET_BYTES } from '../packet.ts'

/** Sizes of slabs: whole packets in 32, 64, 128 and 256 KiB. */
const SLAB_SIZES = [32, 64, 128, 256].map(
  (kib) => Math.floor((kib * 1024) / PACKET_BYTES) * PACKET_BYTES,
)

export const MIN_SLAB_BYTES = SLAB_SIZES[0]!
export const MAX_SLAB_BYTES = SLAB_SIZES.at(-1)!

/** Compromise: each buffer costs an HTTP reply 2 to 4 µs, and larger slabs leave more unused bytes. */
const SLABS_PER_SEGMENT = 4

function allocate(sizeBytes: number): Buffer {
  return Buffer.allocUnsafeSlow(sizeBytes)
}

/** Receives a run of adjacent packets in one buffer. */
export type OnRun = (buffer: Buffer, start: number, end: number) => void

export class PacketMemory {
  #slab: Buffer = Buffer.alloc(0)
  #length = 0
  #slabBytes = MIN_SLAB_BYTES

  /** Chooses the size of the next slabs for segments of this size. */
  expect(segmentBytes: number): void {
    const fitting = SLAB_SIZES.find((sizeBytes) => sizeBytes * SLABS_PER_SEGMENT >= segmentBytes)
    this.#slabBytes = fitting ?? MAX_SLAB_BYTES
  }

  /**
   * Copies whole packets to the end of the written ones.
   *
   * @param onRun  receives their places in order; several when a slab ends among them
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

/** @returns a copy in one buffer of exact size, for packets that may be dropped instead of written */
export function storePackets(chunks: readonly Buffer[], sizeBytes: number): Buffer {
  const stored = allocate(sizeBytes)
  let length = 0
  for (const chunk of chunks) {
    stored.set(chunk, length)
    length += chunk.length
  }
  return stored
}
