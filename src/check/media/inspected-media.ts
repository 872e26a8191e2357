/**
 * Facts about a segment or part that was loaded, alike for MPEG-TS and fragmented MP4.
 *
 * @module
 */
import type { Exchange, Reply } from '../exchange.ts'
import type { ListedPart, ListedSegment, MediaPlaylist } from '../playlist/media-playlist.ts'

export type Container = 'mpegts' | 'fmp4' | 'packed-audio' | 'webvtt' | 'encrypted' | 'unknown'

export interface InspectedTrack {
  readonly kind: 'video' | 'audio' | 'data'
  /** PID, or track_ID. */
  readonly id: number
  /** CODECS value of the bitstream, for example `avc1.64001f`; undefined if unknown. */
  readonly codec: string | undefined
  readonly width?: number
  readonly height?: number
  readonly frameRate?: number
  readonly videoRange?: string
  /** Access units, or audio frames. */
  readonly frames: number
  /**
   * Smallest presentation time and end of the last frame by presentation time, in seconds of the media's own clock. In
   * MPEG-TS, times wrap at 2^33 / 90,000 s: compare them modulo that.
   */
  readonly startSec: number
  readonly endSec: number
  /** Decode time of the first frame, and expected decode time of the frame after the last one. */
  readonly firstDecodeSec: number
  readonly nextDecodeSec: number
  readonly keyFrames: number
  /** Whether the first access unit is a key frame with its parameter sets (or an init segment); true for audio. */
  readonly startsWithKeyFrame: boolean
}

/** Something wrong inside, for the rule of that name. */
export interface MediaFault {
  readonly kind:
    | 'sync' // length no multiple of 188, or a packet without sync byte
    | 'tables' // no PAT or PMT before media, or several programs
    | 'continuity' // a continuity counter that does not follow on inside
    | 'pes' // a PES packet cut off at start or end, or without PTS
    | 'box' // a box that exceeds its parent, or a required box that is missing
    | 'transport-error' // transport_error_indicator
  /** Sentence: `packet 17 of PID 256 has continuity counter 4 after 2`. */
  readonly text: string
}

export interface MediaFacts {
  readonly container: Container
  readonly sizeBytes: number
  readonly tracks: readonly InspectedTrack[]
  /** MPEG-TS: first and last continuity counter of each PID, in order of first occurrence. */
  readonly counters: ReadonlyMap<number, { readonly first: number; readonly last: number }>
  /** At most a few, each of a different kind. */
  readonly faults: readonly MediaFault[]
}

export interface InspectedMedia {
  readonly playlist: MediaPlaylist
  readonly segment: ListedSegment
  /** Undefined if the segment itself was loaded. */
  readonly part: ListedPart | undefined
  readonly exchange: Exchange
  readonly reply: Reply
  readonly facts: MediaFacts
}
