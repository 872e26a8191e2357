/**
 * H.265 video and sequence parameter sets: codec string, picture size, frame rate, dynamic range (ITU-T H.265 7.3.2.1,
 * 7.3.2.2, Annex E).
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import {
  isPictureSize,
  type SequenceParameters,
  type VideoParameters,
  videoRangeOf,
} from './video-parameters.ts'
import { NO_VUI, readFrameRate, readVideoSignal, type VuiParameters } from './vui.ts'

/** Maximum of `vps_num_layer_sets_minus1` (7.4.3.1). */
const MAX_LAYER_SETS_MINUS1 = 1023

/** Maximum of `num_short_term_ref_pic_sets` (7.4.3.2.1). */
const MAX_REFERENCE_SETS = 64

/** Maximum number of pictures in a set: the maximum size of the decoded picture buffer (7.4.8). */
const MAX_REFERENCE_PICTURES = 16

/** Maximum of `num_long_term_ref_pics_sps` (7.4.3.2.1). */
const MAX_LONG_TERM_PICTURES = 32

/** Maximum size of `slice_pic_order_cnt_lsb` (7.4.3.2.1). */
const MAX_ORDER_BITS = 16

/** Maximum of both bit depths (7.4.3.2.1). */
const MAX_BIT_DEPTH = 16

/** SubWidthC and SubHeightC by `chroma_format_idc` (Table 6-1). */
const CHROMA_SUBSAMPLING = [
  [1, 1],
  [2, 2],
  [2, 1],
  [1, 1],
] as const

/** Letters of `general_profile_space` in the CODECS value. */
const SPACE_LETTERS = ['', 'A', 'B', 'C'] as const

/**
 * Decodes a sequence parameter set of the base layer.
 *
 * @param nal  the NAL unit with its header, emulation prevention bytes still in it
 * @returns undefined when the fields up to the cropped picture size are truncated or contain impossible values
 */
export function decodeH265Sps(nal: Buffer): VideoParameters | undefined {
  return decodeH265Sequence(nal)?.video
}

/**
 * Decodes a sequence parameter set as `decodeH265Sps` does, with the format of its samples.
 *
 * @returns undefined also for bit depths above 16
 */
export function decodeH265Sequence(nal: Buffer): SequenceParameters | undefined {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  const head = readHead(reader)
  if (head === undefined || reader.overrun) return undefined
  const { codecString, width, height, chromaFormat, lumaBitDepth, chromaBitDepth } = head
  if (!isPictureSize(width, height)) return undefined
  if (Math.max(lumaBitDepth, chromaBitDepth) > MAX_BIT_DEPTH) return undefined
  const { frameRate, signal } = readVui(reader, head.maxSubLayersMinus1)
  const videoRange = videoRangeOf(signal.color?.transfer)
  const rate = frameRate === undefined ? {} : { frameRate }
  const video = { codecString, width, height, ...rate, videoRange }
  return { video, chromaFormat, lumaBitDepth, chromaBitDepth, signal }
}

/** Parameters of a sequence for reading slice segment headers (7.3.6.1) up to the order of presentation. */
export interface H265SliceSyntax {
  readonly separateColorPlanes: boolean
  /** Size of `slice_pic_order_cnt_lsb` in bits. */
  readonly orderBits: number
}

/** @returns undefined when the set does not parse */
export function decodeH265SliceSyntax(nal: Buffer): H265SliceSyntax | undefined {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  const head = readHead(reader)
  const orderBits = reader.readUe() + 4
  if (head === undefined || reader.overrun || orderBits > MAX_ORDER_BITS) return undefined
  return { separateColorPlanes: head.separatePlanes, orderBits }
}

