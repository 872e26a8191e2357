/**
 * Video usability information common to H.264 and H.265 (ITU-T H.264 E.1.1, H.265 E.2.1).
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'
import type { VideoParameters } from './video-parameters.ts'
import { UNSPECIFIED_TRANSFER } from './video-range.ts'

/** Parameters that the VUI contains. */
export type VuiParameters = Pick<VideoParameters, 'frameRate' | 'videoRange'>

/** Parameters of video without VUI. */
export const NO_VUI: VuiParameters = { videoRange: 'SDR' }

/** Extended_SAR (Table E-1 in both standards): the sample aspect ratio follows as two numbers. */
const EXTENDED_SAR = 255

/**
 * Reads aspect ratio, overscan, video signal type and chroma location, at the start of the VUI.
 *
 * @returns `transfer_characteristics`; UNSPECIFIED_TRANSFER when absent or truncated
 */
export function readTransferCharacteristics(reader: BitReader): number {
  let transfer = UNSPECIFIED_TRANSFER
  if (reader.readFlag() && reader.readBits(8) === EXTENDED_SAR) reader.skipBits(32)
  if (reader.readFlag()) reader.skipBits(1) // overscan_appropriate_flag
  if (reader.readFlag()) {
    reader.skipBits(4) // video_format, video_full_range_flag
    if (reader.readFlag()) {
      reader.skipBits(8) // colour_primaries
      transfer = reader.readBits(8)
      reader.skipBits(8) // matrix_coefficients
    }
  }
  if (reader.readFlag()) {
    reader.readUe() // chroma_sample_loc_type_top_field
    reader.readUe() // chroma_sample_loc_type_bottom_field
  }
  return reader.overrun ? UNSPECIFIED_TRANSFER : transfer
}

/**
 * Reads `num_units_in_tick` and `time_scale`.
 *
 * @param ticksPerFrame  2 in H.264, whose tick is a field even without field coding; 1 in H.265
 * @returns frames per second; undefined when the fields are truncated or the rate is impossible
 */
export function readFrameRate(reader: BitReader, ticksPerFrame: number): number | undefined {
  const unitsInTick = reader.readBits(32)
  const frameRate = reader.readBits(32) / (ticksPerFrame * unitsInTick)
  return !reader.overrun && frameRate > 0 && frameRate <= 1000 ? frameRate : undefined
}
