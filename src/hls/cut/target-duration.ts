/**
 * EXT-X-TARGETDURATION (RFC 8216bis 4.4.3.1): fixed by the first segments, then never changed or exceeded. Players use
 * the first value that they read, and Apple's players reject a longer segment.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/**
 * Number of segments that fix the target, with which the playlist appears. The first GOP may be shorter than later
 * GOPs, and players start three target durations before the end (RFC 8216bis 6.3.3).
 */
const SEGMENTS_TO_FIX = 3

/** Excess that does not raise the target: 60 frames at 29.97 Hz last 2.002 s, and a target of 3 s adds 3 s of delay. */
const ROUNDING_SLACK_SEC = 0.1

/** Permitted excess of EXTINF over the target: EXTINF is rounded to the nearest second before the comparison. */
const HEADROOM_SEC = 0.49

export class TargetDuration {
  readonly #maxSec: number
  #segments = 0
  /** Target for the segments so far, in whole seconds; final once it is fixed. */
  #candidateSec: number
  #fixed = false

  /**
   * @param segmentSec  minimum target, before it is rounded up
   * @param maxSegmentSec  maximum target, an integer
   */
  constructor(segmentSec: number, maxSegmentSec: number) {
    this.#maxSec = maxSegmentSec
    this.#candidateSec = Math.max(1, Math.ceil(segmentSec - ROUNDING_SLACK_SEC))
  }

  /** The target; before it is fixed, its maximum. */
  get sec(): number {
    return this.#fixed ? this.#candidateSec : this.#maxSec
  }

  /** Maximum duration of a segment. */
  get limitTicks(): number {
    return (this.sec + HEADROOM_SEC) * TICKS_PER_SEC
  }

  /**
   * Records the duration of a segment.
   *
   * @returns whether this segment fixes the target
   */
  addSegment(sec: number): boolean {
    const roundedSec = Math.ceil(sec - ROUNDING_SLACK_SEC)
    if (!this.#fixed)
      this.#candidateSec = Math.min(this.#maxSec, Math.max(this.#candidateSec, roundedSec))
    return ++this.#segments >= SEGMENTS_TO_FIX && this.fix()
  }

  /**
   * Fixes the target by the segments so far, if there are any.
   *
   * @returns whether this call fixes it
   */
  fix(): boolean {
    if (this.#fixed) return false
    this.#fixed = this.#segments > 0
    return this.#fixed
  }
}
