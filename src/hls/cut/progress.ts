/**
 * Duration of the media of the reference track so far, in which a timestamp discontinuity counts as at most 1 s. It
 * measures the wait for slower tracks.
 *
 * @module
 */
import { MAX_STEP_TICKS } from './timeline.ts'

export class Progress {
  #ticks = 0
  #latestTicks = 0

  /** Sum of all DTS differences, each at most 1 s, in ticks of 90 kHz. */
  get ticks(): number {
    return this.#ticks
  }

  push(dtsTicks: number): void {
    this.#ticks += Math.min(Math.abs(dtsTicks - this.#latestTicks), MAX_STEP_TICKS)
    this.#latestTicks = dtsTicks
  }
}
