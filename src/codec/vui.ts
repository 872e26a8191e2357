/**
 * Video usability information, the parts that H.264 and H.265 have in common (ITU-T H.264 E.1.1, H.265 E.2.1).
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'

/** Table E-1 of both, Extended_SAR: the sample aspect ratio follows as two numbers. */
const EXTENDED_SAR = 255

/** Aspect ratio, overscan, video signal and chroma location, with which the structure begins. */
export function skipPictureDescription(reader: BitReader): void {
  if (reader.readFlag() && reader.readBits(8) === EXTENDED_SAR) reader.skipBits(32)
  if (reader.readFlag()) reader.skipBits(1) // overscan_appropriate_flag
  if (reader.readFlag()) {
    reader.skipBits(4) // video_format, video_full_range_flag
    if (reader.readFlag()) reader.skipBits(24) // colour description
  }
  if (reader.readFlag()) {
    reader.readUe() // chroma_sample_loc_type_top_field
    reader.readUe() // chroma_sample_loc_type_bottom_field
  }
}

/**
 * Reads `num_units_in_tick` and `time_scale`.
 *
 * @param ticksPerFrame  2 in H.264, whose ticks are fields, whether or not fields are coded
 * @returns frames a second; undefined where they are not whole or make no sense
 */
export function readFrameRate(reader: BitReader, ticksPerFrame: number): number | undefined {
  const unitsInTick = reader.readBits(32)
  const frameRate = reader.readBits(32) / (ticksPerFrame * unitsInTick)
  return !reader.overrun && frameRate > 0 && frameRate <= 1000 ? frameRate : undefined
}
