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

/** Maximum width and height at any level: the square root of 8 x MaxLumaPs at H.265 level 7.2 (H.265 A.4.1). */
const MAX_PICTURE_SIDE = 33_776

/** Whether both sides are positive and within the limit of the highest level. */
export function isPictureSize(width: number, height: number): boolean {
  return width > 0 && height > 0 && width <= MAX_PICTURE_SIDE && height <= MAX_PICTURE_SIDE
}
