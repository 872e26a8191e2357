/**
 * H.265 sequence parameter set: codec string, picture size, frame rate, dynamic range (ITU-T H.265 7.3.2.2, Annex E).
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { readH265CodecString } from './h265-profile.ts'
import { skipShortTermReferenceSets } from './h265-reference-sets.ts'
import { isPictureSize, type SequenceParameters, type VideoParameters } from './video-parameters.ts'
import { videoRangeOf } from './video-range.ts'
import { NO_VUI, readFrameRate, readVideoSignal, type VuiParameters } from './vui.ts'

/** Maximum of `num_long_term_ref_pics_sps` (7.4.3.2.1). */
const MAX_LONG_TERM_PICTURES = 32

/** Maximum of both bit depths (7.4.3.2.1). */
const MAX_BIT_DEPTH = 16

/** SubWidthC and SubHeightC by `chroma_format_idc` (Table 6-1). */
const CHROMA_SUBSAMPLING = [
  [1, 1],
  [2, 2],
  [2, 1],
  [1, 1],
] as const

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
  reader.skipBits(4) // sps_video_parameter_set_id
  const maxSubLayersMinus1 = reader.readBits(3)
  reader.skipBits(1) // sps_temporal_id_nesting_flag
  const codecString = readH265CodecString(reader, maxSubLayersMinus1)
  reader.readUe() // sps_seq_parameter_set_id

  const chromaFormat = reader.readUe()
  const subsampling = CHROMA_SUBSAMPLING[chromaFormat]
  if (chromaFormat === 3) reader.skipBits(1) // separate_colour_plane_flag
  let width = reader.readUe()
  let height = reader.readUe()
  if (subsampling === undefined) return undefined
  if (reader.readFlag()) {
    width -= (reader.readUe() + reader.readUe()) * subsampling[0]
    height -= (reader.readUe() + reader.readUe()) * subsampling[1]
  }
  if (reader.overrun || !isPictureSize(width, height)) return undefined

  const lumaBitDepth = reader.readUe() + 8
  const chromaBitDepth = reader.readUe() + 8
  if (Math.max(lumaBitDepth, chromaBitDepth) > MAX_BIT_DEPTH) return undefined
  const { frameRate, signal } = readVui(reader, maxSubLayersMinus1)
  const videoRange = videoRangeOf(signal.color?.transfer)
  const rate = frameRate === undefined ? {} : { frameRate }
  const video = { codecString, width, height, ...rate, videoRange }
  return { video, chromaFormat, lumaBitDepth, chromaBitDepth, signal }
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
export function skipSubLayerOrdering(reader: BitReader, maxSubLayersMinus1: number): void {
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
