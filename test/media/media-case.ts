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
 * - `completed`: what the encoder left out of its key frames is put in. The same pictures come of it.
 * - `rewrapped`: in another framing. The same pictures and sounds come of it.
 */
export type BytesOut = 'same' | 'from-key-frame' | 'damaged' | 'completed' | 'rewrapped'

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
  /** hls.js cannot play what is carried, since that was asked for. */
  readonly beyondHlsJs?: true
}
