/**
 * Runs of adjacent bytes in slabs, in the order in which they were written. Each run holds its slab.
 *
 * @module
 */
import type { SlabPool } from './slab-pool.ts'

interface Run {
  readonly buffer: Buffer
  readonly start: number
  end: number
}

/** `append` what was written, then `take` it. */
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
