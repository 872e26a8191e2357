/**
 * Video usability information common to H.264 and H.265 (ITU-T H.264 E.1.1, H.265 E.2.1).
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'
import type {
  ColorDescription,
  SampleAspectRatio,
  VideoParameters,
  VideoSignal,
} from './video-parameters.ts'

/** Parameters that the VUI contains. */
export interface VuiParameters extends Pick<VideoParameters, 'frameRate'> {
  readonly signal: VideoSignal
}

/** Parameters of video without VUI. */
export const NO_VUI: VuiParameters = { signal: {} }

/** Extended_SAR (Table E-1 in both standards): the sample aspect ratio follows as two numbers. */
const EXTENDED_SAR = 255

/** Sample aspect ratios by aspect_ratio_idc - 1 (Table E-1). */
// prettier-ignore
const SAMPLE_ASPECT_RATIOS: readonly (readonly [number, number])[] = [
  [1, 1], [12, 11], [10, 11], [16, 11], [40, 33], [24, 11], [20, 11], [32, 11],
  [80, 33], [18, 11], [15, 11], [64, 33], [160, 99], [4, 3], [3, 2], [2, 1],
]

/**
 * Reads aspect ratio, overscan, video signal type and chroma location, at the start of the VUI.
 *
 * @returns what is present; nothing when the VUI is truncated
 */
export function readVideoSignal(reader: BitReader): VideoSignal {
  const sampleAspectRatio = reader.readFlag() ? readSampleAspectRatio(reader) : undefined
  if (reader.readFlag()) reader.skipBits(1) // overscan_appropriate_flag
  const color = reader.readFlag() ? readColorDescription(reader) : undefined
  if (reader.readFlag()) {
    reader.readUe() // chroma_sample_loc_type_top_field
    reader.readUe() // chroma_sample_loc_type_bottom_field
  }
  if (reader.overrun) return {}
  return { ...(sampleAspectRatio && { sampleAspectRatio }), ...(color && { color }) }
}

/** @returns undefined when the ratio is unspecified or reserved */
function readSampleAspectRatio(reader: BitReader): SampleAspectRatio | undefined {
  const code = reader.readBits(8)
  const [width, height] =
    code === EXTENDED_SAR
      ? [reader.readBits(16), reader.readBits(16)]
      : (SAMPLE_ASPECT_RATIOS[code - 1] ?? [0, 0])
  return width > 0 && height > 0 ? { width, height } : undefined
}

/** Reads video_signal_type. @returns undefined without a colour description */
function readColorDescription(reader: BitReader): ColorDescription | undefined {
  reader.skipBits(3) // video_format
  const fullRange = reader.readFlag()
  if (!reader.readFlag()) return undefined
  const primaries = reader.readBits(8)
  const transfer = reader.readBits(8)
  return { primaries, transfer, matrix: reader.readBits(8), fullRange }
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
