/**
 * EXT-X-TARGETDURATION (RFC 8216 4.3.3.1): fixed when the first segment closes, never changed and never exceeded
 * afterwards. Players keep the first value they see, and Apple's refuse a longer segment.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** 60 frames at 29.97 Hz last 2.002 s: no reason for a target of 3 s, which would keep players 3 s further behind. */
const ROUNDING_SLACK_SEC = 0.1

/** EXTINF is compared after rounding to the nearest second. */
const HEADROOM_SEC = 0.49

export class TargetDuration {
  readonly #minSec: number
  readonly #maxSec: number
  #sec: number | undefined

  /**
   * @param segmentSec  the target is at least this
   * @param maxSegmentSec  and at most this, a whole number
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

  /** A segment of this duration closes. The first one fixes the target: rounded up, and at least as configured. */
  fix(durationSec: number): void {
    const roundedSec = Math.ceil(Math.max(this.#minSec, durationSec) - ROUNDING_SLACK_SEC)
    this.#sec ??= Math.min(this.#maxSec, Math.max(1, roundedSec))
  }
}
