/**
 * What a program carries: its tracks, and what their bitstreams say of themselves.
 *
 * @module
 */

export type Codec =
  'h264' | 'h265' | 'aac' | 'aac-latm' | 'mp3' | 'mp2' | 'ac3' | 'eac3' | 'opus' | 'unknown'

/** One elementary stream of a program (ISO/IEC 13818-1 2.4.4.9). */
export interface Track {
  readonly pid: number
  /** `stream_type` (ISO/IEC 13818-1 Table 2-34) of the units as they leave; the PMT may have another. */
  readonly streamType: number
  readonly kind: 'video' | 'audio' | 'data'
  readonly codec: Codec
  /** ES descriptors as they stood in the PMT; a registration that belongs to another stream type comes first. */
  readonly descriptors: Buffer
  /** What to call data in a warning, for example `teletext`; undefined where nothing tells, and for sound and picture. */
  readonly label?: string
  /** ISO 639 code of the language descriptor. */
  readonly language?: string
  /** From the bitstream, undefined until its parameters were seen. A change of any makes a new `program` output. */
  readonly parameters?: TrackParameters
}

/** What a track's bitstream says of itself. */
export interface TrackParameters {
  /** RFC 6381 string, for example `avc1.64001f` or `mp4a.40.2`. */
  readonly codecString: string
  readonly width?: number
  readonly height?: number
  /** Frames a second, where the sequence parameter set tells it. */
  readonly frameRate?: number
  readonly sampleRate?: number
  readonly channels?: number
  /** CEA-608 or CEA-708 captions were seen in the pictures; never becomes false again. */
  readonly closedCaptions?: boolean
}

/** The program being carried. Immutable: a change is a new object. */
export interface Program {
  readonly programNumber: number
  readonly pcrPid: number
  /** In PMT order. */
  readonly tracks: readonly Track[]
}
