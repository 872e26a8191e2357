/**
 * A media segment (RFC 8216 3): a stretch of transport stream that a player fetches as one file.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { RenditionName } from '../file-names.ts'

export interface Segment {
  /** Random name of this start of the stream: no HTTP cache ever serves an older stream's bytes. */
  readonly epoch: string
  /** One more than that of the segment before in the rendition. */
  readonly mediaSequence: number
  /** Rendition whose playlist lists it. */
  readonly rendition: RenditionName
  /** Unique in the process. */
  readonly uri: string
  /**
   * Its bytes in order, each chunk n x 188: PAT, PMT, then whole PES packets. Shared by all readers; not to be changed.
   * Empty: the rendition has a gap here.
   */
  readonly chunks: readonly Buffer[]
  /** Sum of the chunks' lengths. */
  readonly sizeBytes: number
  /** The chunks in one buffer: a copy at each access, unless there is a single chunk. */
  readonly bytes: Buffer
  /** From the media's own timestamps, never from a clock. */
  readonly durationSec: number
  /**
   * The media that is shown in [`startTicks`, `endTicks`) belongs to it: 90 kHz, unwrapped, on the clock of its
   * tracks. Without a discontinuity it starts where the segment before it ended.
   */
  readonly startTicks: number
  readonly endTicks: number
  /** EXT-X-TARGETDURATION: the same for every segment of an epoch; `durationSec` rounds to at most this. */
  readonly targetDurationSec: number
  /** Capture time of its first sample, as far as the server can tell: milliseconds since 1970. */
  readonly programDateTimeMs: number
  /** Timestamps, tracks or formats do not continue those of the segment before. */
  readonly discontinuity: boolean
  /**
   * Discontinuity sequence number of its stream's start, and one for each discontinuity up to its own start (RFC 8216bis
   * 3), its own included.
   */
  readonly discontinuitySequence: number
  /** Every frame in it can be decoded from its own bytes. */
  readonly independent: boolean
  /** Tracks that it carries, video first, with the parameters known at its end. */
  readonly tracks: readonly Track[]
  readonly videoFrames: number
}

export function createSegment(content: Omit<Segment, 'sizeBytes' | 'bytes'>): Segment {
  const { chunks } = content
  return {
    ...content,
    sizeBytes: chunks.reduce((sum, { length }) => sum + length, 0),
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
