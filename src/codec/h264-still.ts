/**
 * H.264 pictures that repeat the picture before: one P slice of skipped macroblocks, to which no other picture refers
 * (ITU-T H.264 7.3.3, 7.4.4). They hold the last picture of video that stays away, and change nothing for the video after
 * them.
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { nalHeads, START_CODE, unescapeNal } from './annex-b.ts'
import { decodeH264SliceSyntax, type H264SliceSyntax } from './h264-sps.ts'

const NalType = { SLICE: 1, IDR_SLICE: 5, SPS: 7, PPS: 8 } as const

/** Number of bytes read of each NAL unit. */
const NAL_BYTES = 256

/** Largest picture, of level 6.2 (Table A-1). */
const MAX_MACROBLOCKS = 139_264

/** Fields of a PPS that slice headers depend on (7.3.2.2). */
interface PictureSet {
  readonly arithmetic: boolean
  readonly ordersFields: boolean
  readonly isWeighted: boolean
  readonly initialQp: number
  readonly controlsDeblocking: boolean
  readonly hasRedundant: boolean
}

interface Slice {
  readonly setId: number
  readonly isReference: boolean
  readonly frameNumber: number
  readonly order: number
}

/**
 * @param key  start of the newest key frame, with its parameter sets, in byte stream format
 * @param latest  start of the newest frame, which may be the same
 * @returns NAL unit of a picture that repeats the newest one to which others refer; undefined where none is known: for
 *   interlaced video, slice groups, several parameter sets, or an order of presentation of type 1
 */
export function encodeH264Still(key: Buffer, latest: Buffer): Buffer | undefined {
  let syntax: H264SliceSyntax | undefined
  const sets = new Map<number, PictureSet>()
  let slice: Buffer | undefined
  for (const nal of nalHeads([key, START_CODE, latest], () => NAL_BYTES)) {
    const type = nal[0]! & 0x1f
    if (type === NalType.SPS) syntax = decodeH264SliceSyntax(nal)
    else if (type === NalType.PPS) {
      const reader = new BitReader(unescapeNal(nal.subarray(1)))
      const id = reader.readUe()
      const set = readPictureSet(reader)
      if (set === undefined) return undefined
      sets.set(id, set)
    } else if (type === NalType.SLICE || type === NalType.IDR_SLICE) slice = nal
  }
  if (syntax === undefined || slice === undefined) return undefined
  if (syntax.hasFields || syntax.orderType === 1 || syntax.separateColorPlanes) return undefined
  if (syntax.macroblocks > MAX_MACROBLOCKS) return undefined
  const read = readSlice(slice, syntax)
  const set = sets.get(read.setId)
  return set && encodeStill(syntax, set, read)
}

function readPictureSet(reader: BitReader): PictureSet | undefined {
  reader.readUe() // seq_parameter_set_id
  const arithmetic = reader.readFlag()
  const ordersFields = reader.readFlag()
  if (reader.readUe() > 0) return undefined // num_slice_groups_minus1
  reader.readUe() // num_ref_idx_l0_default_active_minus1
  reader.readUe() // num_ref_idx_l1_default_active_minus1
  const isWeighted = reader.readFlag()
  reader.skipBits(2) // weighted_bipred_idc
  const initialQp = 26 + reader.readSe()
  reader.readSe() // pic_init_qs_minus26
  reader.readSe() // chroma_qp_index_offset
  const controlsDeblocking = reader.readFlag()
  reader.skipBits(1) // constrained_intra_pred_flag
  const hasRedundant = reader.readFlag()
  if (reader.overrun) return undefined
  return { arithmetic, ordersFields, isWeighted, initialQp, controlsDeblocking, hasRedundant }
}

function readSlice(nal: Buffer, syntax: H264SliceSyntax): Slice {
  const reader = new BitReader(unescapeNal(nal.subarray(1)))
  reader.readUe() // first_mb_in_slice
  reader.readUe() // slice_type
  const setId = reader.readUe()
  const frameNumber = reader.readBits(syntax.frameNumberBits)
  if ((nal[0]! & 0x1f) === NalType.IDR_SLICE) reader.readUe() // idr_pic_id
  const order = reader.readBits(syntax.orderBits)
  return { setId, isReference: (nal[0]! & 0x60) !== 0, frameNumber, order }
}

