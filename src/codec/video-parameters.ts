/** What a video bitstream says of its pictures. */
export interface VideoParameters {
  /** RFC 6381 string. */
  readonly codecString: string
  /** Luma samples after cropping. */
  readonly width: number
  readonly height: number
  /** Frames a second, where the parameter sets tell it. */
  readonly frameRate?: number
}

/** Longest side of a picture in any level: that of H.265 level 7.2, the root of 8 x MaxLumaPs (H.265 A.4.1). */
const MAX_PICTURE_SIDE = 33_776

/** Whether a parsed picture size can be real. */
export function isPictureSize(width: number, height: number): boolean {
  return width > 0 && height > 0 && width <= MAX_PICTURE_SIDE && height <= MAX_PICTURE_SIDE
}
