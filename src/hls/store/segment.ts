/**
 * Segments (RFC 8216 3), stretches of media that a player fetches as one file; their parts; and their init segments.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import type { Track } from '../../mpegts/track.ts'
import type { RenditionName } from '../file-names.ts'

/** A segment of a rendition, once it is complete. */
export interface Segment {
  /** Random identifier of this run of the stream, so that HTTP caches never serve segments of an earlier run. */
  readonly epoch: string
  /** Media sequence number: 1 more than in the previous segment of the rendition. */
  readonly mediaSequence: number
  /** Rendition whose playlist lists the segment. */
  readonly rendition: RenditionName
  /** Unique in the process. */
  readonly uri: string
  /**
   * Bytes in order, shared by all readers; must not be changed. Empty for a gap. Transport stream: PAT, PMT, then PES
   * packets, between which PCR-only packets may lie. CMAF: fragments, the first one behind `styp`.
   */
  readonly chunks: readonly Buffer[]
  /** Sum of the chunks' lengths. */
  readonly sizeBytes: number
  /** The chunks in one buffer: a copy at each access, unless there is a single chunk. */
  readonly bytes: Buffer
  /** EXTINF, from the timestamps of the media; of audio in CMAF, the duration of its frames. */
  readonly durationSec: number
  /**
   * The segment contains the media presented in [`startTicks`, `endTicks`): 90 kHz, unwrapped, on the clock of its
   * tracks. Without a discontinuity it starts at the end of the previous segment.
   */
  readonly startTicks: number
  readonly endTicks: number
  /** EXT-X-PROGRAM-DATE-TIME in milliseconds since 1970, see `program-date.ts`. */
  readonly programDateTimeMs: number
  /** Whether timestamps, tracks or formats do not continue from the previous segment. */
  readonly discontinuity: boolean
  /**
   * Discontinuity sequence number (RFC 8216bis 3): 1 more than in the previous segment if this segment starts with a
   * discontinuity, else the same.
   */
  readonly discontinuitySequence: number
  /** Whether all frames can be decoded without other segments. */
  readonly independent: boolean
  /** Whether the first video frame is one at which a decoder can start; false without video. */
  readonly startsWithKeyFrame: boolean
  /** Init segment of CMAF; undefined for transport stream, and for a gap. */
  readonly map?: InitSegment
  /** Partial segments in order, whose chunks together are those of the segment; empty without low latency. */
  readonly parts: readonly Part[]
  /** EXT-X-PROGRAM-DATE-TIME of the next segment; undefined if that starts with a discontinuity. */
  readonly nextDateTimeMs: number | undefined
  /** Carried tracks, video first, with the parameters known at the end of the segment. */
  readonly tracks: readonly Track[]
  readonly videoFrames: number
}

/** Properties of a segment that a playlist lists before the first part. */
type SegmentHead = Pick<
  Segment,
  'mediaSequence' | 'programDateTimeMs' | 'discontinuity' | 'discontinuitySequence'
>

/** Segment that begins, with its URI in each rendition, the main one first. */
export interface SegmentStart extends SegmentHead {
  readonly uris: ReadonlyMap<RenditionName, string>
}

/**
 * Partial segment of low-latency HLS (RFC 8216bis 3.2): a stretch of a segment that a player may fetch before the segment
 * is complete.
 */
export interface Part extends SegmentHead {
  /** Rendition whose playlist lists the part. */
  readonly rendition: RenditionName
  /** Number of the part in its stream: the same in all renditions, and 1 more than in the previous part. */
  readonly serial: number
  /** Unique in the process. */
  readonly uri: string
  /** URI of the segment that the part belongs to. */
  readonly segmentUri: string
  /** CMAF fragment: the segment has the same buffers. Empty for a gap (GAP=YES). */
  readonly chunks: readonly Buffer[]
  /** Init segment; undefined for a gap. */
  readonly map?: InitSegment
  /** DURATION, at most PART-TARGET. */
  readonly durationSec: number
  /** INDEPENDENT: whether it starts with a sync sample. */
  readonly independent: boolean
  /** Whether the next part begins another timeline. */
  readonly endsTimeline: boolean
}

/** Media initialization section (RFC 8216bis 3.1.2): the format of the segments whose EXT-X-MAP names it. */
export interface InitSegment {
  /** Unique in the process: it contains a hash of the bytes. */
  readonly uri: string
  readonly bytes: Buffer
}

export function createSegment(content: Omit<Segment, 'sizeBytes' | 'bytes'>): Segment {
  const { chunks } = content
  return {
    ...content,
    sizeBytes: totalBytes(chunks),
    get bytes() {
      return joinChunks(chunks)
    },
  }
}

/** @returns a copy, or the only chunk itself */
function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [first = Buffer.alloc(0)] = chunks
  return chunks.length <= 1 ? first : Buffer.concat(chunks)
}
