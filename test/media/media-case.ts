/**
 * What a case of the corpus is: something an encoder sends, and what must come of it.
 *
 * @module
 */
import type { Clip, ClipFolder } from './clip.ts'
import type { PublishOptions, Step } from './publish.ts'

export interface Source {
  readonly steps: readonly Step[]
  /** What was sent before anything was done to it, in pieces that each keep one layout and one time line. */
  readonly originals: readonly Clip[]
}

/**
 * How the elementary streams that leave compare with those that came in.
 *
 * - `same`: byte for byte.
 * - `from-key-frame`: byte for byte, from the first random access point that could be used on.
 * - `damaged`: something was lost on the way. Whatever a segment starts with is byte for byte what was sent.
 * - `completed`: what the encoder left out of its pictures is put in, all else byte for byte; they decode to the same.
 * - `rewrapped`: sound in another framing that decodes to the same, pictures byte for byte.
 * - `silenced`: byte for byte, and silence where the sound is gone.
 */
export type BytesOut =
  'same' | 'from-key-frame' | 'damaged' | 'completed' | 'rewrapped' | 'silenced'

/** A playlist, from its first version to its last. */
export interface ExpectedPlaylist {
  /** EXTINF of every segment, rounded to 10 ms. */
  readonly durations: readonly number[]
  /** Frames in all segments together, as ffprobe counts them. */
  readonly pictures: number
  readonly sounds: number
  /** PID and stream type of the PMT; of each segment that begins with a DISCONTINUITY too. */
  readonly tracks: string | readonly string[]
}

export interface MediaCase {
  /** Unique, kebab-case. */
  readonly name: string
  /** What is sent, in a few words for docs/media.md. */
  readonly what: string
  readonly make: (clips: ClipFolder) => Promise<Source | Clip>
  readonly options?: PublishOptions
  /** Undefined: no playlist ever. */
  readonly playlist?: ExpectedPlaylist
  /** EXT-X-TARGETDURATION; 2 unless told. */
  readonly targetSec?: number
  /** CODECS of the variant, as it was last. */
  readonly codecs?: string
  /** Segments with a DISCONTINUITY, by media sequence number; none unless told. */
  readonly seams?: readonly number[]
  /** EXT-X-INDEPENDENT-SEGMENTS stays, and each segment decodes alone; true unless told. */
  readonly independent?: boolean
  /** `same` unless told. */
  readonly bytesOut?: BytesOut
  /** Codes; none unless told. */
  readonly warnings?: readonly string[]
  /** Further media playlists, cut at the same places. */
  readonly renditions?: Readonly<Record<string, Omit<ExpectedPlaylist, 'durations'>>>
  /** Parts of the media playlist in one of its versions, in this order. */
  readonly says?: readonly string[]
  /** Parts of the multivariant playlist as it was last, in this order. */
  readonly multivariantSays?: readonly string[]
  /** Timed metadata that hls.js finds. */
  readonly id3Samples?: number
  /** hls.js cannot play what is carried, since that was asked for. */
  readonly beyondHlsJs?: true
}
