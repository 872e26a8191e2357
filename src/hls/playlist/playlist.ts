/**
 * Contents of playlists (RFC 8216bis 4.4), which `playlist-format.ts` formats.
 *
 * @module
 */
import type { VideoRange } from '../../codec/video-parameters.ts'
import type { DateRange } from '../date-range.ts'

/** A media playlist (RFC 8216bis 4.4.3). */
export interface MediaPlaylist {
  /** EXT-X-TARGETDURATION */
  readonly targetDurationSec: number
  /** EXT-X-MEDIA-SEQUENCE: media sequence number of the oldest listed segment. */
  readonly mediaSequence: number
  /** EXT-X-DISCONTINUITY-SEQUENCE: number of EXT-X-DISCONTINUITY tags that have left the playlist. */
  readonly discontinuitySequence: number
  /** EXT-X-INDEPENDENT-SEGMENTS: whether each listed segment can be decoded without other segments. */
  readonly independentSegments: boolean
  /** EXT-X-PLAYLIST-TYPE; undefined for a window that moves. */
  readonly type?: 'EVENT' | 'VOD'
  /** EXT-X-ENDLIST */
  readonly ended: boolean
  /** Whether segments have init segments; default: no. */
  readonly hasMaps?: boolean
  /** EXT-X-MAP before the first segment; undefined without, and if the first segment has one of its own. */
  readonly map?: string | undefined
  readonly dateRanges: readonly DateRange[]
  readonly segments: readonly PlaylistSegment[]
  /** EXT-X-SERVER-CONTROL of a playlist without parts: CAN-SKIP-UNTIL; default: it offers no delta updates. */
  readonly skipUntilSec?: number
  /** EXT-X-SKIP: number of oldest segments that a delta update leaves out; default 0. */
  readonly skippedSegments?: number
  /** Tags of low latency; undefined for a playlist without parts. */
  readonly lowLatency?: LowLatencyTags | undefined
}

/** What a media playlist has for low latency. */
export interface LowLatencyTags {
  /** EXT-X-PART-INF: PART-TARGET */
  readonly partTargetSec: number
  /** EXT-X-SERVER-CONTROL: CAN-SKIP-UNTIL; undefined for a playlist without delta updates. */
  readonly skipUntilSec: number | undefined
  /** Segment that is not complete; undefined before the first part behind EXT-X-DISCONTINUITY. */
  readonly openSegment: OpenSegment | undefined
  /** EXT-X-PRELOAD-HINT: URI of the next part; undefined where that starts a timeline. */
  readonly preloadHint: string | undefined
  /** EXT-X-RENDITION-REPORT of each other media playlist. */
  readonly renditionReports: readonly RenditionReport[]
}

/** EXT-X-PART */
export interface PlaylistPart {
  readonly uri: string
  readonly durationSec: number
  readonly independent: boolean
  /** GAP: whether the media is missing. */
  readonly gap: boolean
}

/** Segment that is not complete, with what the playlist lists before its first part. */
export interface OpenSegment extends Pick<
  PlaylistSegment,
  'programDateTimeMs' | 'discontinuity' | 'map'
> {
  readonly parts: readonly PlaylistPart[]
}

/** EXT-X-RENDITION-REPORT */
export interface RenditionReport {
  readonly uri: string
  /** LAST-MSN: media sequence number of the newest segment, complete or not. */
  readonly lastSequence: number
  /** LAST-PART: index of the newest part of that segment; undefined if it has none. */
  readonly lastPart: number | undefined
}

/** A segment as a media playlist lists it. */
export interface PlaylistSegment {
  readonly uri: string
  /** EXTINF */
  readonly durationSec: number
  /** EXT-X-PROGRAM-DATE-TIME, milliseconds since 1970. */
  readonly programDateTimeMs: number
  /** EXT-X-DISCONTINUITY */
  readonly discontinuity: boolean
  /** EXT-X-MAP: URI of the init segment, where it differs from that of the segment before. */
  readonly map?: string | undefined
  /** EXT-X-GAP: whether the media is missing, so that players must not load the URI. */
  readonly gap: boolean
  /** EXT-X-PART of each listed part, in order; default none. */
  readonly parts?: readonly PlaylistPart[]
}

/** A multivariant playlist (RFC 8216bis 4.4.6). */
export interface MultivariantPlaylist {
  /**
   * CLOSED-CAPTIONS of all variants: their captions, or `none` if there certainly are no captions; undefined makes no
   * claim, so that players look for captions in the video.
   */
  readonly closedCaptions?: ClosedCaptions | 'none'
  readonly audios: readonly AudioRendition[]
  readonly variants: readonly Variant[]
}

/** EXT-X-MEDIA of TYPE=CLOSED-CAPTIONS: CEA-608 channel CC1, which is in use wherever there are captions. */
export interface ClosedCaptions {
  /** LANGUAGE, RFC 5646; `und` for an unknown language. */
  readonly language: string
}

/** EXT-X-MEDIA of TYPE=AUDIO */
export interface AudioRendition {
  /** GROUP-ID */
  readonly groupId: string
  /** NAME, unique in its group. */
  readonly name: string
  /** LANGUAGE, RFC 5646; `und` for an unknown language. */
  readonly language: string
  /** DEFAULT */
  readonly isDefault: boolean
  /** AUTOSELECT: on the first member of a language and role in its group (RFC 8216bis 4.4.6.1.1). */
  readonly isAutoselect: boolean
  /** CHANNELS */
  readonly channels?: number
  /** CHARACTERISTICS */
  readonly characteristics?: string
  /** URI of the media playlist; undefined for audio in the variants' own segments. */
  readonly uri?: string
}

/** EXT-X-STREAM-INF */
export interface Variant {
  /** URI of the media playlist. */
  readonly uri: string
  /** BANDWIDTH: peak in bits per second. */
  readonly peakBps: number
  /** AVERAGE-BANDWIDTH in bits per second. */
  readonly averageBps: number
  /** CODECS (RFC 6381); empty until the bitstreams are known. */
  readonly codecs: readonly string[]
  /** RESOLUTION */
  readonly resolution?: { readonly width: number; readonly height: number }
  /** FRAME-RATE */
  readonly frameRate?: number
  /** VIDEO-RANGE; undefined if all variants are SDR, which the absence of the attribute implies. */
  readonly videoRange?: VideoRange
  /** AUDIO: GROUP-ID of the alternative audio. */
  readonly audioGroup?: string
}
