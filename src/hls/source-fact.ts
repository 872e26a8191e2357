/**
 * Facts about the media of a source, found while packaging. Each becomes the warning of the same code.
 *
 * `targetSec` is EXT-X-TARGETDURATION; before it is fixed, its maximum.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'

export type SourceFact =
  /** A GOP exceeds `limitSec`; above the maximum duration of a segment it is cut. `gopSec`: its duration so far. */
  | {
      readonly code: 'GOP_TOO_LONG'
      readonly gopSec: number
      readonly limitSec: number
      readonly targetSec: number
    }
  /** A GOP exceeds the maximum size of a segment, `maxBytes`, and was cut. */
  | { readonly code: 'SEGMENT_TOO_LARGE'; readonly maxBytes: number; readonly targetSec: number }
  /** No segment can start: for `awaitedSec`, video has arrived without a random access point. */
  | { readonly code: 'NO_KEY_FRAME'; readonly awaitedSec: number }
  /** Timestamp discontinuity of the reference track. `jumpSec` is negative when the timestamps went back. */
  | { readonly code: 'TIMESTAMP_JUMP'; readonly jumpSec: number }
  /** Announced splice points were dropped before their time. `points`: number of these points. */
  | { readonly code: 'SPLICE_MISSED'; readonly points: number }
  /** The playlist had no room for the date ranges of splice points. `points`: number of these points. */
  | { readonly code: 'TOO_MANY_SPLICES'; readonly points: number }
  /** Audio is dropped because its timestamps are more than 10 s away from the timestamps of the video. */
  | { readonly code: 'AUDIO_OUT_OF_STEP'; readonly targetSec: number }
  /** Audio is moved by `shiftSec`: its clock, or that of the video, has jumped alone. */
  | { readonly code: 'AUDIO_REALIGNED'; readonly shiftSec: number }
  /** A track that the PMT lists sends no media. `isHeld`: viewers see its last picture. */
  | { readonly code: 'TRACK_SILENT'; readonly track: Track; readonly isHeld?: boolean }
  /** Key frames of `variants` video tracks are not aligned with the key frames of the main video. */
  | { readonly code: 'VARIANTS_NOT_ALIGNED'; readonly variants: number; readonly targetSec: number }
  /** Tracks that are not carried: players fail on them or, with `tooMany`, they exceed the maximum number. */
  | {
      readonly code: 'TRACKS_LEFT_OUT'
      readonly tracks: readonly Track[]
      readonly tooMany: boolean
    }
  /** Tracks that are not in CMAF, which does not carry their codec, or cannot express any of their frames. */
  | { readonly code: 'TRACKS_NOT_IN_CMAF'; readonly tracks: readonly Track[] }
  /** Video tracks whose PPS change under one id, so that CMAF has parameter sets in samples. */
  | { readonly code: 'PARAMETER_SETS_VARY'; readonly tracks: readonly Track[] }
  /** Audio tracks that are not carried: they have no counterpart in the codec of the default audio. */
  | { readonly code: 'AUDIO_CODECS_DIFFER'; readonly tracks: readonly Track[] }
  /** The audio that the presentation started with has ended, or stays away, and is replaced by silence. */
  | { readonly code: 'AUDIO_GONE' }
  /** Audio is dropped because the presentation started without audio. */
  | { readonly code: 'AUDIO_TOO_LATE' }
