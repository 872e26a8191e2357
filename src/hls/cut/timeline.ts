/**
 * One unbroken run of timestamps, from the random access point where it starts to the next discontinuity, on the clock of
 * its reference track: the video, or the audio where there is no video.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Smaller steps back are the encoder's rounding and reordering. */
export const MAX_STEP_BACK_TICKS = 1 * TICKS_PER_SEC

/** Media further away from the reference track than this is on another timeline. */
export const MAX_SKEW_TICKS = 10 * TICKS_PER_SEC

/** A key frame or splice point this close to a boundary belongs to it: half a frame off, or rounded. */
export const SNAP_TICKS = 0.05 * TICKS_PER_SEC

const USUAL_FRAME_TICKS = TICKS_PER_SEC / 30
const FRAMES_REMEMBERED = 32

export class Timeline {
  /** Presentation time of its first unit. */
  readonly startTicks: number

  #latestTicks: number
  #lastShownTicks: number
  #reorderTicks: number
  #frames = 0
  /** Durations of the newest frames, a ring. */
  readonly #durations: number[] = []

  constructor(first: PesUnit) {
    this.startTicks = first.ptsTicks
    this.#latestTicks = first.ptsTicks
    this.#lastShownTicks = first.ptsTicks
    this.#reorderTicks = first.ptsTicks - first.dtsTicks
  }

  /** Time of the newest reference unit. */
  get latestTicks(): number {
    return this.#latestTicks
  }

  /** Probable duration of the next frame: the shorter of the newest two, for one alone may be a gap. */
  get frameTicks(): number {
    const newest = this.#durations[(this.#frames - 1) % FRAMES_REMEMBERED] ?? USUAL_FRAME_TICKS
    const second = this.#durations[(this.#frames - 2) % FRAMES_REMEMBERED] ?? newest
    return Math.min(newest, second)
  }

  /** End of the run if nothing follows: the last frame has the median duration. */
  get endTicks(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b)
    return this.#lastShownTicks + (sorted[sorted.length >> 1] ?? USUAL_FRAME_TICKS)
  }

  /**
   * Time at which a segment that starts with this reference unit begins: its presentation time if a decoder can start
   * there. Else its decoding time, moved by as much as frames are reordered, since frames that follow it may be shown
   * before it.
   */
  timeOf(unit: PesUnit): number {
    return unit.randomAccess ? unit.ptsTicks : unit.dtsTicks + this.#reorderTicks
  }

  /** Whether a reference unit does not continue the run: it lies back, or so far ahead that no segment spans the gap. */
  breaksAt(unit: PesUnit, limitTicks: number): boolean {
    const stepTicks = this.timeOf(unit) - this.#latestTicks
    return stepTicks < -MAX_STEP_BACK_TICKS || stepTicks > limitTicks
  }

  /** Advances to the next reference unit. */
  advance(unit: PesUnit): void {
    const ticks = this.timeOf(unit)
    this.#lastShownTicks = Math.max(this.#lastShownTicks, unit.ptsTicks)
    if (unit.randomAccess) this.#reorderTicks = unit.ptsTicks - unit.dtsTicks
    if (ticks <= this.#latestTicks) return
    this.#durations[this.#frames++ % FRAMES_REMEMBERED] = ticks - this.#latestTicks
    this.#latestTicks = ticks
  }
}
