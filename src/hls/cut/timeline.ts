/**
 * One unbroken run of timestamps, from the random access point where it starts to the next seam, on the clock of its
 * reference track: the video, or the audio where there is no video.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/demux/demuxer-output.ts'

export const TICKS_PER_SEC = 90_000

/** Timestamps that go back by less are the encoder's rounding and reordering. */
export const MOST_STEP_BACK_TICKS = 1 * TICKS_PER_SEC

/** Audio further away from the video than this is on another time line. */
export const MOST_SKEW_TICKS = 10 * TICKS_PER_SEC

const USUAL_FRAME_TICKS = TICKS_PER_SEC / 30
const FRAMES_REMEMBERED = 32

export class Timeline {
  /** Presentation time of its first unit. */
  readonly startTicks: number
  /** Presentation time of the audio placed last, where audio is not the reference. */
  audioTicks: number | undefined

  #latestTicks: number
  #lastShownTicks: number
  #reorderTicks: number
  #frames = 0
  /** How long each of the newest frames lasted, a ring. */
  readonly #frameTicks: number[] = []

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

  /** Where the run ends if nothing follows: the unit shown last lasts as long as most did. */
  get endTicks(): number {
    const sorted = this.#frameTicks.toSorted((a, b) => a - b)
    return this.#lastShownTicks + (sorted[sorted.length >> 1] ?? USUAL_FRAME_TICKS)
  }

  /**
   * Where a segment that starts with this reference unit begins: at its presentation time if a decoder can start
   * there. Else at its decoding time, moved by as much as pictures are reordered, since pictures that follow it may be
   * shown before it.
   */
  timeOf(unit: PesUnit): number {
    return unit.randomAccess ? unit.ptsTicks : unit.dtsTicks + this.#reorderTicks
  }

  /** Whether a reference unit does not continue the run: it lies back, or so far ahead that no segment spans the gap. */
  breaksAt(unit: PesUnit, limitTicks: number): boolean {
    const stepTicks = this.timeOf(unit) - this.#latestTicks
    return stepTicks < -MOST_STEP_BACK_TICKS || stepTicks > limitTicks
  }

  /** Whether audio of that time can belong to the pictures of now. */
  isNear(ptsTicks: number): boolean {
    return Math.abs(ptsTicks - this.#latestTicks) <= MOST_SKEW_TICKS
  }

  /** Goes on to the next reference unit. */
  advance(unit: PesUnit): void {
    const ticks = this.timeOf(unit)
    this.#lastShownTicks = Math.max(this.#lastShownTicks, unit.ptsTicks)
    if (unit.randomAccess) this.#reorderTicks = unit.ptsTicks - unit.dtsTicks
    if (ticks <= this.#latestTicks) return
    this.#frameTicks[this.#frames++ % FRAMES_REMEMBERED] = ticks - this.#latestTicks
    this.#latestTicks = ticks
  }
}
