/**
 * Memory of the samples of CMAF fragments, in slabs of the pool.
 *
 * @module
 */
import { overwriteViews, type MediaMemory } from '../../mp4/media-memory.ts'
import { PacketMemory } from '../../mpegts/mux/packet-memory.ts'
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import { SlabRuns } from '../../mpegts/mux/slab-runs.ts'

export class SlabMediaMemory implements MediaMemory {
  readonly #memory: PacketMemory
  readonly #runs: SlabRuns

  constructor(slabs: SlabPool) {
    this.#memory = new PacketMemory(slabs)
    this.#runs = new SlabRuns(slabs)
  }

  /** Chooses the size of the next slabs for segments of `segmentBytes`. */
  expect(segmentBytes: number): void {
    this.#memory.expect(segmentBytes)
  }

  append(chunks: readonly Uint8Array[]): void {
    this.#memory.write(chunks, (buffer, start, end) => this.#runs.append(buffer, start, end))
  }

  overwrite(fromEnd: number, bytes: Uint8Array): void {
    overwriteViews(this.#runs.views, fromEnd, bytes)
  }

  take(): Buffer[] {
    return this.#runs.take()
  }
}
