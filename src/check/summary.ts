/**
 * Figures over a whole check, for the rules that judge at its end.
 *
 * @module
 */
import type { InspectedTrack } from './media/inspected-media.ts'
import type { MediaPlaylist } from './playlist/media-playlist.ts'
import type { ListedVariant, MultivariantPlaylist } from './playlist/multivariant-playlist.ts'

/** What was loaded of one media playlist. */
export interface RenditionSummary {
  /** Newest version. */
  readonly playlist: MediaPlaylist
  /** Variants whose own playlist it is; empty for alternative renditions. */
  readonly variants: readonly ListedVariant[]
  /** Tracks of the newest segment or part, as inspected. */
  readonly tracks: readonly InspectedTrack[]
  /** Most bits per second of any contiguous segments with a sum of 0.5 to 1.5 target durations (4.1); 0 without. */
  readonly peakBps: number
  /** Bits per second of all segments loaded. */
  readonly averageBps: number
  readonly mediaSec: number
}

export interface Summary {
  readonly multivariant: MultivariantPlaylist | undefined
  readonly renditions: readonly RenditionSummary[]
  readonly durationSec: number
}
