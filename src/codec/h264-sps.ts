/**
 * H.264 sequence parameter set: codec string, picture size, frame rate, dynamic range (ITU-T H.264 7.3.2.1.1, Annex E).
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

/** Values of `profile_idc` whose SPS has the fields from `chroma_format_idc` to the scaling lists (7.3.2.1.1). */
const HIGH_PROFILES = new Set([44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244])

/** Maximum size of `frame_num`: `log2_max_frame_num_minus4` is at most 12 (7.4.2.1.1). */
const MAX_FRAME_NUMBER_BITS = 16

/** Maximum size of `pic_order_cnt_lsb`: `log2_max_pic_order_cnt_lsb_minus4` is at most 12 (7.4.2.1.1). */
const MAX_ORDER_BITS = 16

/** Maximum of `num_ref_frames_in_pic_order_cnt_cycle` (7.4.2.1.1). */
const MAX_ORDER_COUNT_CYCLE = 255

/**
 * Decodes a sequence parameter set.
 *
 * @param nal  the NAL unit with its header, emulation prevention bytes still in it
 * @returns undefined when it ends before the VUI parameters or contains impossible values
 */
export function decodeH264Sps(nal: Buffer): VideoParameters | undefined {
  return decodeH264Sequence(nal)?.video
}

/** Decodes a sequence parameter set as `decodeH264Sps` does, with the format of its samples. */
export function decodeH264Sequence(nal: Buffer): SequenceParameters | undefined {
  const reader = new BitReader(unescapeNal(nal.subarray(1)))
  const head = readHead(reader)
  if (head === undefined) return undefined
  const { profile, constraints, level, chroma } = head

  const widthInMacroblocks = reader.readUe() + 1
  const heightInMapUnits = reader.readUe() + 1
  const frameMacroblocksOnly = reader.readFlag()
  if (!frameMacroblocksOnly) reader.skipBits(1) // mb_adaptive_frame_field_flag
  reader.skipBits(1) // direct_8x8_inference_flag
  const crop = reader.readFlag() ? readCrop(reader) : NO_CROP

  // 7.4.2.1.1: with field coding, a map unit is two macroblocks high, and the cropping unit doubles.
  const fieldFactor = frameMacroblocksOnly ? 1 : 2
  const width = widthInMacroblocks * 16 - (crop[0] + crop[1]) * chroma.cropUnitX
  const height =
    heightInMapUnits * fieldFactor * 16 - (crop[2] + crop[3]) * chroma.cropUnitY * fieldFactor
  if (reader.overrun || !isPictureSize(width, height)) return undefined

  const codecString = `avc1.${Buffer.from([profile, constraints, level]).toString('hex')}`
  const { frameRate, signal } = reader.readFlag() ? readVui(reader) : NO_VUI
  const videoRange = videoRangeOf(signal.color?.transfer)
  const { format: chromaFormat, lumaBitDepth, chromaBitDepth } = chroma
  const rate = frameRate === undefined ? {} : { frameRate }
  const video = { codecString, width, height, ...rate, videoRange }
  return { video, chromaFormat, lumaBitDepth, chromaBitDepth, signal }
}

/** Parameters for reading slice headers (7.3.3) up to the order of presentation. */
export interface H264SliceSyntax {
  readonly separateColorPlanes: boolean
  /** Size of `frame_num` in bits. */
  readonly frameNumberBits: number
  /** Whether pictures may be fields. */
  readonly hasFields: boolean
  /** `pic_order_cnt_type` */
  readonly orderType: number
  /** Size of `pic_order_cnt_lsb` in bits; 0 for another type than 0. */
  readonly orderBits: number
  /** Whether slices of type 1 have `delta_pic_order_cnt`. */
  readonly hasOrderDeltas: boolean
}

/** @returns undefined when the set does not parse */
export function decodeH264SliceSyntax(nal: Buffer): H264SliceSyntax | undefined {
  const reader = new BitReader(unescapeNal(nal.subarray(1)))
  const head = readHead(reader)
  reader.readUe() // pic_width_in_mbs_minus1
  reader.readUe() // pic_height_in_map_units_minus1
  const frameMacroblocksOnly = reader.readFlag()
  if (head === undefined || reader.overrun) return undefined
  const { chroma, frameNumberBits, order } = head
  const { separatePlanes: separateColorPlanes } = chroma
  return { separateColorPlanes, frameNumberBits, hasFields: !frameMacroblocksOnly, ...order }
}

type PictureOrder = Pick<H264SliceSyntax, 'orderType' | 'orderBits' | 'hasOrderDeltas'>

