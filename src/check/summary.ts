/**
 * Figures over a whole check, for the rules that judge at its end.
 *
 * @module
 */
import type { InspectedMedia, InspectedTrack } from './media/inspected-media.ts'
import type { MediaPlaylist } from './playlist/media-playlist.ts'
import type {
  ListedRendition,
  ListedVariant,
  MultivariantPlaylist,
} from './playlist/multivariant-playlist.ts'

/** What was loaded of one media playlist. */
export interface RenditionSummary {
  /** Newest version. */
  readonly playlist: MediaPlaylist
  /** Variants whose own playlist it is; empty for alternative renditions. */
  readonly variants: readonly ListedVariant[]
  /** Alternative renditions whose playlist it is. */
  readonly alternatives: readonly ListedRendition[]
  /** Tracks of the newest segment or part, as inspected. */
  readonly tracks: readonly InspectedTrack[]
  /** Most bits per second of any contiguous segments with a sum of 0.5 to 1.5 target durations (4.1); 0 without. */
  readonly peakBps: number
  /** Bits per second of all segments loaded. */
  readonly averageBps: number
  readonly mediaSec: number
  /** Newest segment of each timeline with its date, by discontinuity sequence number. */
  readonly marks: ReadonlyMap<number, DatedMedia>
}

/** Segment, or its first part, with its EXT-X-PROGRAM-DATE-TIME, given or advanced by EXTINF. */
export interface DatedMedia {
  readonly media: InspectedMedia
  /** Milliseconds since 1970. */
  readonly dateTimeMs: number
}

export interface Summary {
  readonly multivariant: MultivariantPlaylist | undefined
  readonly renditions: readonly RenditionSummary[]
  readonly durationSec: number
}
