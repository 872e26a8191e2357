/**
 * Facts about a source that packaging finds, with their figures. The receiver decides which of them are warnings.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'

export type SourceFact =
  /** A segment was cut inside a GOP at its maximum duration. `gopSec`: duration of the GOP so far. */
  | { readonly code: 'GOP_TOO_LONG'; readonly gopSec: number; readonly targetSec: number }
  /** A segment was cut inside a GOP at its maximum size. */
  | { readonly code: 'SEGMENT_TOO_LARGE'; readonly maxBytes: number; readonly targetSec: number }
  /** Video arrives without a random access point for longer than the maximum duration of a segment. */
  | { readonly code: 'NO_KEY_FRAME'; readonly awaitedSec: number }
  /** Timestamp discontinuity of the reference track. `jumpSec` is negative for a step back. */
  | { readonly code: 'TIMESTAMP_JUMP'; readonly jumpSec: number }
  /** Number of announced splice points that were dropped before the media reached their time. */
  | { readonly code: 'SPLICE_MISSED'; readonly points: number }
  /** Number of splice points for which the playlist had no room. */
  | { readonly code: 'TOO_MANY_SPLICES'; readonly points: number }
  /** Audio is dropped because its timestamps are too far from those of the video. */
  | { readonly code: 'AUDIO_OUT_OF_STEP'; readonly targetSec: number }
  /** A track that the PMT lists sends no media. */
  | { readonly code: 'TRACK_SILENT'; readonly track: Track }
  /** Number of variants whose key frames are not aligned with those of the main video. */
  | { readonly code: 'VARIANTS_NOT_ALIGNED'; readonly variants: number; readonly targetSec: number }
  /** Tracks that are not carried: players fail on them or, with `tooMany`, they exceed the maximum number. */
  | {
      readonly code: 'TRACKS_LEFT_OUT'
      readonly tracks: readonly Track[]
      readonly tooMany: boolean
    }
  /** Audio tracks that are not carried: the codec of the default audio does not have their languages. */
  | { readonly code: 'AUDIO_CODECS_DIFFER'; readonly tracks: readonly Track[] }
  /** The audio that the presentation started with has ended and is replaced by silence. */
  | { readonly code: 'AUDIO_GONE' }
  /** Audio is dropped because the presentation started without audio. */
  | { readonly code: 'AUDIO_TOO_LATE' }
