/**
 * Writer of the media of a rendition in one format, between the queues of its tracks and its files.
 *
 * @module
 */
import type { PartEnd } from '../cut/part-plan.ts'
import type { SegmentEnd, SegmentPlan } from '../cut/segment-plan.ts'
import type { InitSegment } from '../store/init-segment.ts'
import type { CarriedTracks } from './carried-tracks.ts'
import type { QueuedUnit } from './unit-queue.ts'

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
  /** Number of frames of the lead track. */
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
  /**
   * @param carried  tracks of the next PES packets; undefined for none
   * @param isSame  whether they differ in their parameters alone, which the open segment adopts
   */
  carry(carried: CarriedTracks | undefined, isSame: boolean): void
  startTimeline(plan: SegmentPlan): void
  /** Writes a PES packet, or holds what is in it. The first one of a segment is of the lead track, `isLead`. */
  write(queued: QueuedUnit, isLead: boolean): void
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