function encodeStill(syntax: H264SliceSyntax, set: PictureSet, latest: Slice): Buffer {
  // 7.4.3: the number goes on behind a picture to which others refer.
  const frameNumber = latest.frameNumber + (latest.isReference ? 1 : 0)
  const bits = new Bits()
  bits.ue(0) // first_mb_in_slice
  bits.ue(5) // slice_type: P in all slices
  bits.ue(latest.setId)
  bits.write(frameNumber, syntax.frameNumberBits)
  // Between the pictures that are sent, which are 2 apart: further repetitions need no other.
  if (syntax.orderType === 0) bits.write(latest.order + 1, syntax.orderBits)
  if (syntax.orderType === 0 && set.ordersFields) bits.se(0) // delta_pic_order_cnt_bottom
  if (set.hasRedundant) bits.ue(0) // redundant_pic_cnt
  bits.write(1, 1) // num_ref_idx_active_override_flag
  bits.ue(0) // num_ref_idx_l0_active_minus1
  bits.write(0, 1) // ref_pic_list_modification_flag_l0
  if (set.isWeighted) {
    bits.ue(0) // luma_log2_weight_denom
    if (syntax.hasColor) bits.ue(0) // chroma_log2_weight_denom
    bits.write(0, syntax.hasColor ? 2 : 1) // no weights
  }
  if (set.arithmetic) bits.ue(0) // cabac_init_idc
  bits.se(SLICE_QP - set.initialQp)
  if (set.controlsDeblocking) bits.ue(1) // disable_deblocking_filter_idc
  if (set.arithmetic) encodeSkipped(bits, syntax.macroblocks)
  else {
    bits.ue(syntax.macroblocks) // mb_skip_run
    bits.write(1, 1) // rbsp_stop_one_bit
  }
  return Buffer.concat([Buffer.from([NalType.SLICE]), escapeNal(bits.toBytes())])
}

/** QP with which `mb_skip_flag` is probable from the start: its state is 42 (9.3.1.1 with m 23 and n 33). */
const SLICE_QP = 51
const FIRST_STATE = 42
const LAST_STATE = 62

/** Ranges of the improbable symbol, from state 42 on (Table 9-44). */
const RANGES = [
  [16, 20, 23, 27],
  [15, 19, 22, 25],
  [14, 18, 21, 24],
  [14, 17, 20, 23],
  [13, 16, 19, 22],
  [12, 15, 18, 21],
  [12, 14, 17, 20],
  [11, 14, 16, 19],
  [11, 13, 15, 18],
  [10, 12, 15, 17],
  [10, 12, 14, 16],
  [9, 11, 13, 15],
  [9, 11, 12, 14],
  [8, 10, 12, 14],
  [8, 9, 11, 13],
  [7, 9, 11, 12],
  [7, 9, 10, 12],
  [7, 8, 10, 11],
  [6, 8, 9, 11],
  [6, 7, 9, 10],
  [6, 7, 8, 9],
] as const

/** Encodes macroblocks that are all skipped, with the stop bit, by arithmetic coding (9.3.4.2). */
function encodeSkipped(bits: Bits, macroblocks: number): void {
  while (!bits.aligned) bits.write(1, 1) // cabac_alignment_one_bit
  let low = 0
  let range = 510
  let isFirst = true
  let outstanding = 0
  const put = (bit: number) => {
    if (!isFirst) bits.write(bit, 1)
    isFirst = false
    for (; outstanding > 0; outstanding--) bits.write(1 - bit, 1)
  }
  const normalize = () => {
    for (; range < 256; range *= 2, low *= 2) {
      if (low < 256) put(0)
      else if (low >= 512) {
        low -= 512
        put(1)
      } else {
        low -= 256
        outstanding++
      }
    }
  }
  for (let index = 0; index < macroblocks; index++) {
    const state = Math.min(FIRST_STATE + index, LAST_STATE)
    range -= RANGES[state - FIRST_STATE]![(range >> 6) & 3]! // mb_skip_flag 1
    normalize()
    range -= 2 // end_of_slice_flag
    if (index < macroblocks - 1) normalize()
  }
  low += range
  range = 2
  normalize()
  put((low >> 9) & 1)
  bits.write(((low >> 7) & 3) | 1, 2)
}

/** Inserts emulation prevention bytes (7.4.1). */
function escapeNal(bytes: readonly number[]): Buffer {
  const escaped: number[] = []
  let zeros = 0
  for (const byte of bytes) {
    if (zeros === 2 && byte <= 3) {
      escaped.push(3)
      zeros = 0
    }
    escaped.push(byte)
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return Buffer.from(escaped)
}

/** Writer of bits from front to back. */
class Bits {
  readonly #bytes: number[] = []
  #open = 0
  #count = 0

  get aligned(): boolean {
    return this.#count === 0
  }

  /** @param count  number of bits, 0 to 32 */
  write(value: number, count: number): void {
    for (let at = count - 1; at >= 0; at--) {
      this.#open = this.#open * 2 + ((value >>> at) & 1)
      if (++this.#count < 8) continue
      this.#bytes.push(this.#open)
      this.#open = 0
      this.#count = 0
    }
  }

  ue(value: number): void {
    const length = 32 - Math.clz32(value + 1)
    this.write(0, length - 1)
    this.write(value + 1, length)
  }

  se(value: number): void {
    this.ue(value > 0 ? 2 * value - 1 : -2 * value)
  }

  /** @returns the bytes, filled up with zeros */
  toBytes(): readonly number[] {
    return this.aligned ? this.#bytes : [...this.#bytes, this.#open << (8 - this.#count)]
  }
}
