/**
 * Writes the transport stream of one rendition in segments: PAT and PMT, then whole PES packets. Continuity counters
 * continue from segment to segment.
 *
 * @module
 */
import type { Program } from '../track.ts'
import { ContinuityCounters } from '../continuity.ts'
import { type OnRun, PacketMemory, SlabRuns } from './packet-memory.ts'
import { ProgramTables } from './program-tables.ts'
import type { SlabPool } from './slab-pool.ts'

/** Calling order: `setProgram`, then for each segment `begin`, `write` its packets, `finish`. */
export class SegmentWriter {
  readonly #memory: PacketMemory
  readonly #counters = new ContinuityCounters()
  readonly #tables = new ProgramTables()
  readonly #runs: SlabRuns
  #sizeBytes = 0

  constructor(slabs: SlabPool) {
    this.#runs = new SlabRuns(slabs)
    this.#memory = new PacketMemory(slabs)
  }

  /** Size of the open segment. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** @param program  program in the PMT of the next segments */
  setProgram(program: Program): void {
    this.#tables.update(program)
  }

  /** Begins a segment with PAT and PMT. */
  begin(): void {
    this.write([this.#tables.bytes])
  }

  /** Copies packets to the end of the segment. */
  write(chunks: readonly Buffer[]): void {
    this.#memory.write(chunks, this.#append)
  }

  /** @returns the segment as runs of whole packets, whose bytes do not change until it is released to the pool */
  finish(): Buffer[] {
    this.#memory.expect(this.#sizeBytes)
    this.#sizeBytes = 0
    return this.#runs.take()
  }

  readonly #append: OnRun = (buffer, start, end) => {
    this.#counters.renumber(buffer, start, end)
    this.#sizeBytes += end - start
    this.#runs.append(buffer, start, end)
  }
}
