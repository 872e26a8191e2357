/**
 * Case of the corpus: an input stream and the expected output.
 *
 * @module
 */
import type { ClipFolder } from './clip.ts'
import type { Clip } from '../../mpegts/edit.ts'
import type { PublishOptions, Step } from './publish.ts'

export interface Source {
  readonly steps: readonly Step[]
  /** The input before its edits, one clip for each layout and timeline. */
  readonly originals: readonly Clip[]
}

/**
 * Comparison of the elementary streams in the output with those of the input.
 *
 * - `same`: byte for byte.
 * - `from-key-frame`: byte for byte from the first usable random access point.
 * - `damaged`: packets were lost; the access unit at the start of each segment is byte for byte as sent, with inserted NAL
 *   units.
 * - `completed`: byte for byte, with inserted NAL units; the decoded frames are the same.
 * - `rewrapped`: video byte for byte; audio in another framing, whose decoded frames are the same.
 * - `framed`: byte for byte, each video frame in a PES packet of its own.
 * - `silenced`: byte for byte, then silent audio after the end of the audio track.
 * - `held`: byte for byte, and between the frames the GOP so far, while the video stays away.
 */
export type BytesOut =
  'same' | 'from-key-frame' | 'damaged' | 'completed' | 'rewrapped' | 'framed' | 'silenced' | 'held'

/** All versions of a playlist. */
export interface ExpectedPlaylist {
  /** EXTINF of every segment, rounded to 10 ms. */
  readonly durations: readonly number[]
  /** Frames in all segments, as ffprobe counts them. */
  readonly videoFrames: number
  readonly audioFrames: number
  /** PIDs and stream types of the PMT: one text, or one for the start and for each DISCONTINUITY. */
  readonly tracks: string | readonly string[]
}

/** Differences of CMAF. */
export interface CmafDifferences {
  /** Whether it has the audio of the main rendition. */
  readonly audio?: boolean
  /** Rules of `millrace check` that are broken. */
  readonly findings?: readonly string[]
  /** Whether its audio has gaps, at which fragments begin; default false. */
  readonly audioGaps?: boolean
  /** Whether samples have parameter sets; default false. */
  readonly inBandSets?: boolean
  /**
   * Max difference of the times, in ticks of 90 kHz; default the rounding. The first frame of a part is decoded where the
   * part before has ended, and no two frames at once.
   */
  readonly offTicks?: number
}

export interface MediaCase {
  /** Unique, kebab-case. */
  readonly name: string
  /** Description of the input, for docs/media-cases.md. */
  readonly input: string
  readonly make: (clips: ClipFolder) => Promise<Source | Clip>
  readonly options?: PublishOptions
  /** Undefined when no playlist appears. */
  readonly playlist?: ExpectedPlaylist
  /** EXT-X-TARGETDURATION; default 2. */
  readonly targetSec?: number
  /** CODECS in the last multivariant playlist. */
  readonly codecs?: string
  /** Media sequence numbers of segments with a DISCONTINUITY; default none. */
  readonly discontinuities?: readonly number[]
  /** Whether the playlist has EXT-X-INDEPENDENT-SEGMENTS at its end and each segment decodes alone; default true. */
  readonly independent?: boolean
  /** Default `same`. */
  readonly bytesOut?: BytesOut
  /** Warning codes; default none. */
  readonly warnings?: readonly string[]
  /** Rules of `millrace check` that the input breaks, and the output with it; default none. */
  readonly findings?: readonly string[]
  /** What CMAF has other than transport stream; default nothing. */
  readonly cmaf?: CmafDifferences
  /** Further media playlists, with the same segment durations. */
  readonly renditions?: Readonly<Record<string, Omit<ExpectedPlaylist, 'durations'>>>
  /** Texts in one version of the media playlist, in this order. */
  readonly contains?: readonly string[]
  /** Texts in the last multivariant playlist, in this order. */
  readonly multivariantContains?: readonly string[]
  /** Number of timed metadata samples that hls.js finds; default 0. */
  readonly id3Samples?: number
  /** Set when the output has a codec that hls.js cannot play. */
  readonly beyondHlsJs?: true
}
