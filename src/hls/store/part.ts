/**
 * Partial segment of low-latency HLS (RFC 8216bis 3.2): a stretch of a segment that a player may fetch before the
 * segment is complete.
 *
 * @module
 */
import type { RenditionName } from '../file-names.ts'
import type { InitSegment } from './init-segment.ts'

/** Repeats the properties of its segment that a playlist lists before the first part. */
export interface Part {
  readonly mediaSequence: number
  readonly programDateTimeMs: number
  readonly discontinuity: boolean
  readonly discontinuitySequence: number
  /** Rendition whose playlist lists the part. */
  readonly rendition: RenditionName
  /** Number of the part in its stream: the same in all renditions, and 1 more than in the previous part. */
  readonly serial: number
  /** Unique in the process. */
  readonly uri: string
  /** URI of the segment that the part belongs to. */
  readonly segmentUri: string
  /** CMAF fragment: the segment has the same buffers. Empty for a gap (GAP=YES). */
  readonly chunks: readonly Buffer[]
  /** Init segment; undefined for a gap. */
  readonly map?: InitSegment
  /** DURATION, at most PART-TARGET. */
  readonly durationSec: number
  /** INDEPENDENT: whether it starts with a sync sample. */
  readonly independent: boolean
}
