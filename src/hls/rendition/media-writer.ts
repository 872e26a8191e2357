/**
 * Writer of the media of a rendition in one format, between the queues of its tracks and its files.
 *
 * @module
 */
import type { PartEnd, SegmentEnd, SegmentPlan } from '../cut/segment-plan.ts'
import type { InitSegment } from '../store/segment.ts'
import type { CarriedTracks } from './rendition-tracks.ts'
import type { QueuedPes } from './track-queues.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { SNAP_TICKS } from '../cut/timeline.ts'

/** Part as it was written. */
export interface WrittenPart {
  /** Bytes in order; empty for a gap. */
  readonly chunks: readonly Buffer[]
  /** INDEPENDENT */
  readonly independent: boolean
  /** DURATION or EXTINF where it is not the planned one. */
  readonly durationSec?: number
  /** Init segment, in formats that have one; undefined for a gap. */
  readonly map?: InitSegment
}

/** Segment as it was written. */
export interface WrittenSegment extends WrittenPart {
  /** Whether it begins at the planned random access point; undefined for a gap. */
  readonly aligned: boolean | undefined
  readonly startsWithKeyFrame: boolean
  /** Number of frames of the lead track, without repetitions. */
  readonly frames: number
  /** Tracks of the segment, with their parameters at its end; undefined for a gap. */
  readonly carried: CarriedTracks | undefined
}

/**
 * Calling order: `carry` tracks; `startTimeline`; for each segment `write` its PES packets and `advance`; `endPart` for
 * each part, if the format has parts; `endSegment`. Both take the end of the timeline, if no media of it is to come.
 */
export interface MediaWriter {
  /** Size of the open segment. */
  readonly sizeBytes: number
  /** Tracks of the open segment; undefined until it has media of the lead track. */
  readonly open: CarriedTracks | undefined
  /** Whether media was dropped since its format differs from that of its segment: it needs another timeline. */
  readonly needsTimeline: boolean
  /** Whether the format can express no frame of the track, as far as known. */
  readonly isInexpressible: boolean
  /**
   * Time by which the listed media of the open segment begins after the planned boundary: in CMAF, the first frame of audio
   * begins up to a frame after it. Dates tell it, since Shaka 5.2 loses its place after a discontinuity where they differ
   * by 1 ms from the sums of EXTINF.
   */
  readonly lateSec: number
  /**
   * @param carried  tracks of the next PES packets; undefined for none
   * @param isSame  whether they differ in their parameters alone, which the open segment adopts
   */
  carry(carried: CarriedTracks | undefined, isSame: boolean): void
  /** @param isReference  whether the lead track is the reference track, with which the timeline ends */
  startTimeline(plan: SegmentPlan, isReference: boolean): void
  /** Writes a PES packet, or holds what is in it. The first one of a segment is of the lead track, `isLead`. */
  write(queued: QueuedPes, isLead: boolean): void
  /** Writes what is held up to a time, inclusive. */
  advance(untilTicks: number): void
  /** Whether media after this time is held. */
  isPast(untilTicks: number): boolean
  /** Drops what is held up to a time, inclusive. */
  skip(untilTicks: number): void
  /** Ends a part; undefined for a format without parts. */
  endPart?(end: PartEnd, lastEndTicks?: number): WrittenPart
  /** Ends the last part too. */
  endSegment(plan: SegmentPlan, end: SegmentEnd, lastEndTicks?: number): WrittenSegment
  /** Writes packets that only carry a PCR, where the format has them. */
  writePackets?(chunks: readonly Buffer[]): void
}

/** Properties of the segment being written, from its PES packets of the lead track. */
export class SegmentContent {
  /** Tracks of the segment, with the parameters known so far. */
  carried: CarriedTracks
  readonly #first: PesUnit
  #frames = 0
  /** Whether a frame is presented before the first one and refers to an earlier segment. */
  #hasLeadingFrames = false

  /** @param first  first PES packet of the lead track */
  constructor(carried: CarriedTracks, first: PesUnit) {
    this.carried = carried
    this.#first = first
  }

  /** Number of frames of the lead track, without repetitions. */
  get frames(): number {
    return this.#frames
  }

  get startsWithKeyFrame(): boolean {
    const { track, randomAccess, damaged } = this.#first
    return track.kind === 'video' && randomAccess && !damaged
  }

  /** Adds the next PES packet of the lead track. */
  push({ startsFrame, ptsTicks, decodableLeading, repetition }: PesUnit): void {
    if (!startsFrame) return
    if (repetition === undefined) this.#frames++
    if (ptsTicks < this.#first.ptsTicks && !decodableLeading) this.#hasLeadingFrames = true
  }

  /** Whether the segment begins with a random access point and, if it has video, within 50 ms of the planned start. */
  isAligned({ keyTicks, startTicks }: SegmentPlan): boolean {
    const { randomAccess, ptsTicks } = this.#first
    if (!randomAccess) return false
    const offsetTicks = Math.abs(ptsTicks - (keyTicks ?? startTicks))
    return this.carried.video === undefined || offsetTicks <= SNAP_TICKS
  }

  /** Whether the segment begins as planned, and all its frames can be decoded without other segments. */
  isIndependent(plan: SegmentPlan): boolean {
    return this.isAligned(plan) && !this.#hasLeadingFrames
  }
}