interface Head {
  readonly profile: number
  readonly constraints: number
  readonly level: number
  readonly chroma: Chroma
  readonly frameNumberBits: number
  readonly order: PictureOrder
}

/** Reads the set up to the picture size. @returns undefined when it contains impossible values */
function readHead(reader: BitReader): Head | undefined {
  const profile = reader.readBits(8)
  const constraints = reader.readBits(8)
  const level = reader.readBits(8)
  reader.readUe() // seq_parameter_set_id
  const chroma = HIGH_PROFILES.has(profile) ? readHighProfileFields(reader) : YUV_420
  if (chroma === undefined) return undefined
  const frameNumberBits = reader.readUe() + 4
  const order = readPictureOrder(reader)
  if (frameNumberBits > MAX_FRAME_NUMBER_BITS || order === undefined) return undefined
  reader.readUe() // max_num_ref_frames
  reader.skipBits(1) // gaps_in_frame_num_value_allowed_flag
  return { profile, constraints, level, chroma, frameNumberBits, order }
}

/** Format of samples, with the size of a cropping unit in luma samples (Table 6-1, equations 7-19 to 7-22). */
interface Chroma {
  /** `chroma_format_idc`. */
  readonly format: number
  readonly lumaBitDepth: number
  readonly chromaBitDepth: number
  readonly cropUnitX: number
  readonly cropUnitY: number
  readonly separatePlanes: boolean
}

const YUV_420: Chroma = {
  format: 1,
  lumaBitDepth: 8,
  chromaBitDepth: 8,
  cropUnitX: 2,
  cropUnitY: 2,
  separatePlanes: false,
}

/** Maximum of `chroma_format_idc`, and of `bit_depth_luma_minus8` and its kin (7.4.2.1.1). */
const MAX_CHROMA_FORMAT = 3
const MAX_BIT_DEPTH_MINUS_8 = 6

const NO_CROP = [0, 0, 0, 0] as const

/** @returns undefined for impossible values */
function readHighProfileFields(reader: BitReader): Chroma | undefined {
  const format = reader.readUe()
  const separatePlanes = format === 3 && reader.readFlag()
  const lumaMinus8 = reader.readUe()
  const chromaMinus8 = reader.readUe()
  if (format > MAX_CHROMA_FORMAT) return undefined
  if (Math.max(lumaMinus8, chromaMinus8) > MAX_BIT_DEPTH_MINUS_8) return undefined
  reader.skipBits(1) // qpprime_y_zero_transform_bypass_flag
  if (reader.readFlag()) skipScalingMatrix(reader, format === 3 ? 12 : 8)
  return {
    format,
    lumaBitDepth: lumaMinus8 + 8,
    chromaBitDepth: chromaMinus8 + 8,
    cropUnitX: format === 1 || format === 2 ? 2 : 1,
    cropUnitY: format === 1 ? 2 : 1,
    separatePlanes,
  }
}

/** Skips scaling lists, which end early when the next scale becomes 0 (7.3.2.1.1.1). */
function skipScalingMatrix(reader: BitReader, lists: number): void {
  for (let list = 0; list < lists; list++) {
    if (!reader.readFlag()) continue
    const size = list < 6 ? 16 : 64
    let scale = 8
    for (let i = 0; i < size && scale !== 0; i++) scale = (scale + reader.readSe()) & 0xff
  }
}

/** @returns undefined for impossible values */
function readPictureOrder(reader: BitReader): PictureOrder | undefined {
  const orderType = reader.readUe()
  const orderBits = orderType === 0 ? reader.readUe() + 4 : 0
  if (orderBits > MAX_ORDER_BITS) return undefined
  if (orderType !== 1) return { orderType, orderBits, hasOrderDeltas: false }
  const hasOrderDeltas = !reader.readFlag() // delta_pic_order_always_zero_flag
  reader.readSe() // offset_for_non_ref_pic
  reader.readSe() // offset_for_top_to_bottom_field
  const cycle = reader.readUe()
  if (cycle > MAX_ORDER_COUNT_CYCLE) return undefined
  for (let i = 0; i < cycle; i++) reader.readSe()
  return { orderType, orderBits, hasOrderDeltas }
}

/** Reads the cropping offsets left, right, top and bottom. */
function readCrop(reader: BitReader): readonly [number, number, number, number] {
  return [reader.readUe(), reader.readUe(), reader.readUe(), reader.readUe()]
}

/** Reads the VUI parameters (E.1.1) up to their timing information, whose tick is a field (E.2.1). */
function readVui(reader: BitReader): VuiParameters {
  const signal = readVideoSignal(reader)
  const frameRate = readFrameRate(reader, 2)
  return { signal, ...(frameRate !== undefined && { frameRate }) }
}
