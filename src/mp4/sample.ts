/**
 * Samples: access units and audio frames as a track stores them (ISO/IEC 14496-12 3.1.17, 23000-19 7.3.2).
 *
 * @module
 */

/** Size of a sample's bytes, its times, and whether a decoder can start at it. */
export interface Sample<Format> {
  /** Format of the sample: the same object while the init segment stays the same. */
  readonly format: Format
  /** Views into the input, to be written before the input is reused; not empty. */
  readonly chunks: readonly Uint8Array[]
  readonly sizeBytes: number
  /** Decode time in ticks of the track's timescale, 0 to 2^53 - 1. */
  readonly decodeTicks: number
  /** Composition time minus decode time, 32 bits signed. */
  readonly compositionOffset: number
  /** Whether it is a sync sample: video that is an IDR or IRAP picture, and all audio. */
  readonly sync: boolean
  /** Whether the bytes belong to the sample before: a second field, or later slices of a picture. */
  readonly continues: boolean
  /** NAL unit that the sample before has begun; undefined if there is none. */
  readonly grownNal?: GrownNal
}

/** Growth of a NAL unit by the first bytes of a sample that continues the sample at whose end it is. */
export interface GrownNal {
  readonly tailBytes: number
  /** Its size with them: what the length before it is to be. */
  readonly nalBytes: number
}

/** Numbers of what was read, and of what was not written as received; they only grow. */
export interface SampleStats {
  /** Headers of audio frames read; each syncframe of a sample counts, and each time that it is read. */
  frames: number
  /** NAL units read. */
  nalUnits: number
  /** Parameter sets among them, and those put into sync samples. */
  parameterSets: number
  /** Bytes that could begin the syncword of a frame that was not found, or end a start code. */
  candidates: number
  /** Samples written, silent ones included, and events. */
  samples: number
  /** Init segments created. */
  initSegments: number
  /**
   * Access units and audio frames dropped: no sample can express them, they overlap, they precede their timeline, too many
   * wait for the video, or they fit in no fragment.
   */
  dropped: number
  /** Bytes skipped since they belong to no audio frame. */
  skippedBytes: number
  /** Gaps in the timestamps of audio that are longer than a frame. */
  gaps: number
}

export function noSampleStats(): SampleStats {
  return {
    frames: 0,
    nalUnits: 0,
    parameterSets: 0,
    candidates: 0,
    samples: 0,
    initSegments: 0,
    dropped: 0,
    skippedBytes: 0,
    gaps: 0,
  }
}

/** Size of the length before a NAL unit. */
export const LENGTH_BYTES = 4

/** Sample flags (14496-12 8.8.3.1): sample_depends_on 2 or 1, and sample_is_non_sync_sample. */
export const SYNC_SAMPLE_FLAGS = 0x0200_0000
export const NON_SYNC_SAMPLE_FLAGS = 0x0101_0000
