/**
 * The segment being filled: PAT, PMT, then units in the order in which they were placed.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import type { SegmentBuffer } from '../../mpegts/mux/segment-buffer.ts'
import type { Timeline } from './timeline.ts'

/** Where a unit of the reference track begins inside the segment. */
interface Boundary {
  readonly offset: number
  readonly ticks: number
  /** Units of the reference track before it. */
  readonly units: number
  /** A decoder can start here. */
  readonly randomAccess: boolean
}

/** `append…` while it is filled, `splitInto` at most once, then `finish`. */
export class OpenSegment {
  readonly timeline: Timeline
  readonly startTicks: number
  /** A decoder can start at its first unit. */
  readonly randomAccess: boolean
  readonly #buffer: SegmentBuffer
  #units = 0
  /** A picture that needs earlier ones is shown before the first one, or before the one at `#split`. */
  #leadsStart = false
  #leadsSplit = false
  /** Where it is best cut if it cannot end in time. */
  #split: Boundary
  /** The unit with the latest time. */
  #newest: Boundary

  /** @param buffer  holds PAT and PMT already */
  constructor(
    timeline: Timeline,
    startTicks: number,
    { randomAccess, buffer }: { randomAccess: boolean; buffer: SegmentBuffer },
  ) {
    this.timeline = timeline
    this.startTicks = startTicks
    this.randomAccess = randomAccess
    this.#buffer = buffer
    this.#newest = { offset: buffer.length, ticks: startTicks, units: 0, randomAccess }
    this.#split = this.#newest
  }

  get sizeBytes(): number {
    return this.#buffer.length
  }

  /** Units of the reference track. */
  get units(): number {
    return this.#units
  }

  /** Every picture can be decoded: it starts at a random access point, and none shown before that needs more. */
  get independent(): boolean {
    return this.randomAccess && !this.#leadsStart
  }

  /** The boundary at which `splitInto` cuts: the newest key frame, else a unit of some length on; undefined: none. */
  get split(): Boundary | undefined {
    return this.#split.ticks > this.startTicks ? this.#split : undefined
  }

  append(chunks: readonly Buffer[]): void {
    this.#buffer.append(chunks)
  }

  /**
   * @param unit  of the reference track
   * @param pieceTicks  without a key frame inside, it is best cut at the first unit that is this far into it
   */
  appendReference(unit: PesUnit, pieceTicks: number): void {
    if (!unit.startsFrame) return this.append(unit.chunks)
    const ticks = this.timeline.timeOf(unit)
    if (!unit.decodableLeading) {
      if (unit.ptsTicks < this.startTicks) this.#leadsStart = true
      if (unit.ptsTicks < this.#split.ticks) this.#leadsSplit = true
    }
    if (ticks > this.#newest.ticks) {
      const { sizeBytes: offset, units } = this
      this.#newest = { offset, ticks, units, randomAccess: unit.randomAccess }
      const isShort = this.#split.ticks - this.startTicks < pieceTicks
      if (unit.randomAccess || (isShort && !this.#hasKeyInside)) {
        this.#split = this.#newest
        this.#leadsSplit = false
      }
    }
    this.#units++
    this.timeline.advance(unit)
    this.append(unit.chunks)
  }

  /** Moves everything from the boundary at `split` on to the segment that follows. */
  splitInto(next: OpenSegment): void {
    const { offset, units } = this.#split
    if (this.#newest.offset > offset) {
      next.#newest = {
        ...this.#newest,
        offset: this.#newest.offset - offset + next.sizeBytes,
        units: this.#newest.units - units,
      }
      next.#split = next.#newest
    }
    next.#units = this.#units - units
    next.#leadsStart = this.#leadsSplit
    this.#units = units
    this.#buffer.moveTail(offset, next.#buffer)
  }

  /** Its bytes, for good. */
  finish(): Buffer {
    return this.#buffer.finish()
  }

  get #hasKeyInside(): boolean {
    return this.split?.randomAccess === true
  }
}
