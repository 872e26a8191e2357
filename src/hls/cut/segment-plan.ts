/**
 * Boundaries and numbers of segments and their parts, the same for all renditions.
 *
 * @module
 */

/** Media sequence number and discontinuity sequence number. */
export interface SequenceNumbers {
  readonly media: number
  readonly discontinuity: number
}

/** Properties of a segment that are fixed when it begins. Ticks are of 90 kHz, unwrapped. */
export interface SegmentPlan {
  readonly mediaSequence: number
  readonly startTicks: number
  /** PTS of the random access point that starts the segment; undefined for a start inside a GOP. */
  readonly keyTicks: number | undefined
  /** PTS of the first PES packet of the timeline. */
  readonly timelineStartTicks: number
  /** Whether this is the first segment of its timeline. */
  readonly startsTimeline: boolean
  /** EXT-X-PROGRAM-DATE-TIME, milliseconds since 1970. */
  readonly programDateTimeMs: number
  readonly discontinuity: boolean
  readonly discontinuitySequence: number
}

/** Properties of a segment that are fixed when it ends. */
export interface SegmentEnd {
  /** End of the segment in presentation time, and start of the next segment of the timeline. */
  readonly endTicks: number
  /** Latest time of a PES packet in the segment: `endTicks` - 1; at the end of a timeline, 1 s after its last frame. */
  readonly untilTicks: number
  /** EXTINF */
  readonly durationSec: number
  /** Maximum of EXTINF. */
  readonly maxSec: number
  /** EXT-X-PROGRAM-DATE-TIME of the next segment; undefined if that starts with a discontinuity. */
  readonly nextDateTimeMs: number | undefined
}

/** Properties that a playlist lists with a segment, or before its first part. */
type ListedProperties = Pick<
  SegmentPlan,
  'mediaSequence' | 'programDateTimeMs' | 'discontinuity' | 'discontinuitySequence'
>

/** @param lateSec  time by which the listed media of a rendition begins after the planned boundary */
export function listedProperties(plan: SegmentPlan, lateSec = 0): ListedProperties {
  const { mediaSequence, discontinuity, discontinuitySequence } = plan
  const programDateTimeMs = plan.programDateTimeMs + lateSec * 1000
  return { mediaSequence, programDateTimeMs, discontinuity, discontinuitySequence }
}

/** Numbers segments and counts discontinuities. */
export class SequenceCounter {
  readonly #start: SequenceNumbers
  #segments = 0
  #timelines = 0
  #startsTimeline = false

  /**
   * @param start  numbers of the first segment
   * @param continued  whether it follows segments of an earlier process, so that it starts with a discontinuity
   */
  constructor(start: SequenceNumbers = { media: 0, discontinuity: 0 }, continued = false) {
    this.#timelines = continued ? 1 : 0
    this.#start = { ...start, discontinuity: start.discontinuity - this.#timelines }
  }

  get discontinuities(): number {
    return Math.max(0, this.#timelines - 1)
  }

  startTimeline(): void {
    this.#timelines++
    this.#startsTimeline = true
  }

  /** Takes the numbers of the next segment. */
  next(): Pick<
    SegmentPlan,
    'mediaSequence' | 'startsTimeline' | 'discontinuity' | 'discontinuitySequence'
  > {
    const startsTimeline = this.#startsTimeline
    this.#startsTimeline = false
    return {
      mediaSequence: this.#start.media + this.#segments++,
      startsTimeline,
      discontinuity: startsTimeline && this.discontinuities > 0,
      discontinuitySequence: this.#start.discontinuity + this.discontinuities,
    }
  }
}

/** Properties of a part that are fixed when it ends. It starts where the previous part of its segment ends. */
export interface PartEnd {
  /** Number of the part in the stream. */
  readonly serial: number
  /** End of the part, and start of the next one. */
  readonly endTicks: number
  /** Latest time of a PES packet in the part, see `SegmentEnd`. */
  readonly untilTicks: number
  /** DURATION */
  readonly durationSec: number
  /** PART-TARGET */
  readonly maxSec: number
  /** Maximum duration of its segment. */
  readonly maxSegmentSec: number
  /** Whether the next part begins another timeline. */
  readonly endsTimeline: boolean
}
