/**
 * Timestamps of one track in order of arrival: regular steps, gaps, repetitions.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'

/** Shortest step, ahead or back, that is a timestamp discontinuity. */
export const JUMP_TICKS = 10 * TICKS_PER_SEC

/** Shortest step that is no repetition: muxers raise repeated timestamps by less than 0.5 ms. */
const MIN_STEP_TICKS = 45

/** Number of the newest steps from which the usual step is learned. */
const STEPS_REMEMBERED = 128

/** Length of a gap as a multiple of the 90th percentile of the steps, so that a variable frame rate has no gaps. */
const GAP_STEPS = 2.5

/** Inputs: `push` each frame; `learn` about once a second. Counters only increase. */
export class TrackTimes {
  frames = 0
  /** Number of frames whose DTS advances by less than 0.5 ms, stands still, or goes back by less than 10 s. */
  repeated = 0
  /** Number of frames whose PTS is before their DTS. */
  early = 0
  /** Number of steps that skip frames. */
  gaps = 0
  /** Total duration of the skipped frames. */
  missingTicks = 0
  /** Sum of all steps from 0.5 ms to 10 s; a longer step is a discontinuity. */
  playedTicks = 0
  /** DTS of the first frame; NaN before it. */
  firstTicks = NaN
  /** DTS of the latest frame; NaN before the first. */
  latestTicks = NaN
  /** Ring of the newest steps. */
  readonly #steps = new Float64Array(STEPS_REMEMBERED)
  #remembered = 0
  #usualTicks = 0
  #gapTicks = Infinity

  push({ ptsTicks, dtsTicks }: PesUnit): void {
    if (this.frames++ === 0) this.firstTicks = dtsTicks
    if (ptsTicks < dtsTicks) this.early++
    const stepTicks = dtsTicks - this.latestTicks
    this.latestTicks = dtsTicks
    if (stepTicks >= MIN_STEP_TICKS && stepTicks < JUMP_TICKS) this.#step(stepTicks)
    else if (Math.abs(stepTicks) < JUMP_TICKS) this.repeated++
  }

  /** Updates the usual step and the length of a gap from the newest steps, once there are 32. */
  learn(): void {
    const count = Math.min(this.#remembered, STEPS_REMEMBERED)
    if (count < STEPS_REMEMBERED / 4) return
    const sorted = this.#steps.subarray(0, count).toSorted()
    this.#usualTicks = sorted[count >> 1]!
    this.#gapTicks = sorted[Math.floor(count * 0.9)]! * GAP_STEPS
  }

  #step(stepTicks: number): void {
    this.playedTicks += stepTicks
    this.#steps[this.#remembered++ % STEPS_REMEMBERED] = stepTicks
    if (stepTicks <= this.#gapTicks) return
    this.gaps++
    this.missingTicks += stepTicks - this.#usualTicks
  }
}
