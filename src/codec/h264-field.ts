/**
 * Field pairs of interlaced H.264: two access units that form one frame (ITU-T H.264 3.30, 7.3.3, 7.4.3).
 *
 * Start of a slice header:
 *
 *   | first_mb ue | slice_type ue | pic_parameter_set_id ue | colour_plane 2 | frame_num … | field_pic 1 | bottom 1 | …
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { decodeH264FieldSyntax, type H264FieldSyntax } from './h264-sps.ts'
import type { ParameterSet } from './parameter-sets.ts'

/** `nal_unit_type` of an IDR slice, which a second field never has (7.4.1.2.4). */
const IDR_SLICE = 5

interface Field {
  readonly frameNumber: number
  readonly isBottom: boolean
}

/** Detector of second fields: `push` the first slice of every access unit in decoding order. */
export class H264FieldPairs {
  #spsNal: Buffer | undefined
  /** Syntax of the latest SPS; undefined before the first, and if the sequence has no field pictures. */
  #syntax: H264FieldSyntax | undefined
  /** Field of the previous access unit, if it may be a first field. */
  #first: Field | undefined

  /**
   * @param slice  start of the first slice, with NAL header
   * @param sets  parameter sets of the access unit
   * @returns whether the access unit is the second field of the frame that the previous access unit started
   */
  push(slice: Buffer, sets: readonly ParameterSet[]): boolean {
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

/** @returns undefined for a frame picture and for a truncated header */
function decodeField(slice: Buffer, syntax: H264FieldSyntax): Field | undefined {
  const reader = new BitReader(unescapeNal(slice.subarray(1)))
  reader.readUe() // first_mb_in_slice
  reader.readUe() // slice_type
  reader.readUe() // pic_parameter_set_id
  if (syntax.separateColorPlanes) reader.skipBits(2) // colour_plane_id
  const frameNumber = reader.readBits(syntax.frameNumberBits)
  const isField = reader.readFlag()
  const isBottom = reader.readFlag()
  return isField && !reader.overrun ? { frameNumber, isBottom } : undefined
}
