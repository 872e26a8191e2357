/**
 * Pictures of H.264 by their slices: where one begins, which are two fields of one frame, and the order of presentation
 * (ITU-T H.264 7.3.3, 7.4.1.2.4, 8.2.1.1).
 *
 * Start of a slice header:
 *
 *   | first_mb ue | slice_type ue | pic_parameter_set_id ue | colour_plane 2 | frame_num … | field_pic 1 | bottom 1 |
 *   | idr_pic_id ue | pic_order_cnt_lsb … | delta_pic_order_cnt_bottom se | …
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { decodeH264SliceSyntax, type H264SliceSyntax } from './h264-sps.ts'
import type { ParameterSet } from './parameter-sets.ts'
import { PictureOrder, type Picture } from './picture.ts'

/** `nal_unit_type` of an IDR slice, which a second field never has (7.4.1.2.4). */
const IDR_SLICE = 5

/** Largest id of a parameter set: of a PPS (7.4.2.2). */
const MAX_SET_ID = 255

/** Number of bytes of a slice that its header takes up to the order of presentation, emulation prevention included. */
export const H264_SLICE_HEAD_BYTES = 40

/** Fields of a slice header; 0 and false where it does not have them, or the parameter sets are unknown. */
interface SliceHeader {
  readonly startsAtFirst: boolean
  readonly setId: number
  readonly hasSet: boolean
  readonly isIdr: boolean
  /** Whether other pictures refer to it: `nal_ref_idc` is not 0. */
  readonly isReference: boolean
  readonly frameNumber: number
  readonly isField: boolean
  readonly isBottom: boolean
  readonly idrId: number
  /** `pic_order_cnt_lsb` */
  readonly orderLow: number
  /** `delta_pic_order_cnt[0]` */
  readonly orderDelta: number
  /** `delta_pic_order_cnt_bottom`, or `delta_pic_order_cnt[1]` */
  readonly bottomDelta: number
  /** Syntax of its SPS; undefined while that is unknown. */
  readonly syntax: H264SliceSyntax | undefined
}

/** Picture parameter set, as far as slice headers depend on it (7.3.2.2). */
interface PictureSet {
  readonly sequenceId: number
  /** `bottom_field_pic_order_in_frame_present_flag` */
  readonly ordersFields: boolean
}

/** Inputs: the parameter sets and slices of all access units in decoding order. */
export class H264Pictures {
  readonly #sequences = new Map<number, H264SliceSyntax | undefined>()
  readonly #sets = new Map<number, PictureSet>()
  #latest: SliceHeader | undefined
  /** Whether the latest picture has its slice with `first_mb_in_slice` 0. */
  #hasFirst = false
  /** Whether the latest picture is a first field, whose second may follow. */
  #awaitsField = false
  readonly #order = new PictureOrder()

  pushSet({ kind, id, nal }: ParameterSet): void {
    if (id > MAX_SET_ID) return
    if (kind === 'sps') this.#sequences.set(id, decodeH264SliceSyntax(nal))
    else if (kind === 'pps') this.#sets.set(id, decodePictureSet(nal))
  }

  /**
   * @param nal  start of a slice, with NAL header
   * @returns the picture that begins with it; undefined if it continues the one before
   */
  pushSlice(nal: Buffer): Picture | undefined {
    const slice = this.#readHeader(nal)
    const before = this.#latest
    this.#latest = slice
    // Encoders that send IDR pictures alone may leave `idr_pic_id` as it is.
    const repeatsFirst = this.#hasFirst && slice.startsAtFirst
    if (before !== undefined && !repeatsFirst && !differ(before, slice)) {
      this.#hasFirst ||= slice.startsAtFirst
      return undefined
    }
    this.#hasFirst = slice.startsAtFirst
    const isSecondField =
      this.#awaitsField &&
      before !== undefined &&
      slice.isField &&
      !slice.isIdr &&
      slice.frameNumber === before.frameNumber &&
      slice.isBottom !== before.isBottom
    this.#awaitsField = slice.isField && !isSecondField
    const order = this.#orderOf(slice)
    return { startsFrame: !isSecondField, startsOrder: slice.isIdr, order, hasSet: slice.hasSet }
  }

  #readHeader(nal: Buffer): SliceHeader {
    const reader = new BitReader(unescapeNal(nal.subarray(1, H264_SLICE_HEAD_BYTES)))
    const startsAtFirst = reader.readUe() === 0
    reader.readUe() // slice_type
    const setId = reader.readUe()
    const set = this.#sets.get(setId)
    const syntax = set && this.#sequences.get(set.sequenceId)
    const isIdr = (nal[0]! & 0x1f) === IDR_SLICE
    const isReference = (nal[0]! & 0x60) !== 0
    const hasSet = set !== undefined
    let frameNumber = 0
    let isField = false
    let isBottom = false
    let idrId = 0
    let orderLow = 0
    let orderDelta = 0
    let bottomDelta = 0
    if (set !== undefined && syntax !== undefined) {
      if (syntax.separateColorPlanes) reader.skipBits(2) // colour_plane_id
      frameNumber = reader.readBits(syntax.frameNumberBits)
      isField = syntax.hasFields && reader.readFlag()
      isBottom = isField && reader.readFlag()
      if (isIdr) idrId = reader.readUe()
      const { orderType } = syntax
      if (orderType === 0) orderLow = reader.readBits(syntax.orderBits)
      const hasDeltas = orderType === 0 || (orderType === 1 && syntax.hasOrderDeltas)
      if (orderType === 1 && hasDeltas) orderDelta = reader.readSe()
      if (hasDeltas && set.ordersFields && !isField) bottomDelta = reader.readSe()
    }
    return {
      startsAtFirst,
      setId,
      hasSet,
      isIdr,
      isReference,
      frameNumber,
      isField,
      isBottom,
      idrId,
      orderLow,
      orderDelta,
      bottomDelta,
      syntax,
    }
  }

  /**
   * @returns order of the top field, or only field, for type 0 (8.2.1.1); undefined for others: those of type 2 are presented
   *   as they are decoded, and those of type 1, which nobody sends, are taken for such
   */
  #orderOf({ syntax, orderLow, isIdr, isReference }: SliceHeader): number | undefined {
    if (syntax?.orderType !== 0) return undefined
    return this.#order.push(orderLow, syntax.orderBits, { startsOrder: isIdr, isReference })
  }
}

/** Whether two slices in a row belong to different pictures (7.4.1.2.4). */
function differ(a: SliceHeader, b: SliceHeader): boolean {
  // Without the parameter sets: only the first slice of a picture has `first_mb_in_slice` 0.
  if (a.syntax === undefined || b.syntax === undefined) return b.startsAtFirst
  return (
    a.frameNumber !== b.frameNumber ||
    a.setId !== b.setId ||
    a.isField !== b.isField ||
    a.isBottom !== b.isBottom ||
    a.isReference !== b.isReference ||
    a.isIdr !== b.isIdr ||
    a.idrId !== b.idrId ||
    a.orderLow !== b.orderLow ||
    a.orderDelta !== b.orderDelta ||
    a.bottomDelta !== b.bottomDelta
  )
}

function decodePictureSet(nal: Buffer): PictureSet {
  const reader = new BitReader(unescapeNal(nal.subarray(1)))
  reader.readUe() // pic_parameter_set_id
  const sequenceId = reader.readUe()
  reader.skipBits(1) // entropy_coding_mode_flag
  return { sequenceId, ordersFields: reader.readFlag() }
}
