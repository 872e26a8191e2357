/**
 * EXT-X-TARGETDURATION (RFC 8216 4.3.3.1): fixed at the end of the first segment, then never changed or exceeded.
 * Players keep the first value they read, and Apple's reject a longer segment.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Excess that does not raise the target: 60 frames at 29.97 Hz last 2.002 s; a target of 3 s adds 3 s of delay. */
const ROUNDING_SLACK_SEC = 0.1

/** Permitted excess of EXTINF over the target: EXTINF is rounded to the nearest second before the comparison. */
const HEADROOM_SEC = 0.49

export class TargetDuration {
  readonly #minSec: number
  readonly #maxSec: number
  #sec: number | undefined

  /**
   * @param segmentSec  minimum target
   * @param maxSegmentSec  maximum target, an integer
   */
  constructor(segmentSec: number, maxSegmentSec: number) {
    this.#minSec = segmentSec
    this.#maxSec = maxSegmentSec
  }

  get fixed(): boolean {
    return this.#sec !== undefined
  }

  /** The target; before it is fixed, its maximum. */
  get sec(): number {
    return this.#sec ?? this.#maxSec
  }

  /** Maximum duration of a segment. */
  get limitTicks(): number {
    return (this.sec + HEADROOM_SEC) * TICKS_PER_SEC
  }

  /** Records the duration of a segment. The first one fixes the target: rounded up, and at least `segmentSec`. */
  fix(durationSec: number): void {
    const roundedSec = Math.ceil(Math.max(this.#minSec, durationSec) - ROUNDING_SLACK_SEC)
    this.#sec ??= Math.min(this.#maxSec, Math.max(1, roundedSec))
  }
}
