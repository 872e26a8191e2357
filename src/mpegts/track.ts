/**
 * Programs and their tracks, and what changes between two of them.
 *
 * @module
 */

import type { VideoRange } from '../codec/video-parameters.ts'

/** Codec of a track; `unknown` tracks are carried in transport stream. */
export type Codec =
  'h264' | 'h265' | 'aac' | 'aac-latm' | 'mp3' | 'mp2' | 'ac3' | 'eac3' | 'opus' | 'unknown'

/** One elementary stream of a program (ISO/IEC 13818-1 2.4.4.9). */
export interface Track {
  readonly pid: number
  /** `stream_type` (ISO/IEC 13818-1 Table 2-34) of the output; the received PMT may have another. */
  readonly streamType: number
  readonly kind: 'video' | 'audio' | 'data'
  readonly codec: Codec
  /** ES descriptors of the PMT. AC-3 and E-AC-3 in DVB signaling get a registration descriptor in front. */
  readonly descriptors: Buffer
  /** Format of a `data` track for warnings, for example `teletext` or `MPEG-2 video`; undefined if unknown. */
  readonly label?: string
  /** First ISO 639 code of the language descriptor, in lower case. */
  readonly language?: string
  /** Parameters of the bitstream, undefined until known. After each change, the demuxer outputs a new `program`. */
  readonly parameters?: TrackParameters
}

/** Parameters in the bitstream of a track. */
export interface TrackParameters {
  /** CODECS value (RFC 6381), for example `avc1.64001f` or `mp4a.40.2`. */
  readonly codecString: string
  /** Luma samples after cropping. */
  readonly width?: number
  readonly height?: number
  /** Frames per second; undefined when the parameter sets do not contain the frame rate. */
  readonly frameRate?: number
  readonly videoRange?: VideoRange
  /** Hertz. */
  readonly sampleRate?: number
  readonly channels?: number
  /** Whether the video has contained CEA-608 or CEA-708 captions; never becomes false again. */
  readonly closedCaptions?: boolean
}

/** The carried program. Immutable: each change makes a new object. */
export interface Program {
  readonly programNumber: number
  readonly pcrPid: number
  /** Tracks in PMT order. */
  readonly tracks: readonly Track[]
}

/** Whether players can continue with the same decoders. Unknown parameters count as unchanged. */
export function isSameLayout(a: Program, b: Program): boolean {
  return (
    a.tracks.length === b.tracks.length &&
    a.tracks.every((track, index) => isSameTrackLayout(track, b.tracks[index]!))
  )
}

/** Whether players can continue with the same decoder. Unknown parameters count as unchanged. */
export function isSameTrackLayout(a: Track, b: Track): boolean {
  if (a.pid !== b.pid || a.streamType !== b.streamType) return false
  if (a.parameters === undefined || b.parameters === undefined) return true
  return (
    a.codec === b.codec &&
    a.parameters.width === b.parameters.width &&
    a.parameters.height === b.parameters.height &&
    a.parameters.sampleRate === b.parameters.sampleRate &&
    a.parameters.channels === b.parameters.channels
  )
}

/** Whether AAC has frames whose headers do not tell its channels: players in browsers fail on it. */
export function lacksChannels({ codec, parameters }: Track): boolean {
  return codec === 'aac' && parameters !== undefined && parameters.channels === undefined
}

export function areSameParameters(
  a: TrackParameters | undefined,
  b: TrackParameters | undefined,
): boolean {
  return (
    a?.codecString === b?.codecString &&
    a?.width === b?.width &&
    a?.height === b?.height &&
    a?.frameRate === b?.frameRate &&
    a?.videoRange === b?.videoRange &&
    a?.sampleRate === b?.sampleRate &&
    a?.channels === b?.channels &&
    a?.closedCaptions === b?.closedCaptions
  )
}
