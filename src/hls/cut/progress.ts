/**
 * Duration of the media of the reference track so far, without timestamp discontinuities: the clock for waiting on
 * slower tracks.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Maximum that one DTS difference adds; a larger difference is a timestamp discontinuity. */
const MAX_STEP_TICKS = 1 * TICKS_PER_SEC

export class Progress {
  #ticks = 0
  #latestTicks = 0

  /** Sum of all steps, 90 kHz. */
  get ticks(): number {
    return this.#ticks
  }

  push(dtsTicks: number): void {
    this.#ticks += Math.min(Math.abs(dtsTicks - this.#latestTicks), MAX_STEP_TICKS)
    this.#latestTicks = dtsTicks
  }
}