/** Reads the set up to the bit depths. @returns undefined for an impossible chroma format */
function readHead(reader: BitReader) {
  reader.skipBits(4) // sps_video_parameter_set_id
  const maxSubLayersMinus1 = reader.readBits(3)
  reader.skipBits(1) // sps_temporal_id_nesting_flag
  const codecString = readH265CodecString(reader, maxSubLayersMinus1)
  reader.readUe() // sps_seq_parameter_set_id

  const chromaFormat = reader.readUe()
  const subsampling = CHROMA_SUBSAMPLING[chromaFormat]
  if (subsampling === undefined) return undefined
  const separatePlanes = chromaFormat === 3 && reader.readFlag()
  let width = reader.readUe()
  let height = reader.readUe()
  if (reader.readFlag()) {
    width -= (reader.readUe() + reader.readUe()) * subsampling[0]
    height -= (reader.readUe() + reader.readUe()) * subsampling[1]
  }
  const [lumaBitDepth, chromaBitDepth] = [reader.readUe() + 8, reader.readUe() + 8]
  const size = { width, height, lumaBitDepth, chromaBitDepth }
  return { maxSubLayersMinus1, codecString, chromaFormat, separatePlanes, ...size }
}

/**
 * Decodes the frame rate of a video parameter set: some encoders send it nowhere else.
 *
 * @param nal  the NAL unit with its header, emulation prevention bytes still in it
 * @returns frames per second; undefined when the set has no timing or does not parse
 */
export function decodeH265VpsFrameRate(nal: Buffer): number | undefined {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  reader.skipBits(12) // vps_video_parameter_set_id, base layer flags, vps_max_layers_minus1
  const maxSubLayersMinus1 = reader.readBits(3)
  reader.skipBits(17) // vps_temporal_id_nesting_flag, vps_reserved_0xffff_16bits
  readH265CodecString(reader, maxSubLayersMinus1)
  skipSubLayerOrdering(reader, maxSubLayersMinus1)
  const maxLayerId = reader.readBits(6)
  const layerSetsMinus1 = reader.readUe()
  if (layerSetsMinus1 > MAX_LAYER_SETS_MINUS1) return undefined
  reader.skipBits(layerSetsMinus1 * (maxLayerId + 1)) // layer_id_included_flag
  return readFrameRate(reader, 1)
}

/** Reads the rest of the set up to the frame rate in its VUI parameters (E.2.1). */
function readVui(reader: BitReader, maxSubLayersMinus1: number): VuiParameters {
  if (!skipToVui(reader, maxSubLayersMinus1)) return NO_VUI
  if (!reader.readFlag()) return NO_VUI // vui_parameters_present_flag
  const signal = readVideoSignal(reader)
  reader.skipBits(3) // neutral_chroma_indication_flag, field_seq_flag, frame_field_info_present_flag
  if (reader.readFlag()) for (let side = 0; side < 4; side++) reader.readUe() // default window
  const frameRate = readFrameRate(reader, 1)
  return { signal, ...(frameRate !== undefined && { frameRate }) }
}

/** @returns false when the set is truncated or a count exceeds its maximum */
function skipToVui(reader: BitReader, maxSubLayersMinus1: number): boolean {
  const orderCountBits = reader.readUe() + 4
  skipSubLayerOrdering(reader, maxSubLayersMinus1)
  for (let size = 0; size < 6; size++) reader.readUe() // coding and transform block sizes and depths
  if (reader.readFlag() && reader.readFlag()) skipScalingLists(reader)
  reader.skipBits(2) // amp_enabled_flag, sample_adaptive_offset_enabled_flag
  if (reader.readFlag()) {
    reader.skipBits(8) // PCM bit depths
    reader.readUe() // log2_min_pcm_luma_coding_block_size_minus3
    reader.readUe() // log2_diff_max_min_pcm_luma_coding_block_size
    reader.skipBits(1) // pcm_loop_filter_disabled_flag
  }
  if (!skipShortTermReferenceSets(reader)) return false
  if (reader.readFlag()) {
    const longTermPictures = reader.readUe()
    if (longTermPictures > MAX_LONG_TERM_PICTURES) return false
    reader.skipBits(longTermPictures * (orderCountBits + 1))
  }
  reader.skipBits(2) // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
  return !reader.overrun
}

/** Skips the ordering information, sent for every sub-layer or only for the highest; VPS and SPS share this syntax. */
function skipSubLayerOrdering(reader: BitReader, maxSubLayersMinus1: number): void {
  const layers = reader.readFlag() ? maxSubLayersMinus1 + 1 : 1
  for (let i = 0; i < layers * 3; i++) reader.readUe()
}

