/**
 * Memory of outgoing media: slabs, filled from front to back. Bytes are copied once and never moved. A slab may hold
 * the media of several segments, and stays in use until all these segments are released.
 *
 * @module
 */
import { MIN_SLAB_BYTES, slabBytesFor, type SlabPool } from './slab-pool.ts'

/** Receives a run of adjacent bytes: the bytes of `buffer` from `start` to `end`. */
export type OnRun = (buffer: Buffer, start: number, end: number) => void

interface Run {
  readonly buffer: Buffer
  readonly start: number
  end: number
}

export class PacketMemory {
  readonly #pool: SlabPool
  #slab: Buffer = Buffer.alloc(0)
  #length = 0
  #slabBytes = MIN_SLAB_BYTES

  constructor(pool: SlabPool) {
    this.#pool = pool
  }

  /** Chooses the size of the next slabs for segments of `segmentBytes`. */
  expect(segmentBytes: number): void {
    this.#slabBytes = slabBytesFor(segmentBytes)
  }

  /**
   * Appends copies of the bytes.
   *
   * @param onRun  called with each run of copied bytes in order, one run per slab; must hold the slab
   *   (`SlabPool.hold`) before it returns, unless the run continues one that is held already
   */
  write(chunks: readonly Uint8Array[], onRun: OnRun): void {
    let start = this.#length
    for (const chunk of chunks) {
      for (let taken = 0; taken < chunk.length;) {
        if (this.#length === this.#slab.length) {
          if (this.#length > start) onRun(this.#slab, start, this.#length)
          this.#pool.release([this.#slab])
          this.#slab = this.#pool.take(this.#slabBytes)
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

/**
 * Runs of adjacent bytes in slabs, in the order in which they were written. Each run holds its slab. `append` what was
 * written, then `take` it.
 */
export class SlabRuns {
  readonly #slabs: SlabPool
  #runs: Run[] = []

  constructor(slabs: SlabPool) {
    this.#slabs = slabs
  }

  /** Adds the bytes of `buffer` from `start` to `end`. */
  append(buffer: Buffer, start: number, end: number): void {
    const last = this.#runs.at(-1)
    if (last?.buffer === buffer && last.end === start) last.end = end
    else {
      this.#slabs.hold([buffer])
      this.#runs.push({ buffer, start, end })
    }
  }

  /** Views of what was appended since the latest `take`. */
  get views(): Buffer[] {
    return this.#runs.map(({ buffer, start, end }) => buffer.subarray(start, end))
  }

  /** @returns `views`; the caller releases them to the pool */
  take(): Buffer[] {
    const { views } = this
    this.#runs = []
    return views
  }
}

/** @returns a copy in one buffer of exact size, for packets that may be dropped instead of written */
export function storePackets(chunks: readonly Buffer[], sizeBytes: number): Buffer {
  const stored = Buffer.allocUnsafeSlow(sizeBytes)
  let length = 0
  for (const chunk of chunks) {
    stored.set(chunk, length)
    length += chunk.length
  }
  return stored
}
