/**
 * H.265 access units: can a decoder start here, and the parameter sets that come along (ITU-T H.265 7.3.1, 7.4.2.2).
 *
 *   | 0 | nal_unit_type 6 | nuh_layer_id 6 | temporal_id_plus1 3 |
 *
 * @module
 */
import { nalHeads } from './annex-b.ts'

/** `nal_unit_type` (Table 7-1). */
const NalType = { FIRST_IRAP: 16, LAST_IRAP: 21, LAST_VCL: 31, VPS: 32, SPS: 33 } as const

/** NAL header and the byte that begins with `first_slice_segment_in_pic_flag`. */
const SLICE_HEAD_BYTES = 3

/** A parameter set that is longer is read in part. */
const MAX_GATHERED_BYTES = 4096

/** What stands before the first slice of an access unit. */
export interface H265AccessUnit {
  /**
   * An intra random access picture: IDR, BLA or CRA. CRA too, for encoders with open GOPs send no other after the
   * first; its leading pictures cannot be decoded by who starts there and are skipped by decoders.
   */
  readonly randomAccess: boolean
  /** Parameter sets as sent, with NAL header. */
  readonly vps?: Buffer
  readonly sps?: Buffer
}

/** @param chunks  the access unit in any pieces; read up to its first slice */
export function inspectH265AccessUnit(chunks: Iterable<Uint8Array>): H265AccessUnit {
  let vps: Buffer | undefined
  let sps: Buffer | undefined
  for (const nal of nalHeads(chunks, bytesWanted)) {
    const type = nalType(nal[0]!)
    if (!isBaseLayer(nal)) continue
    if (type === NalType.VPS) vps ??= nal
    else if (type === NalType.SPS) sps ??= nal
    else {
      const startsPicture = ((nal[2] ?? 0) & 0x80) !== 0
      const intra = type >= NalType.FIRST_IRAP && type <= NalType.LAST_IRAP
      return { randomAccess: startsPicture && intra, vps, sps }
    }
  }
  return { randomAccess: false, vps, sps }
}

function bytesWanted(header: number): number {
  const type = nalType(header)
  if (type <= NalType.LAST_VCL) return SLICE_HEAD_BYTES
  return type === NalType.VPS || type === NalType.SPS ? MAX_GATHERED_BYTES : 0
}

function nalType(header: number): number {
  return (header >> 1) & 0x3f
}

/** Other layers (scalable, multi-view) refine a picture that can be decoded without them. */
function isBaseLayer(nal: Buffer): boolean {
  return (nal[0]! & 1) === 0 && (nal[1] ?? 0) >> 3 === 0
}
