/**
 * Durations that all playlists of a stream have in common and that never change.
 *
 * @module
 */

/** Target durations that a playlist announces. */
export interface TargetDurations {
  /** EXT-X-TARGETDURATION */
  readonly targetSec: number
  /** EXT-X-PART-INF: PART-TARGET; undefined for playlists without parts. */
  readonly partTargetSec?: number | undefined
}
