/**
 * The timestamps of one track as its frames arrive: regular steps, gaps, repetitions.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'

/** A longer step, ahead or back, leads to another timeline. */
export const JUMP_TICKS = 10 * TICKS_PER_SEC

/** Two frames less than half a millisecond apart share a time: muxers make this of a time that stood still. */
const MIN_STEP_TICKS = 45

/** Newest steps, from which the usual one is learned. */
const STEPS_REMEMBERED = 128

/** A step is a gap if it is so many times as long as the 90th percentile: a variable frame rate has none. */
const GAP_STEPS = 2.5

/** `push` each frame; `learn` about once a second. Counters only go up. */
export class TrackTimes {
  frames = 0
  /** Frames with a DTS no later than the one before. */
  repeated = 0
  /** Frames with a PTS before their DTS. */
  early = 0
  /** Steps that skip frames, and the time that these would have taken. */
  gaps = 0
  missingTicks = 0
  /** Sum of all steps ahead. */
  playedTicks = 0
  /** DTS; NaN before the first frame. */
  firstTicks = NaN
  latestTicks = NaN
  /** Newest steps, a ring. */
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

  /** Learns from the newest steps how long a gap is from now on. */
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
