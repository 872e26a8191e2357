/**
 * Memory of media: slabs of a few sizes, used again and again. New ones for each segment make V8 collect the whole heap, since
 * they count as external memory: a fifth of the CPU at 60 streams of 5 Mbit/s (bench/ingest).
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

interface Slab {
  readonly bytes: Buffer
  /** Views of it that are in use, the one that is being filled among them. */
  views: number
  /** Some view may be in use for ever. */
  pinned: boolean
}

/** Size of the slabs that suit segments of this size, in bytes. */
export function slabBytesFor(segmentBytes: number): number {
  const fitting = SLAB_SIZES.find((sizeBytes) => sizeBytes * SLABS_PER_SEGMENT >= segmentBytes)
  return fitting ?? MAX_SLAB_BYTES
}

/**
 * Counts the views of each slab: `take` and `retain` add one, `release` ends one. A slab without views is used again; one
 * that is never released is left to the garbage collector. Memory that is not of this pool is ignored.
 */
export class SlabPool {
  readonly #maxFreeBytes: () => number
  readonly #slabs = new WeakMap<ArrayBufferLike, Slab>()
  readonly #free = new Map<number, Slab[]>()
  #freeBytes = 0

  /** @param maxFreeBytes  that the pool keeps for later, as of now */
  constructor(maxFreeBytes: () => number = () => 0) {
    this.#maxFreeBytes = maxFreeBytes
  }

  /** Bytes that wait to be used again. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /**
   * A slab with one view in use. Its content is that of earlier segments.
   *
   * @param sizeBytes  one of `slabBytesFor`
   */
  take(sizeBytes: number): Buffer {
    const free = this.#free.get(sizeBytes)?.pop()
    if (free === undefined) return this.#allocate(sizeBytes)
    this.#freeBytes -= sizeBytes
    free.views = 1
    return free.bytes
  }

  /** Each of these views is in use once more. */
  retain(views: readonly Buffer[]): void {
    for (const { buffer } of views) {
      const slab = this.#slabs.get(buffer)
      if (slab !== undefined) slab.views++
    }
  }

  /** Each of these views is in use no longer. */
  release(views: readonly Buffer[]): void {
    for (const { buffer } of views) {
      const slab = this.#slabs.get(buffer)
      if (slab === undefined) continue
      if (slab.views === 0) throw new Error('a slab was released more often than it was taken')
      slab.views--
      if (slab.views === 0 && !slab.pinned) this.#recycle(slab)
    }
  }

  /** These views may be in use for ever: their memory is never used again. */
  pin(views: readonly Buffer[]): void {
    for (const { buffer } of views) {
      const slab = this.#slabs.get(buffer)
      if (slab !== undefined) slab.pinned = true
    }
  }

  #allocate(sizeBytes: number): Buffer {
    const bytes = Buffer.allocUnsafeSlow(sizeBytes)
    this.#slabs.set(bytes.buffer, { bytes, views: 1, pinned: false })
    return bytes
  }

  #recycle(slab: Slab): void {
    const { length } = slab.bytes
    const free = this.#free.get(length) ?? []
    this.#free.set(length, free)
    free.push(slab)
    this.#freeBytes += length
    this.#trim(this.#maxFreeBytes())
  }

  #trim(maxBytes: number): void {
    for (const [sizeBytes, free] of this.#free) {
      while (this.#freeBytes > maxBytes && free.pop() !== undefined) this.#freeBytes -= sizeBytes
    }
  }
}
