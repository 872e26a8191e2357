/**
 * Amount of media that the reference track has sent, whatever its timestamps do: the clock of the wait for slower tracks.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** A longer step of the timestamps, ahead or back, is a jump. */
const MAX_STEP_TICKS = 1 * TICKS_PER_SEC

export class Progress {
  #ticks = 0
  #latestTicks = 0

  /** Sum of all steps. */
  get ticks(): number {
    return this.#ticks
  }

  push(dtsTicks: number): void {
    this.#ticks += Math.min(Math.abs(dtsTicks - this.#latestTicks), MAX_STEP_TICKS)
    this.#latestTicks = dtsTicks
  }
}
