/**
 * Fields of interlaced H.264: which two access units are one frame (ITU-T H.264 3.30, 7.3.3, 7.4.3).
 *
 * A slice header begins
 *
 *   | first_mb ue | slice_type ue | pic_parameter_set_id ue | colour_plane 2 | frame_num … | field_pic 1 | bottom 1 | …
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { decodeH264FieldSyntax, type H264SliceSyntax } from './h264-sps.ts'
import type { ParameterSet } from './parameter-sets.ts'

/** `nal_unit_type` of an IDR slice: only the first field of a frame is one (7.4.1.2.4). */
const IDR_SLICE = 5

interface Field {
  readonly frameNumber: number
  readonly isBottom: boolean
}

/** Show it every whole access unit of a stream, in decoding order. */
export class H264FieldPairs {
  #spsNal: Buffer | undefined
  /** Undefined while fields cannot be coded. */
  #syntax: H264SliceSyntax | undefined
  /** A first field that waits for its second. */
  #first: Field | undefined

  /**
   * @param slice  head of its first slice, with NAL header
   * @param sets  that came along
   * @returns whether it completes the frame that the access unit before it began
   */
  isSecondField(slice: Buffer, sets: readonly ParameterSet[]): boolean {
    const sps = sets.find(({ kind }) => kind === 'sps')
    if (sps !== undefined && this.#spsNal?.equals(sps.nal) !== true) {
      this.#spsNal = sps.nal
      this.#syntax = decodeH264FieldSyntax(sps.nal)
    }
    if (this.#syntax === undefined) return false
    const field = decodeField(slice, this.#syntax)
    const first = this.#first
    const completes =
      first !== undefined &&
      field?.frameNumber === first.frameNumber &&
      field.isBottom !== first.isBottom &&
      (slice[0]! & 0x1f) !== IDR_SLICE
    this.#first = completes ? undefined : field
    return completes
  }
}

/** @returns undefined for a frame, and where the header cannot be read */
function decodeField(slice: Buffer, syntax: H264SliceSyntax): Field | undefined {
  const reader = new BitReader(unescapeNal(slice.subarray(1)))
  reader.readUe() // first_mb_in_slice
  reader.readUe() // slice_type
  reader.readUe() // pic_parameter_set_id
  if (syntax.separateColourPlanes) reader.skipBits(2) // colour_plane_id
  const frameNumber = reader.readBits(syntax.frameNumberBits)
  const isField = reader.readFlag()
  const isBottom = reader.readFlag()
  return isField && !reader.overrun ? { frameNumber, isBottom } : undefined
}
