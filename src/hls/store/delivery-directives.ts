/**
 * Delivery directives of a playlist request, and whether a playlist satisfies them (RFC 8216bis 6.2.5).
 *
 * @module
 */

/** Delivery directives of a playlist request (RFC 8216bis 6.2.5), and that of an edge. */
export interface DeliveryDirectives {
  /** `_HLS_msn`: media sequence number that the playlist must have reached. */
  readonly mediaSequence?: number | undefined
  /** `_HLS_part`: index of a part of that segment, from 0; ignored without `mediaSequence`. */
  readonly part?: number | undefined
  /** `_HLS_skip`: whether a playlist delta update will do. */
  readonly skip?: boolean | undefined
  /** Version that the reader has: it waits for another one. Edges ask so, of every playlist. */
  readonly otherThan?: string | undefined
}

/**
 * - `current`: can be read now.
 * - `future`: a reader may wait for it.
 * - `beyond`: too far in the future to wait for.
 * - `unknown`: neither exists nor is announced.
 */
export type Availability = 'current' | 'future' | 'beyond' | 'unknown'

/** Newest media in a low-latency playlist. */
export interface PlaylistPosition {
  /** Media sequence number of the last complete segment. */
  readonly mediaSequence: number
  /** Number of parts of that segment; Infinity if an earlier process made them. */
  readonly parts: number
  /** Number of listed parts of the segment after it, which is not complete. */
  readonly nextParts: number
  /** EXT-X-PART-INF: PART-TARGET */
  readonly partTargetSec: number
  /** URI of EXT-X-PRELOAD-HINT, if there is one. */
  readonly hint: string | undefined
  /** Whether the playlist has a delta update. */
  readonly skippable: boolean
}

/** Number of segments that a request may be ahead of the last complete one (RFC 8216bis 6.2.5.2). */
const MAX_ADVANCE_SEGMENTS = 2

export function availabilityAt(
  position: PlaylistPosition,
  { mediaSequence, part }: DeliveryDirectives,
): Availability {
  if (mediaSequence === undefined) return 'current'
  const ahead = mediaSequence - position.mediaSequence
  if (ahead > MAX_ADVANCE_SEGMENTS) return 'beyond'
  if (ahead < 0) return 'current'
  if (ahead === 0 && (part === undefined || part < position.parts)) return 'current'
  // A part past the end of a complete segment is the first part of the next segment.
  const index = ahead === 0 ? 0 : part
  if (index === undefined) return 'future'
  const listed = ahead <= 1 ? position.nextParts : 0
  if (index < listed) return 'current'
  return index - (listed - 1) > maxAdvanceParts(position) ? 'beyond' : 'future'
}

/** Advance Part Limit: number of parts that a request may be ahead of the last part (RFC 8216bis 6.2.5.2). */
function maxAdvanceParts({ partTargetSec }: PlaylistPosition): number {
  return partTargetSec < 1 ? Math.ceil(3 / partTargetSec) : 3
}
