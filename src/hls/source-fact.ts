/**
 * What the segments show of the source that an operator should know: facts with figures. The words are elsewhere.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'

export type SourceFact =
  /** A segment was cut between key frames, so as not to exceed the target duration. */
  | { readonly code: 'GOP_TOO_LONG'; readonly targetSec: number }
  | { readonly code: 'SEGMENT_TOO_LARGE'; readonly maxBytes: number }
  /** Video arrives, but no random access point for longer than a segment may last. */
  | { readonly code: 'NO_KEY_FRAME' }
  | { readonly code: 'TIMESTAMP_JUMP' }
  /** The time of an announced splice point never came. */
  | { readonly code: 'SPLICE_MISSED' }
  /** More date ranges at once than a playlist lists. */
  | { readonly code: 'TOO_MANY_SPLICES' }
  /** Audio is dropped, since its timestamps are too far from those of the video. */
  | { readonly code: 'AUDIO_OUT_OF_STEP' }
  /** Nothing arrives of a track that the program map names. */
  | { readonly code: 'TRACK_SILENT'; readonly track: Track }
  /** The key frames of a variant are not those of the main video. */
  | { readonly code: 'VARIANTS_NOT_ALIGNED' }
  | {
      readonly code: 'TRACKS_LEFT_OUT'
      readonly tracks: readonly Track[]
      /** More tracks than a presentation holds; else tracks that players fail on. */ readonly tooMany: boolean
    }
