/**
 * The timestamps of one track as its units arrive: how they step, and which steps are none that an encoder should make.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'

/** A longer step, or one as far back, is another time line, and nothing of this one. */
export const JUMP_TICKS = 10 * TICKS_PER_SEC

/** Two units less than half a millisecond apart share a time: what muxers make of a time that stood still. */
const LEAST_STEP_TICKS = 45

/** The newest, from which is learned what is usual. */
const STEPS_REMEMBERED = 128

/** A step is a gap if it is so many times as long as nine in ten are: a variable frame rate is none. */
const GAP_STEPS = 2.5

/** `push` each unit; `learn` about once a second. All counters only go up. */
export class TrackTimes {
  units = 0
  /** Units decoded no later than the one before. */
  repeated = 0
  /** Units shown before they are decoded. */
  early = 0
  /** Steps that skip units, and how long it would have taken to show those. */
  gaps = 0
  missingTicks = 0
  /** Sum of all steps ahead. */
  playedTicks = 0
  jumps = 0
  /** Decoding times; NaN before the first unit. */
  firstTicks = NaN
  latestTicks = NaN
  /** A ring: longer ones push the older out. */
  readonly #steps = new Float64Array(STEPS_REMEMBERED)
  #remembered = 0
  #usualTicks = 0
  #gapTicks = Infinity

  push({ ptsTicks, dtsTicks }: PesUnit): void {
    if (this.units++ === 0) this.firstTicks = dtsTicks
    if (ptsTicks < dtsTicks) this.early++
    const stepTicks = dtsTicks - this.latestTicks
    this.latestTicks = dtsTicks
    if (stepTicks >= LEAST_STEP_TICKS && stepTicks < JUMP_TICKS) this.#step(stepTicks)
    else if (Math.abs(stepTicks) >= JUMP_TICKS) this.jumps++
    else if (stepTicks < LEAST_STEP_TICKS) this.repeated++
  }

  /** What lasts longer than usual from now on is judged by the newest steps. */
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
