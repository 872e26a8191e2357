/**
 * Writes the transport stream of one rendition, segment by segment: PAT and PMT first, then whole PES packets, with
 * continuity counters that run on from segment to segment.
 *
 * @module
 */
import type { Program } from '../track.ts'
import { ContinuityCounters } from './continuity-counters.ts'
import { PacketMemory, type OnRun } from './packet-memory.ts'
import { ProgramTables } from './program-tables.ts'

/**
 * Fewer stored bytes are copied behind their predecessor: a buffer costs about 100 bytes itself, and a segment of
 * thousands would take more memory than its size tells.
 */
const MIN_LINKED_BYTES = 1024

/** Neighboring packets in one buffer. */
interface Run {
  readonly buffer: Buffer
  readonly start: number
  end: number
}

/**
 * `setProgram`, then for each segment `begin`, `write` or `link` its packets, `finish`. Each byte is copied once, into
 * memory of bounded pieces.
 */
export class SegmentWriter {
  readonly #memory = new PacketMemory()
  readonly #counters = new ContinuityCounters()
  readonly #tables = new ProgramTables()
  #runs: Run[] = []
  #sizeBytes = 0

  /** Size of the open segment. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** @param program  what the PMT of the next segments lists */
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

  /** Makes packets the end of the segment: they belong to the writer from now on. */
  link(packets: Buffer): void {
    if (packets.length < MIN_LINKED_BYTES) this.write([packets])
    else this.#append(packets, 0, packets.length)
  }

  /** @returns the bytes of the segment, for good: views of n x 188 bytes each */
  finish(): Buffer[] {
    const chunks = this.#runs.map(({ buffer, start, end }) => buffer.subarray(start, end))
    this.#memory.expect(this.#sizeBytes)
    this.#runs = []
    this.#sizeBytes = 0
    return chunks
  }

  readonly #append: OnRun = (buffer, start, end) => {
    this.#counters.renumber(buffer, start, end)
    this.#sizeBytes += end - start
    const last = this.#runs.at(-1)
    if (last?.buffer === buffer && last.end === start) last.end = end
    else this.#runs.push({ buffer, start, end })
  }
}
