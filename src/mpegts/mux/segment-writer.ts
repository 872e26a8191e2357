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

/**
 * Minimum size of a run of packets that is linked instead of copied. Each `Buffer` object takes about 100 bytes of its
 * own, so thousands of small buffers would make a segment take far more memory than its size.
 */
const MIN_LINKED_BYTES = 1024

/** Calling order: `setProgram`, then for each segment `begin`, `write` or `link` its packets, `finish`. */
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

  /**
   * Adds packets to the end of the segment, without a copy from `MIN_LINKED_BYTES` up.
   *
   * @param packets  owned by the writer afterwards, which renumbers the packets in place
   */
  link(packets: Buffer): void {
    if (packets.length < MIN_LINKED_BYTES) this.write([packets])
    else this.#append(packets, 0, packets.length)
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
