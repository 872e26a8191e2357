import type { VideoRange } from './video-range.ts'

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
