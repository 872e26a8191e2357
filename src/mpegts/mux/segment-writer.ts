/**
 * Writes the transport stream of one rendition in segments, whole or in parts: PAT and PMT, then whole PES packets.
 * Continuity counters continue from part to part and from segment to segment.
 *
 * @module
 */
import type { Program } from '../track.ts'
import { ContinuityCounters } from './continuity-counters.ts'
import { PacketMemory, type OnRun } from './packet-memory.ts'
import type { SlabPool } from './slab-pool.ts'
import { ProgramTables } from './program-tables.ts'

/**
 * Minimum size of a run of packets that is linked instead of copied. Each `Buffer` object takes about 100 bytes of its
 * own, so thousands of small buffers would make a segment take far more memory than its size.
 */
const MIN_LINKED_BYTES = 1024

/** Adjacent packets: the bytes of `buffer` from `start` to `end`. */
interface Run {
  readonly buffer: Buffer
  readonly start: number
  end: number
}

/** Calling order: `setProgram`, then for each part `begin`, `write` or `link` its packets, `endPart`; `finish`. */
export class SegmentWriter {
  readonly #slabs: SlabPool
  readonly #memory: PacketMemory
  readonly #counters = new ContinuityCounters()
  readonly #tables = new ProgramTables()
  /** Runs of the open part. */
  #runs: Run[] = []
  /** Chunks of the finished parts of the segment. */
  #chunks: Buffer[] = []
  #sizeBytes = 0

  constructor(slabs: SlabPool) {
    this.#slabs = slabs
    this.#memory = new PacketMemory(slabs)
  }

  /** Size of the open segment. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** @param program  program in the PMT of the next parts */
  setProgram(program: Program): void {
    this.#tables.update(program)
  }

  /** Begins a part with PAT and PMT. */
  begin(): void {
    this.write([this.#tables.bytes])
  }

  /** Copies packets to the end of the part. */
  write(chunks: readonly Buffer[]): void {
    this.#memory.write(chunks, this.#append)
  }

  /**
   * Adds packets to the end of the part, without a copy from `MIN_LINKED_BYTES` up.
   *
   * @param packets  owned by the writer afterwards, which renumbers the packets in place
   */
  link(packets: Buffer): void {
    if (packets.length < MIN_LINKED_BYTES) this.write([packets])
    else this.#append(packets, 0, packets.length)
  }

  /** @returns the part as runs of whole packets, whose bytes do not change until the segment is released to the pool */
  endPart(): Buffer[] {
    const chunks = this.#runs.map(({ buffer, start, end }) => buffer.subarray(start, end))
    this.#runs = []
    this.#chunks.push(...chunks)
    return chunks
  }

  /** Ends the last part too. @returns the segment: the chunks of all its parts */
  finish(): Buffer[] {
    this.endPart()
    const chunks = this.#chunks
    this.#memory.expect(this.#sizeBytes)
    this.#chunks = []
    this.#sizeBytes = 0
    return chunks
  }

  readonly #append: OnRun = (buffer, start, end) => {
    this.#counters.renumber(buffer, start, end)
    this.#sizeBytes += end - start
    const last = this.#runs.at(-1)
    if (last?.buffer === buffer && last.end === start) last.end = end
    else {
      this.#slabs.hold([buffer])
      this.#runs.push({ buffer, start, end })
    }
  }
}
