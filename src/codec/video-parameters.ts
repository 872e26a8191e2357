import type { VideoRange } from './video-range.ts'

/** Parameters in the parameter sets of a video bitstream. */
export interface VideoParameters {
  /** CODECS value (RFC 6381). */
  readonly codecString: string
  /** Luma samples after cropping. */
  readonly width: number
  readonly height: number
  /** Frames per second, when the parameter sets contain it. */
  readonly frameRate?: number
  readonly videoRange: VideoRange
}

/** Maximum width and height in any level: the root of 8 x MaxLumaPs of H.265 level 7.2 (H.265 A.4.1). */
const MAX_PICTURE_SIDE = 33_776

/** Whether neither side exceeds what the highest level permits. */
export function isPictureSize(width: number, height: number): boolean {
  return width > 0 && height > 0 && width <= MAX_PICTURE_SIDE && height <= MAX_PICTURE_SIDE
}
