/**
 * Facts about a source that its segments show, with their figures. Which of them are warnings, and in which words, is for
 * whoever takes them.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'

export type SourceFact =
  /** A segment was cut inside a GOP, which has lasted for `gopSec` so far, so as not to exceed the target duration. */
  | { readonly code: 'GOP_TOO_LONG'; readonly gopSec: number; readonly targetSec: number }
  /** A segment was cut inside a GOP, since it has no room for more. */
  | { readonly code: 'SEGMENT_TOO_LARGE'; readonly maxBytes: number; readonly targetSec: number }
  /** Video arrives, but no random access point for longer than a segment may last. */
  | { readonly code: 'NO_KEY_FRAME'; readonly awaitedSec: number }
  /** The timestamps of the reference track left their timeline; negative: they went back. */
  | { readonly code: 'TIMESTAMP_JUMP'; readonly jumpSec: number }
  /** The times of so many announced splice points never came. */
  | { readonly code: 'SPLICE_MISSED'; readonly points: number }
  /** So many splice points found no room in the playlist. */
  | { readonly code: 'TOO_MANY_SPLICES'; readonly points: number }
  /** Audio is dropped, since its timestamps are too far from those of the video. */
  | { readonly code: 'AUDIO_OUT_OF_STEP'; readonly targetSec: number }
  /** Nothing arrives of a track that the PMT lists. */
  | { readonly code: 'TRACK_SILENT'; readonly track: Track }
  /** So many variants have other key frames than the main video. */
  | { readonly code: 'VARIANTS_NOT_ALIGNED'; readonly variants: number; readonly targetSec: number }
  /** Tracks that players fail on; `tooMany`: more tracks than a presentation holds. */
  | {
      readonly code: 'TRACKS_LEFT_OUT'
      readonly tracks: readonly Track[]
      readonly tooMany: boolean
    }
  /** The audio that the presentation began with has ended; silence takes its place. */
  | { readonly code: 'SOUND_GONE' }
  /** Audio is dropped, since the presentation began without. */
  | { readonly code: 'SOUND_TOO_LATE' }
