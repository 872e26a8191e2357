/**
 * H.265 access units: random access points and parameter sets (ITU-T H.265 7.3.1, 7.4.2.2).
 *
 *   | 0 1 | nal_unit_type 6 | nuh_layer_id 6 | temporal_id_plus1 3 |
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { MAX_HEAD_BYTES, MAX_NAL_UNITS, nalHeads } from './annex-b.ts'
import { isParameterSet, isSlice, nalRole } from './nal-unit.ts'
import { readParameterSet, type ParameterSet } from './parameter-sets.ts'
import { carriesCaptions, readPreferredTransfer, seiMessages, SeiType } from './sei.ts'
import type { VideoAccessUnit } from './video-access-unit.ts'

/** `nal_unit_type` of RADL pictures (Table 7-1). */
const NalType = { RADL_N: 6, RADL_R: 7 } as const

/** Size of the NAL header and the byte that contains `first_slice_segment_in_pic_flag`. */
const SLICE_HEAD_BYTES = 3

/**
 * Reads an access unit up to its first slice. Random access points are IRAP pictures: IDR, BLA or CRA. CRA is included,
 * since encoders with open GOPs send only CRA pictures after the first IDR picture. A decoder that starts at a CRA
 * picture skips the RASL pictures that follow it.
 *
 * @param bytes  the access unit in a byte stream; nothing that is returned is a view of it
 */
export function inspectH265AccessUnit(bytes: Buffer): VideoAccessUnit {
  const parameterSets: ParameterSet[] = []
  let recoveryPictures: number | undefined
  let closedCaptions = false
  let preferredTransfer: number | undefined
  let slice: Buffer | undefined
  let nalUnits = 0
  let nalBytes = 0
  for (const nal of nalHeads(bytes, bytesWanted)) {
    if (++nalUnits > MAX_NAL_UNITS) break
    nalBytes += nal.length
    const role = nalRole('h265', nal[0]!, nal[1])
    if (isParameterSet(role)) {
      if (nal.length < MAX_HEAD_BYTES)
        parameterSets.push(readParameterSet('h265', role, Buffer.from(nal)))
    } else if (role === 'sei') {
      for (const message of seiMessages(nal.subarray(2))) {
        recoveryPictures ??= readRecoveryPictures(message.type, message.payload)
        closedCaptions ||= carriesCaptions(message)
        preferredTransfer ??= readPreferredTransfer(message)
      }
    } else if (isSlice(role)) {
      slice = nal
      break
    }
  }
  const type = slice && (slice[0]! >> 1) & 0x3f
  const startsPicture = ((slice?.[2] ?? 0) & 0x80) !== 0
  const isIrap = slice !== undefined && nalRole('h265', slice[0]!) === 'sync'
  return {
    randomAccess: startsPicture && isIrap,
    gradualRefresh: startsPicture && !isIrap && (recoveryPictures ?? 0) !== 0,
    decodableLeading: type === NalType.RADL_N || type === NalType.RADL_R,
    startsPicture,
    closedCaptions,
    preferredTransfer,
    nalUnits,
    nalBytes,
    parameterSets,
  }
}

function bytesWanted(header: number): number {
  const role = nalRole('h265', header)
  if (isSlice(role)) return SLICE_HEAD_BYTES
  return isParameterSet(role) || role === 'sei' ? MAX_HEAD_BYTES : 0
}

/** @returns `recovery_poc_cnt` (D.2.8); undefined for another message or a truncated one */
function readRecoveryPictures(type: number, payload: Buffer): number | undefined {
  if (type !== SeiType.RECOVERY_POINT) return undefined
  const reader = new BitReader(payload)
  const pictures = reader.readSe()
  return reader.overrun ? undefined : pictures
}
