/**
 * Pictures of H.265 by their slice segments: where one begins, and the order of presentation (ITU-T H.265 7.3.6.1,
 * 7.4.2.4.5, 8.3.1).
 *
 * Start of the header of the first slice segment of a picture:
 *
 *   | first 1 | no_output_of_prior_pics 1 (IRAP) | pic_parameter_set_id ue | extra bits … | slice_type ue |
 *   | pic_output 1 | colour_plane 2 | slice_pic_order_cnt_lsb … (not IDR) | …
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { decodeH265SliceSyntax, type H265SliceSyntax } from './h265-parameter-sets.ts'
import type { ParameterSet } from './parameter-sets.ts'
import { PictureOrder, type Picture } from './picture.ts'

/** `nal_unit_type` (Table 7-1): BLA and IDR pictures begin a new order; IDR pictures do not send it. */
const NalType = {
  FIRST_RADL: 6,
  LAST_RASL: 9,
  LAST_NON_REFERENCE: 14,
  FIRST_BLA: 16,
  FIRST_IDR: 19,
  LAST_IDR: 20,
  LAST_IRAP: 23,
} as const

/** Largest id of a parameter set: of a PPS (7.4.3.3.1). */
const MAX_SET_ID = 63

/** Number of bytes of a slice segment that its header takes up to the order of presentation. */
export const H265_SLICE_HEAD_BYTES = 24

/** Picture parameter set, as far as slice segment headers depend on it (7.3.2.3.1). */
interface PictureSet {
  readonly sequenceId: number
  /** `output_flag_present_flag` */
  readonly hasOutputFlag: boolean
  /** `num_extra_slice_header_bits` */
  readonly extraBits: number
}

/** Inputs: the parameter sets and slice segments of the base layer in decoding order. */
export class H265Pictures {
  readonly #sequences = new Map<number, H265SliceSyntax | undefined>()
  readonly #sets = new Map<number, PictureSet>()
  readonly #order = new PictureOrder()

  pushSet({ kind, id, nal }: ParameterSet): void {
    if (id > MAX_SET_ID) return
    if (kind === 'sps') this.#sequences.set(id, decodeH265SliceSyntax(nal))
    else if (kind === 'pps') this.#sets.set(id, decodePictureSet(nal))
  }

  /**
   * @param nal  start of a slice segment, with NAL header
   * @returns the picture that begins with it; undefined if it continues the one before
   */
  pushSlice(nal: Buffer): Picture | undefined {
    const reader = new BitReader(unescapeNal(nal.subarray(2, H265_SLICE_HEAD_BYTES)))
    if (!reader.readFlag()) return undefined // first_slice_segment_in_pic_flag
    const type = (nal[0]! >> 1) & 0x3f
    const startsOrder = type >= NalType.FIRST_BLA && type <= NalType.LAST_IDR
    if (type >= NalType.FIRST_BLA && type <= NalType.LAST_IRAP) reader.skipBits(1)
    const set = this.#sets.get(reader.readUe())
    const syntax = set && this.#sequences.get(set.sequenceId)
    if (set === undefined || syntax === undefined) {
      return { startsFrame: true, startsOrder, order: undefined, hasSet: set !== undefined }
    }
    reader.skipBits(set.extraBits)
    reader.readUe() // slice_type
    if (set.hasOutputFlag) reader.skipBits(1)
    if (syntax.separateColorPlanes) reader.skipBits(2)
    const isIdr = type >= NalType.FIRST_IDR && type <= NalType.LAST_IDR
    const low = isIdr ? 0 : reader.readBits(syntax.orderBits)
    const picture = { startsOrder, isReference: (nal[1]! & 0x07) === 1 && isReference(type) }
    const order = this.#order.push(low, syntax.orderBits, picture)
    return { startsFrame: true, startsOrder, order, hasSet: true }
  }
}

/** Whether later pictures may be ordered by one of sub-layer 0: it is neither leading nor of the sub-layer alone. */
function isReference(type: number): boolean {
  if (type >= NalType.FIRST_RADL && type <= NalType.LAST_RASL) return false
  return type > NalType.LAST_NON_REFERENCE || type % 2 === 1
}

function decodePictureSet(nal: Buffer): PictureSet {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  reader.readUe() // pps_pic_parameter_set_id
  const sequenceId = reader.readUe()
  reader.skipBits(1) // dependent_slice_segments_enabled_flag
  const hasOutputFlag = reader.readFlag()
  return { sequenceId, hasOutputFlag, extraBits: reader.readBits(3) }
}
