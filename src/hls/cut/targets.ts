/**
 * EXT-X-TARGETDURATION and PART-TARGET, which never change once they are fixed: PART-TARGET by the first segment, so that the
 * second one has parts, EXT-X-TARGETDURATION by the first segments together.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { TargetDurations } from '../target-durations.ts'
import type { GopLengths } from './gop-lengths.ts'
import { MAX_STEP_PARTS } from './part-cutter.ts'
import { PartTarget } from './part-target.ts'
import { usualMinTicks } from './segment-boundary.ts'
import { TargetDuration } from './target-duration.ts'

/**
 * Number of segments that fix EXT-X-TARGETDURATION. The first GOP may be shorter than later GOPs, and players start three
 * target durations before the end (RFC 8216bis 6.3.3); with parts they start near the end.
 */
const SEGMENTS_TO_FIX = 3
const SEGMENTS_TO_FIX_WITH_PARTS = 2

export interface TargetsOptions {
  readonly segmentSec: number
  readonly maxSegmentSec: number
  /** Desired duration of a part; undefined for segments without parts. */
  readonly partSec?: number | undefined
}

/** Inputs until the targets are fixed: `addFrame`, `addOther` and `addSegment`; then `settle` and `fix`, if need be. */
export class Targets {
  readonly #duration: TargetDuration
  readonly #minTicks: number
  /** Undefined without low latency, and once PART-TARGET is fixed. */
  #part: PartTarget | undefined
  readonly #gops: GopLengths
  #partTargetSec: number | undefined

  /**
   * @param gops  of the reference track
   * @param fixed  targets that are fixed already
   */
  constructor(
    { segmentSec, maxSegmentSec, partSec }: TargetsOptions,
    gops: GopLengths,
    fixed?: TargetDurations,
  ) {
    this.#gops = gops
    const segmentsToFix = partSec === undefined ? SEGMENTS_TO_FIX : SEGMENTS_TO_FIX_WITH_PARTS
    this.#duration = new TargetDuration(segmentSec, maxSegmentSec, segmentsToFix, fixed?.targetSec)
    this.#partTargetSec = fixed?.partTargetSec
    this.#minTicks = usualMinTicks(Math.min(segmentSec, fixed?.targetSec ?? segmentSec))
    if (partSec !== undefined && fixed === undefined) this.#part = new PartTarget(partSec)
  }

  /** EXT-X-TARGETDURATION; before it is fixed, its maximum. */
  get sec(): number {
    return this.#duration.sec
  }

  /** PART-TARGET; undefined before it is fixed, and without parts. */
  get partTargetSec(): number | undefined {
    return this.#partTargetSec
  }

  /** Maximum duration of a segment. */
  get limitTicks(): number {
    return this.#duration.limitTicks
  }

  /** Maximum step of the timestamps forward; a longer one is a discontinuity. */
  get maxStepTicks(): number {
    const maxPartsSec = MAX_STEP_PARTS * (this.#partTargetSec ?? Infinity)
    return Math.min(this.limitTicks, maxPartsSec * TICKS_PER_SEC)
  }

  /** Minimum duration of a segment that ends at a random access point without a reason of its own. */
  get minTicks(): number {
    return this.#minTicks
  }

  /** Records a PES packet of the reference track. */
  addFrame(unit: PesUnit): void {
    this.#part?.addFrame(unit)
  }

  /** Records a PES packet of another track. */
  addOther(unit: PesUnit): void {
    this.#part?.addOther(unit)
  }

  /**
   * Records a segment, see `TargetDuration.addSegment`. The first one that no disconnect cut short fixes PART-TARGET, unless
   * its frames tell none.
   *
   * @returns the targets if this segment fixes EXT-X-TARGETDURATION
   */
  addSegment(sec: number, cutShort: boolean): TargetDurations | undefined {
    if (!cutShort) this.#choosePart()
    return this.#duration.addSegment(sec, { cutShort }) ? this.#choose() : undefined
  }

  /** Fixes the targets by the segments so far and the open one, see `TargetDuration.settle`. */
  settle(openSec: number): TargetDurations | undefined {
    return this.#duration.settle(openSec) ? this.#choose() : undefined
  }

  /** Fixes the targets by the segments so far, if there are any. */
  fix(): TargetDurations | undefined {
    return this.#duration.fix() ? this.#choose() : undefined
  }

  #choose(): TargetDurations {
    this.#choosePart()
    this.#part = undefined
    return { targetSec: this.sec, partTargetSec: this.#partTargetSec }
  }

  #choosePart(): void {
    this.#partTargetSec ??= this.#part?.choose(this.#gops.longestTicks, this.#minTicks)
    if (this.#partTargetSec !== undefined) this.#part = undefined
  }
}
