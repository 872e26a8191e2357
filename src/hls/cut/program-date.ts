/**
 * EXT-X-PROGRAM-DATE-TIME (RFC 8216bis 4.4.4.6): the wall clock at the start of a timeline, then advanced by EXTINF.
 *
 * The clocks of encoder and server drift apart: 50 ppm are 4.3 s per day. So dates follow the server's clock, in few steps:
 * Shaka 5.2 does not find a segment again that begins 1 ms from where EXTINF has it. If it looks for that one while an
 * encoder comes back after more than 1 s, it takes the absence from all dates again with each reload, and stands still.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Drift that is made good at once, with a segment: once in 200 s at 50 ppm, and shorter than a frame. */
const STEP_MS = 10

/** Smallest difference that is a jump of the wall clock, a burst or a pause instead of drift: dates stay. */
const MAX_DRIFT_MS = 1000

/** Number of newest random access points compared. The network hardly ever delays all, so the smallest lag counts. */
const ARRIVALS = 16

/** Inputs: `anchor` when a timeline begins, `arrive` at each random access point, `advance` after each segment. */
export class ProgramDate {
  #startMs: number
  /** Arrival times of the newest random access points minus their dates without steps, oldest first. */
  #lagsMs: number[] = []
  /** Smallest lag of the first ones; undefined until there are enough. */
  #usualMs: number | undefined
  /** Sum of all steps since the anchor. */
  #stepsMs = 0

  /** @param earliestMs  earliest date, milliseconds since 1970 */
  constructor(earliestMs = 0) {
    this.#startMs = earliestMs
  }

  /** Start of the open segment, milliseconds since 1970. */
  get startMs(): number {
    return this.#startMs
  }

  /**
   * Date within the open segment, milliseconds since 1970.
   *
   * @param ticks  media time from the start of the segment, 90 kHz
   */
  after(ticks: number): number {
    return this.#startMs + (ticks / TICKS_PER_SEC) * 1000
  }

  /** Starts a timeline at the wall clock or, if later, at the end of the previous segment: dates never overlap. */
  anchor(wallMs: number): void {
    this.#startMs = Math.max(wallMs, this.#startMs)
    this.#lagsMs = [wallMs - this.#startMs]
    this.#usualMs = undefined
    this.#stepsMs = 0
  }

  /** @param sinceStartSec  media time from the start of the open segment to the random access point that arrived */
  arrive(sinceStartSec: number, wallMs: number): void {
    this.#lagsMs.push(wallMs - (this.#startMs - this.#stepsMs + sinceStartSec * 1000))
    if (this.#lagsMs.length > ARRIVALS) this.#lagsMs.shift()
    if (this.#lagsMs.length === ARRIVALS) this.#usualMs ??= Math.min(...this.#lagsMs)
  }

  /** Advances to the next segment of the timeline. */
  advance(durationSec: number): void {
    const stepMs = this.#dueStepMs()
    this.#stepsMs += stepMs
    this.#startMs += durationSec * 1000 + stepMs
  }

  #dueStepMs(): number {
    const driftMs = Math.min(...this.#lagsMs) - (this.#usualMs ?? Infinity) - this.#stepsMs
    const isDrift = Math.abs(driftMs) >= STEP_MS && Math.abs(driftMs) < MAX_DRIFT_MS
    return isDrift ? Math.sign(driftMs) * STEP_MS : 0
  }
}
