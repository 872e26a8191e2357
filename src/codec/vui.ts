/**
 * Video usability information common to H.264 and H.265 (ITU-T H.264 E.1.1, H.265 E.2.1).
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'
import type { VideoParameters } from './video-parameters.ts'
import { videoRangeOf, type VideoRange } from './video-range.ts'

/** Parameters that the VUI contains. */
export type VuiParameters = Pick<VideoParameters, 'frameRate' | 'videoRange'>

/** Parameters of video without VUI. */
export const NO_VUI: VuiParameters = { videoRange: 'SDR' }

/** Extended_SAR (Table E-1 in both standards): the sample aspect ratio follows as two numbers. */
const EXTENDED_SAR = 255

/**
 * Reads aspect ratio, overscan, video signal type and chroma location, at the start of the VUI.
 *
 * @returns range of `transfer_characteristics`; SDR when absent or truncated
 */
export function readVideoRange(reader: BitReader): VideoRange {
  let range: VideoRange = 'SDR'
  if (reader.readFlag() && reader.readBits(8) === EXTENDED_SAR) reader.skipBits(32)
  if (reader.readFlag()) reader.skipBits(1) // overscan_appropriate_flag
  if (reader.readFlag()) {
    reader.skipBits(4) // video_format, video_full_range_flag
    if (reader.readFlag()) {
      reader.skipBits(8) // colour_primaries
      range = videoRangeOf(reader.readBits(8)) // transfer_characteristics
      reader.skipBits(8) // matrix_coefficients
    }
  }
  if (reader.readFlag()) {
    reader.readUe() // chroma_sample_loc_type_top_field
    reader.readUe() // chroma_sample_loc_type_bottom_field
  }
  return reader.overrun ? 'SDR' : range
}

/**
 * Reads the flag of the timing information, then `num_units_in_tick` and `time_scale`.
 *
 * @param ticksPerFrame  2 in H.264, whose tick is a field even without field coding; 1 in H.265
 * @returns frames per second; undefined when the fields are absent or truncated, or the rate is impossible
 */
export function readFrameRate(reader: BitReader, ticksPerFrame: number): number | undefined {
  if (!reader.readFlag()) return undefined
  const unitsInTick = reader.readBits(32)
  const frameRate = reader.readBits(32) / (ticksPerFrame * unitsInTick)
  return !reader.overrun && frameRate > 0 && frameRate <= 1000 ? frameRate : undefined
}
