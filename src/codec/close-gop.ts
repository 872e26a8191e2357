/**
 * Key frames that begin a GOP of their own, wherever they are repeated.
 *
 * @module
 */
import { findStartCode, START_CODE } from './annex-b.ts'
import type { VideoCodec } from './parameter-sets.ts'

/** Values of nal_unit_type (H.264 Table 7-1, H.265 Table 7-1). */
const H264_IDR = 5
const H265_BLA_W_LP = 16
const H265_BLA_N_LP = 18
const H265_CRA = 21

/**
 * Changes CRA pictures to BLA pictures without leading pictures, as where bitstreams are spliced (H.265 7.4.2.2, 8.1.3): pictures
 * before them may have any order of presentation. Both have the same syntax.
 *
 * @param payload  key frame in a byte stream; changed in place
 * @returns whether a decoder begins anew with it; not with an I picture of H.264 that is no IDR picture
 */
export function closeGop(codec: VideoCodec, payload: Buffer): boolean {
  let isClosed = false
  for (let at = findStartCode(payload, 0); at !== -1; at = findStartCode(payload, at + 3)) {
    const headerAt = at + START_CODE.length
    const header = payload[headerAt] ?? 0
    if (codec === 'h264') {
      isClosed ||= (header & 0x1f) === H264_IDR
      continue
    }
    const type = (header >> 1) & 0x3f
    if (type === H265_CRA) payload[headerAt] = (header & 0x81) | (H265_BLA_N_LP << 1)
    isClosed ||= type >= H265_BLA_W_LP && type <= H265_CRA
  }
  return isClosed
}
