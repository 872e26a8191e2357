/**
 * The segment being filled: PAT, PMT, then units in the order in which they were placed.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/demuxer-output.ts'
import type { SegmentBuffer } from './segment-buffer.ts'
import type { Timeline } from './timeline.ts'

/** Where a unit of the reference track begins inside the segment. */
interface Boundary {
  readonly offset: number
  readonly ticks: number
  /** Units of the reference track before it. */
  readonly units: number
}

/** `append…` while it is filled, `splitInto` at most once, then `finish`. */
export class OpenSegment {
  readonly timeline: Timeline
  readonly startTicks: number
  /** A decoder can start at its first unit. */
  readonly randomAccess: boolean
  readonly #buffer: SegmentBuffer
  #units = 0
  #leadingPictures = false
  /** Where it is cut if its GOP does not end in time. */
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
    this.#newest = { offset: buffer.length, ticks: startTicks, units: 0 }
    this.#split = this.#newest
  }

  get sizeBytes(): number {
    return this.#buffer.length
  }

  /** Units of the reference track. */
  get units(): number {
    return this.#units
  }

  /** Every picture can be decoded: it starts at a random access point, and nothing later is shown before that. */
  get independent(): boolean {
    return this.randomAccess && !this.#leadingPictures
  }

  /** Holds a boundary at which it can be cut. */
  get isSplittable(): boolean {
    return this.#split.ticks > this.startTicks
  }

  /** Time of the boundary at which `splitInto` cuts. */
  get splitTicks(): number {
    return this.#split.ticks
  }

  append(chunks: readonly Buffer[]): void {
    this.#buffer.append(chunks)
  }

  /**
   * @param unit  of the reference track
   * @param pieceTicks  if it must be split, then at the first unit this far into the segment, else at the newest
   */
  appendReference(unit: PesUnit, pieceTicks: number): void {
    const ticks = this.timeline.timeOf(unit)
    if (ticks > this.#newest.ticks) {
      this.#newest = { offset: this.sizeBytes, ticks, units: this.#units }
      if (this.#split.ticks - this.startTicks < pieceTicks) this.#split = this.#newest
    }
    if (unit.ptsTicks < this.startTicks) this.#leadingPictures = true
    this.#units++
    this.timeline.advance(unit)
    this.append(unit.chunks)
  }

  /** Moves everything from the boundary at `splitTicks` on to the segment that follows. */
  splitInto(next: OpenSegment): void {
    const { offset, units } = this.#split
    const moved = next.sizeBytes - offset
    if (this.#newest.offset > offset) {
      const { ticks } = this.#newest
      next.#newest = {
        offset: this.#newest.offset + moved,
        ticks,
        units: this.#newest.units - units,
      }
      next.#split = next.#newest
    }
    this.#buffer.moveTail(offset, next.#buffer)
    next.#units = this.#units - units
    this.#units = units
  }

  /** Its bytes, for good. */
  finish(): Buffer {
    return this.#buffer.finish()
  }
}
