/**
 * Continuous timestamps, from a random access point to the next discontinuity, on the clock of the reference track: the
 * video or, without video, the audio.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { SegmentPlan } from './segment-plan.ts'

/** Longest step of the times of a track that counts as media: a longer one is a pause, a loss or a jump of its clock. */
export const MAX_STEP_TICKS = 1 * TICKS_PER_SEC

/** Longest step back that is not a discontinuity, but rounding or reordering by the encoder. */
export const MAX_STEP_BACK_TICKS = 1 * TICKS_PER_SEC

/** Maximum difference in time between the reference track and other tracks of the same timeline. */
export const MAX_SKEW_TICKS = 10 * TICKS_PER_SEC

/** Maximum distance of a key frame or splice point from the segment boundary that it belongs to, due to rounding. */
export const SNAP_TICKS = 0.05 * TICKS_PER_SEC

/** Time after the last frame of a timeline up to which the last segment includes audio and metadata. */
const CLOSING_TICKS = 1 * TICKS_PER_SEC

const USUAL_FRAME_TICKS = TICKS_PER_SEC / 30
/** Longest frame that tells of the next one behind a pause. */
const MAX_FRAME_TICKS = 1 * TICKS_PER_SEC
const FRAMES_REMEMBERED = 32

export class Timeline {
  /** PTS of the first PES packet. */
  readonly startTicks: number

  #latestTicks: number
  #maxPtsTicks: number
  /** PTS minus DTS of the newest random access point. */
  #reorderTicks: number
  /** End of the newest repetition. */
  #repeatedUntilTicks = -Infinity
  #frames = 0
  /** Ring of the durations of the newest frames. */
  readonly #durations: number[] = []

  constructor(first: PesUnit) {
    this.startTicks = first.ptsTicks
    this.#latestTicks = first.ptsTicks
    this.#maxPtsTicks = first.ptsTicks
    this.#reorderTicks = first.ptsTicks - first.dtsTicks
  }

  /** Time of the newest frame, see `timeOf`. */
  get latestTicks(): number {
    return this.#latestTicks
  }

  /** Latest time of a PES packet in the last segment. */
  get closingTicks(): number {
    return this.#latestTicks + CLOSING_TICKS
  }

  /** Expected duration of the next frame: the shorter of the latest two, since one may be a gap. */
  get frameTicks(): number {
    const newest = this.#durations[(this.#frames - 1) % FRAMES_REMEMBERED] ?? USUAL_FRAME_TICKS
    const second = this.#durations[(this.#frames - 2) % FRAMES_REMEMBERED] ?? newest
    return Math.min(newest, second)
  }

  /** End of the frame with the latest PTS, if it has the median duration, or of the repetition that it belongs to. */
  get endTicks(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b)
    const ticks = this.#maxPtsTicks + (sorted[sorted.length >> 1] ?? USUAL_FRAME_TICKS)
    return Math.max(ticks, this.#repeatedUntilTicks)
  }

  /** End of the media so far; unlike `endTicks`, not before the time of the newest unit. */
  get mediaEndTicks(): number {
    return Math.max(this.endTicks, this.#latestTicks)
  }

  /**
   * Start time of a segment that begins with this PES packet. For a random access point it is the PTS. Otherwise it is
   * the DTS plus the reorder delay, since later frames may be presented before this one.
   */
  timeOf(unit: PesUnit): number {
    return unit.randomAccess ? unit.ptsTicks : this.timeAt(unit.dtsTicks)
  }

  /** Start time of a segment that begins with a PES packet that is no random access point. */
  timeAt(dtsTicks: number): number {
    return dtsTicks + this.#reorderTicks
  }

  /**
   * Whether there is a timestamp discontinuity before a PES packet: a step back, or a gap that no segment can span.
   *
   * @param maxStepTicks  maximum step forward
   */
  breaksAt(unit: PesUnit, maxStepTicks: number): boolean {
    const stepTicks = this.timeOf(unit) - this.#latestTicks
    return stepTicks < -MAX_STEP_BACK_TICKS || stepTicks > maxStepTicks
  }

  /** Advances to the next frame of the reference track. */
  advance(unit: PesUnit): void {
    const ticks = this.timeOf(unit)
    this.#maxPtsTicks = Math.max(this.#maxPtsTicks, unit.ptsTicks)
    if (unit.randomAccess) this.#reorderTicks = unit.ptsTicks - unit.dtsTicks
    const { repetition } = unit
    if (repetition !== undefined) {
      // The step before a pause would be expected of each repeated frame.
      if (this.frameTicks > MAX_FRAME_TICKS) this.#frames = this.#durations.length = 0
      this.#repeatedUntilTicks = this.timeAt(repetition.untilTicks)
    }
    if (ticks <= this.#latestTicks) return
    // Neither frames that are repeated have their duration, nor the one behind them.
    if (this.#repeatedUntilTicks < this.#latestTicks)
      this.#durations[this.#frames++ % FRAMES_REMEMBERED] = ticks - this.#latestTicks
    this.#latestTicks = ticks
  }
}

/** Open segment and its timeline. */
export interface Open {
  readonly plan: SegmentPlan
  readonly timeline: Timeline
}
