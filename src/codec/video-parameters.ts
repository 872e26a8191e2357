/**
 * Parameters of video, common to H.264 and H.265, and its dynamic range.
 *
 * @module
 */

/** Value of VIDEO-RANGE (RFC 8216bis 4.4.6.2): the dynamic range. */
export type VideoRange = 'SDR' | 'HLG' | 'PQ'

/** Ranges by precedence: video of several ranges counts as the last of them (RFC 8216bis 4.4.6.2). */
const BY_PRECEDENCE: readonly VideoRange[] = ['SDR', 'HLG', 'PQ']

const RANGES: Readonly<Record<number, VideoRange>> = { 16: 'PQ', 18: 'HLG' }

/** Parameters in the parameter sets of a video bitstream. */
export interface VideoParameters {
  /** CODECS value (RFC 6381). */
  readonly codecString: string
  /** Width in luma samples after cropping, like `height`. */
  readonly width: number
  readonly height: number
  /** Frames per second, when the parameter sets contain it. */
  readonly frameRate?: number
  readonly videoRange: VideoRange
}

/** Colors by the code points of ITU-T H.273. */
export interface ColorDescription {
  readonly primaries: number
  readonly transfer: number
  readonly matrix: number
  readonly fullRange: boolean
}

/** Relative width and height of a luma sample; both are positive. */
export interface SampleAspectRatio {
  readonly width: number
  readonly height: number
}

/** Start of the VUI. */
export interface VideoSignal {
  readonly sampleAspectRatio?: SampleAspectRatio
  readonly color?: ColorDescription
}

/** Parameters of a sequence parameter set that describe its samples to a file format. */
export interface SequenceParameters {
  readonly video: VideoParameters
  /** `chroma_format_idc` (H.264 and H.265 Table 6-1): 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4. */
  readonly chromaFormat: number
  /** Bits of a sample. */
  readonly lumaBitDepth: number
  readonly chromaBitDepth: number
  readonly signal: VideoSignal
}

/** Maximum width and height at any level: the square root of 8 x MaxLumaPs at H.265 level 7.2 (H.265 A.4.1). */
const MAX_PICTURE_SIDE = 33_776

/** Whether both sides are positive and within the limit of the highest level. */
export function isPictureSize(width: number, height: number): boolean {
  return width > 0 && height > 0 && width <= MAX_PICTURE_SIDE && height <= MAX_PICTURE_SIDE
}

/**
 * Dynamic range by the transfer characteristics (ITU-T H.273 Table 3).
 *
 * @param transfer  code point, from the parameter sets or an SEI message; an unknown or absent code point is SDR
 */
export function videoRangeOf(transfer: number | undefined): VideoRange {
  return RANGES[transfer ?? 0] ?? 'SDR'
}

/** @returns VIDEO-RANGE of video that mixes these ranges; undefined if it has none */
export function mixVideoRanges(
  ranges: readonly (VideoRange | undefined)[],
): VideoRange | undefined {
  return BY_PRECEDENCE.findLast((range) => ranges.includes(range))
}
