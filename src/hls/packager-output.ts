/**
 * Options, outputs and counters of the packager.
 *
 * @module
 */
import type { SlabPool } from '../mpegts/mux/slab-pool.ts'
import type { CutPlannerOptions, CutPlannerStats } from './cut/cut-decision.ts'
import type { DateRange } from './date-range.ts'
import type { Format, RenditionName } from './file-names.ts'
import type { TrackPolicy } from './rendition/carried-tracks.ts'
import type { SegmentStart } from './rendition/segment-start.ts'
import type { SourceFact } from './source-fact.ts'
import type { TargetDurations } from './target-durations.ts'
import type { WriterOutput } from './rendition/writer-output.ts'

export interface PackagerOptions extends Omit<CutPlannerOptions, 'maxSegmentBytes'> {
  /** Identifier of this run of the stream, from start to stop: part of each segment URI, never reused. */
  readonly epoch: string
  /** Formats of the segments, in order; default: transport stream alone. Only CMAF has parts. */
  readonly formats?: readonly Format[] | undefined
  /** Tracks to carry; default `compatible`. */
  readonly tracks?: TrackPolicy
  /** Maximum size of a segment; default 64 MiB. */
  readonly maxSegmentBytes?: number
  /** Pool of memory for segments; default: a private pool without reuse, so that no segment needs to be released. */
  readonly slabs?: SlabPool
  /** Renditions of the media in `earlier`: gaps while the program lacks their tracks. */
  readonly renditions?: readonly RenditionName[]
}

/**
 * - `start`: precedes all parts of the segment. It does not name renditions that join the segment later.
 * - `segment`: for each media sequence number, the segment of the first rendition comes first.
 * - `part`: precedes its segment. Parts with the same serial are output together.
 * - `renditions`: all renditions of the presentation from now on: the main one first or, without transport stream, the
 *   first of CMAF. Precedes the first segment of a new rendition. A removed rendition still has segments; they are gaps
 *   if the program lacks its track.
 * - `target`: EXT-X-TARGETDURATION and PART-TARGET, fixed from now on. Output once, after the third segment of the first
 *   rendition, with low latency the second (a later one if disconnects cut all of them short), or with `settle` or `end`.
 * - `date-range`: output at its start time, before the segment that is open at that time; again with each change.
 * - `fact`: output each time it is observed.
 */
export type PackagerOutput =
  | WriterOutput
  | { readonly type: 'start'; readonly start: SegmentStart }
  | { readonly type: 'renditions'; readonly renditions: readonly RenditionName[] }
  | ({ readonly type: 'target' } & TargetDurations)
  | { readonly type: 'date-range'; readonly dateRange: DateRange }
  | { readonly type: 'fact'; readonly fact: SourceFact }

/** Counters since the packager was created. */
export interface PackagerStats extends CutPlannerStats {
  /** Damaged PES packets of the main rendition, dropped: key frames, audio and metadata. */
  readonly damagedUnits: number
  /** Audio PES packets of the main rendition that are in no segment, mostly for lack of video at their time. */
  readonly strayAudioUnits: number
  /** Metadata PES packets of the main rendition that are in no segment. */
  readonly strayDataUnits: number
  /** PES packets of the main rendition dropped because a segment would have exceeded its maximum size. */
  readonly oversizeUnits: number
  /** PES packets of the other renditions that are in no segment. */
  readonly strayUnits: number
}
