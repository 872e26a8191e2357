/**
 * Pool of reusable memory for media: slabs of a few sizes. New memory for each segment would take a fifth of the CPU at
 * 60 streams of 5 Mbit/s (bench/ingest), since allocating external memory makes V8 collect the whole heap.
 *
 * @module
 */
import { PACKET_BYTES } from '../packet.ts'

/** Sizes of slabs in bytes: as many whole packets as fit in 32, 64, 128 and 256 KiB. */
const SLAB_SIZES = [32, 64, 128, 256].map(
  (kib) => Math.floor((kib * 1024) / PACKET_BYTES) * PACKET_BYTES,
)

export const MIN_SLAB_BYTES = SLAB_SIZES[0]!
const MAX_SLAB_BYTES = SLAB_SIZES.at(-1)!

/** Desired maximum number of slabs per segment: each adds 2 to 4 µs to an HTTP reply, but larger slabs waste memory. */
const SLABS_PER_SEGMENT = 4

interface Slab {
  readonly bytes: Buffer
  /** Number of uses: one for each view held, and one while the slab is being filled. */
  views: number
  /** Whether the slab is never reused, because a view may stay in use forever. */
  pinned: boolean
}

/** Size of slabs for segments of this size, in bytes. */
export function slabBytesFor(segmentBytes: number): number {
  const fitting = SLAB_SIZES.find((sizeBytes) => sizeBytes * SLABS_PER_SEGMENT >= segmentBytes)
  return fitting ?? MAX_SLAB_BYTES
}

/**
 * Reference counts per slab: `take` and `hold` add a view, `release` removes one. A slab without views is reused; a
 * slab that is never released is left to the garbage collector. Views of other memory are ignored.
 */
export class SlabPool {
  readonly #maxFreeBytes: () => number
  readonly #slabs = new WeakMap<ArrayBufferLike, Slab>()
  readonly #free = new Map<number, Slab[]>()
  #freeBytes = 0

  /** @param maxFreeBytes  returns the current limit of `freeBytes`; by default 0: no slab is reused */
  constructor(maxFreeBytes: () => number = () => 0) {
    this.#maxFreeBytes = maxFreeBytes
  }

  /** Total size of the unused slabs. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /**
   * Takes a slab, with one view in use. It still contains bytes of earlier segments.
   *
   * @param sizeBytes  a size that `slabBytesFor` returned
   */
  take(sizeBytes: number): Buffer {
    const free = this.#free.get(sizeBytes)?.pop()
    if (free === undefined) return this.#allocate(sizeBytes)
    this.#freeBytes -= sizeBytes
    free.views = 1
    return free.bytes
  }

  /** Adds one use of each view. */
  hold(views: readonly Buffer[]): void {
    for (const { buffer } of views) {
      const slab = this.#slabs.get(buffer)
      if (slab !== undefined) slab.views++
    }
  }

  /** Ends one use of each view. */
  release(views: readonly Buffer[]): void {
    for (const { buffer } of views) {
      const slab = this.#slabs.get(buffer)
      if (slab === undefined) continue
      if (slab.views === 0) throw new Error('a slab was released more often than it was taken')
      slab.views--
      if (slab.views === 0 && !slab.pinned) this.#recycle(slab)
    }
  }

  /** Excludes the memory of these views from reuse: they may stay in use forever. */
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

  /** Drops unused slabs until the limit is met, each time a slab of the size that takes most of the unused memory. */
  #trim(maxBytes: number): void {
    while (this.#freeBytes > maxBytes) {
      const [sizeBytes, free] = [...this.#free].reduce((a, b) =>
        b[0] * b[1].length > a[0] * a[1].length ? b : a,
      )
      free.shift()
      this.#freeBytes -= sizeBytes
    }
  }
}
