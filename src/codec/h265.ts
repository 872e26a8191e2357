/**
 * H.265 access units: random access points and parameter sets (ITU-T H.265 7.3.1, 7.4.2.2).
 *
 *   | 0 1 | nal_unit_type 6 | nuh_layer_id 6 | temporal_id_plus1 3 |
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { MAX_HEAD_BYTES, MAX_NAL_UNITS, nalHeads, unescapeNal } from './annex-b.ts'
import { readH265CodecString } from './h265-parameter-sets.ts'
import type { ParameterSet, ParameterSetKind } from './parameter-sets.ts'
import { carriesCaptions, readPreferredTransfer, seiMessages, SeiType } from './sei.ts'
import type { VideoAccessUnit } from './video-access-unit.ts'

/** `nal_unit_type` (Table 7-1). */
const NalType = {
  RADL_N: 6,
  RADL_R: 7,
  FIRST_IRAP: 16,
  LAST_IRAP: 21,
  LAST_VCL: 31,
  PREFIX_SEI: 39,
} as const

const PARAMETER_SETS: Readonly<Record<number, ParameterSetKind>> = {
  32: 'vps',
  33: 'sps',
  34: 'pps',
}

/** Size of the NAL header and the byte that contains `first_slice_segment_in_pic_flag`. */
const SLICE_HEAD_BYTES = 3

/**
 * Reads an access unit up to its first slice. Random access points are IRAP pictures: IDR, BLA or CRA. CRA is included,
 * since encoders with open GOPs send only CRA pictures after the first IDR picture. A decoder that starts at a CRA
 * picture skips the RASL pictures that follow it.
 *
 * @param chunks  the access unit in any pieces
 */
export function inspectH265AccessUnit(chunks: Iterable<Uint8Array>): VideoAccessUnit {
  const parameterSets: ParameterSet[] = []
  let recoveryPictures: number | undefined
  let closedCaptions = false
  let preferredTransfer: number | undefined
  let slice: Buffer | undefined
  let nalUnits = 0
  let nalBytes = 0
  for (const nal of nalHeads(chunks, bytesWanted)) {
    if (++nalUnits > MAX_NAL_UNITS) break
    nalBytes += nal.length
    const type = nalType(nal[0]!)
    const kind = PARAMETER_SETS[type]
    if (!isBaseLayer(nal)) continue
    if (kind !== undefined) {
      if (nal.length < MAX_HEAD_BYTES) parameterSets.push(readH265ParameterSet(kind, nal))
    } else if (type === NalType.PREFIX_SEI) {
      for (const message of seiMessages(nal.subarray(2))) {
        recoveryPictures ??= readRecoveryPictures(message.type, message.payload)
        closedCaptions ||= carriesCaptions(message)
        preferredTransfer ??= readPreferredTransfer(message)
      }
    } else {
      slice = nal
      break
    }
  }
  const type = slice === undefined ? undefined : nalType(slice[0]!)
  const startsPicture = ((slice?.[2] ?? 0) & 0x80) !== 0
  const isIrap = type !== undefined && type >= NalType.FIRST_IRAP && type <= NalType.LAST_IRAP
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
  const type = nalType(header)
  if (type <= NalType.LAST_VCL) return SLICE_HEAD_BYTES
  return type in PARAMETER_SETS || type === NalType.PREFIX_SEI ? MAX_HEAD_BYTES : 0
}

function nalType(header: number): number {
  return (header >> 1) & 0x3f
}

/** Whether a NAL unit belongs to the base layer, which decodes without the scalable and multi-view layers. */
function isBaseLayer(nal: Buffer): boolean {
  return (nal[0]! & 1) === 0 && (nal[1] ?? 0) >> 3 === 0
}

export function readH265ParameterSet(kind: ParameterSetKind, nal: Buffer): ParameterSet {
  return { kind, id: readId(kind, nal), nal }
}

/** Reads the id of a parameter set (7.3.2.1 to 7.3.2.3). */
function readId(kind: ParameterSetKind, nal: Buffer): number {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  if (kind === 'pps') return reader.readUe()
  const videoSetId = reader.readBits(4)
  if (kind === 'vps') return videoSetId
  const maxSubLayersMinus1 = reader.readBits(3)
  reader.skipBits(1) // sps_temporal_id_nesting_flag
  readH265CodecString(reader, maxSubLayersMinus1)
  return reader.readUe()
}

/** @returns `recovery_poc_cnt` (D.2.8); undefined for another message or a truncated one */
function readRecoveryPictures(type: number, payload: Buffer): number | undefined {
  if (type !== SeiType.RECOVERY_POINT) return undefined
  const reader = new BitReader(payload)
  const pictures = reader.readSe()
  return reader.overrun ? undefined : pictures
}
