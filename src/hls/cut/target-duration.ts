/**
 * EXT-X-TARGETDURATION (RFC 8216bis 4.4.3.1): fixed by the first segments, then never changed or exceeded. Players use
 * the first value that they read, and Apple's players reject a longer segment.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Number of segments that fix the target even if all were cut short: the memory they take is bounded. */
const MAX_SEGMENTS_TO_FIX = 6

/**
 * Excess that does not raise the target, as EXTINF is rounded to the nearest second before the comparison; the rest of that
 * half second is for GOPs that are some frames longer. http-streaming 3.17 takes the open segment to last for the target
 * (`updateStorage_` of media-sequence-sync.js), begins PART-HOLD-BACK before that end, and gives up after ten parts
 * without a key frame (`checkSegmentDownloads_` of playback-watcher.js): with a target above the GOP it would begin behind
 * the next key frame, and wait for the one after it.
 */
const ROUNDING_SLACK_SEC = 0.4

/** Permitted excess of EXTINF over the target: EXTINF is rounded to the nearest second before the comparison. */
const HEADROOM_SEC = 0.49

export class TargetDuration {
  readonly #maxSec: number
  readonly #segmentsToFix: number
  #segments = 0
  #wholeSegments = 0
  /** Target for the segments so far, in whole seconds; final once it is fixed. */
  #candidateSec: number
  #fixed = false

  /**
   * @param segmentSec  minimum target, before it is rounded up
   * @param maxSegmentSec  maximum target, an integer
   * @param segmentsToFix  number of segments that fix the target
   * @param fixedSec  target that is fixed already
   */
  constructor(segmentSec: number, maxSegmentSec: number, segmentsToFix: number, fixedSec?: number) {
    if (!(segmentSec > 0 && segmentSec <= maxSegmentSec && Number.isInteger(maxSegmentSec))) {
      throw new RangeError(
        `segmentSec is ${segmentSec} and maxSegmentSec ${maxSegmentSec}: expected 0 < segmentSec <= maxSegmentSec, the latter a whole number`,
      )
    }
    this.#maxSec = maxSegmentSec
    this.#segmentsToFix = segmentsToFix
    this.#candidateSec = fixedSec ?? Math.max(1, Math.ceil(segmentSec - ROUNDING_SLACK_SEC))
    this.#fixed = fixedSec !== undefined
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
   * Records the duration of a segment. One that a disconnect cut short says nothing about the GOPs to come: without a
   * whole one it fixes no target.
   *
   * @returns whether this segment fixes the target
   */
  addSegment(sec: number, { cutShort }: { readonly cutShort: boolean }): boolean {
    this.#include(sec)
    this.#segments++
    if (!cutShort) this.#wholeSegments++
    const minSegments = this.#wholeSegments > 0 ? this.#segmentsToFix : MAX_SEGMENTS_TO_FIX
    return this.#segments >= minSegments && this.fix()
  }

  /**
   * Fixes the target by the segments so far, if one is whole.
   *
   * @param openSec  duration of the open segment so far
   * @returns whether this call fixes it
   */
  settle(openSec: number): boolean {
    if (this.#wholeSegments === 0) return false
    this.#include(openSec)
    return this.fix()
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

  #include(sec: number): void {
    const roundedSec = Math.ceil(sec - ROUNDING_SLACK_SEC)
    if (!this.#fixed)
      this.#candidateSec = Math.min(this.#maxSec, Math.max(this.#candidateSec, roundedSec))
  }
}