/** Skips scaling_list_data (7.3.4): six matrices each of 4x4, 8x8 and 16x16, two of 32x32. */
function skipScalingLists(reader: BitReader): void {
  for (let size = 0; size < 4; size++) {
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1) {
      if (!reader.readFlag()) {
        reader.readUe() // scaling_list_pred_matrix_id_delta
        continue
      }
      if (size > 1) reader.readSe() // scaling_list_dc_coef_minus8
      const coefficients = Math.min(64, 1 << (4 + 2 * size))
      for (let i = 0; i < coefficients; i++) reader.readSe()
    }
  }
}

/**
 * Reads a profile_tier_level structure (7.3.3), for the CODECS value (ISO/IEC 14496-15 E.3).
 *
 *   | space 2 | tier 1 | profile 5 | compatibility 32 | constraints 48 | level 8 | sub-layers … |
 *
 * @param maxSubLayersMinus1  0-6
 * @returns for example `hvc1.1.6.L93.90`
 */
export function readH265CodecString(reader: BitReader, maxSubLayersMinus1: number): string {
  const space = SPACE_LETTERS[reader.readBits(2)]!
  const tier = reader.readFlag() ? 'H' : 'L'
  const profile = reader.readBits(5)
  const compatibility = reverseBits32(reader.readBits(32))
  const constraints = Array.from({ length: 6 }, () => reader.readBits(8))
  const level = reader.readBits(8)
  skipSubLayers(reader, maxSubLayersMinus1)

  while (constraints.at(-1) === 0) constraints.pop()
  return ['hvc1', `${space}${profile}`, hex(compatibility), `${tier}${level}`]
    .concat(constraints.map(hex))
    .join('.')
}

function skipSubLayers(reader: BitReader, maxSubLayersMinus1: number): void {
  if (maxSubLayersMinus1 === 0) return
  let bits = 0
  for (let layer = 0; layer < 8; layer++) {
    const hasProfile = reader.readFlag()
    const hasLevel = reader.readFlag()
    if (layer >= maxSubLayersMinus1) continue // reserved_zero_2bits
    bits += (hasProfile ? 88 : 0) + (hasLevel ? 8 : 0)
  }
  reader.skipBits(bits)
}

function reverseBits32(value: number): number {
  let reversed = 0
  for (let bit = 0; bit < 32; bit++) reversed = (reversed << 1) | ((value >>> bit) & 1)
  return reversed >>> 0
}

function hex(value: number): string {
  return value.toString(16).toUpperCase()
}

/**
 * Skips the short-term reference picture sets (7.3.7), which have no length field, to find the VUI after them.
 *
 * @returns false when a count exceeds its maximum
 */
function skipShortTermReferenceSets(reader: BitReader): boolean {
  const sets = reader.readUe()
  if (sets > MAX_REFERENCE_SETS) return false
  let pictures = 0
  for (let set = 0; set < sets; set++) {
    const predicted = set > 0 && reader.readFlag()
    const count = predicted ? skipPredictedSet(reader, pictures) : skipExplicitSet(reader)
    if (count === undefined) return false
    pictures = count
  }
  return true
}

/**
 * Skips a set that is coded as the difference from the previous set.
 *
 * @param pictures  number of pictures in the previous set
 * @returns number of pictures in this set; undefined above the maximum
 */
function skipPredictedSet(reader: BitReader, pictures: number): number | undefined {
  reader.skipBits(1) // delta_rps_sign
  reader.readUe() // abs_delta_rps_minus1
  let count = 0
  for (let picture = 0; picture <= pictures; picture++) {
    const used = reader.readFlag() // used_by_curr_pic_flag
    if (used || reader.readFlag()) count++ // use_delta_flag
  }
  return count > MAX_REFERENCE_PICTURES ? undefined : count
}

function skipExplicitSet(reader: BitReader): number | undefined {
  const pictures = reader.readUe() + reader.readUe() // num_negative_pics, num_positive_pics
  if (pictures > MAX_REFERENCE_PICTURES) return undefined
  for (let picture = 0; picture < pictures; picture++) {
    reader.readUe() // delta_poc_minus1
    reader.skipBits(1) // used_by_curr_pic_flag
  }
  return pictures
}
