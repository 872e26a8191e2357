/**
 * H.264 access units: random access points and parameter sets (ITU-T H.264 7.3.1, 7.3.3, D.1.8). The
 * `random_access_indicator` of the transport stream is ignored: many encoders set it on other pictures too.
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { MAX_HEAD_BYTES, MAX_NAL_UNITS, nalHeads, unescapeNal } from './annex-b.ts'
import type { ParameterSet } from './parameter-sets.ts'
import { carriesCaptions, readPreferredTransfer, seiMessages, SeiType } from './sei.ts'
import type { VideoAccessUnit } from './video-access-unit.ts'

/** `nal_unit_type` (Table 7-1). */
const NalType = { SLICE: 1, PARTITION_A: 2, IDR_SLICE: 5, SEI: 6, SPS: 7, PPS: 8 } as const

/** Number of bytes copied of a slice: more than NAL header and slice header take up to the field flags. */
const SLICE_HEAD_BYTES = 16

/** Offset of `seq_parameter_set_id` after the NAL header: profile, constraints and level precede it. */
const SPS_ID_AT = 3

/**
 * Reads an access unit up to its first slice. Random access points are IDR pictures, and I pictures with a recovery
 * point of `recovery_frame_cnt` 0, which start open GOPs. A recovery point of intra refresh is not a random access
 * point.
 *
 * @param chunks  the access unit in any pieces
 */
export function inspectH264AccessUnit(chunks: Iterable<Uint8Array>): VideoAccessUnit {
  const parameterSets: ParameterSet[] = []
  let recoveryFrames: number | undefined
  let closedCaptions = false
  let preferredTransfer: number | undefined
  let slice: Buffer | undefined
  let nalUnits = 0
  let nalBytes = 0
  for (const nal of nalHeads(chunks, bytesWanted)) {
    if (++nalUnits > MAX_NAL_UNITS) break
    nalBytes += nal.length
    const type = nal[0]! & 0x1f
    if (type === NalType.SPS || type === NalType.PPS) {
      if (nal.length === MAX_HEAD_BYTES) continue
      parameterSets.push(readH264ParameterSet(type === NalType.SPS ? 'sps' : 'pps', nal))
    } else if (type === NalType.SEI) {
      for (const message of seiMessages(nal.subarray(1))) {
        recoveryFrames ??= readRecoveryFrames(message.type, message.payload)
        closedCaptions ||= carriesCaptions(message)
        preferredTransfer ??= readPreferredTransfer(message)
      }
    } else {
      slice = nal
      break
    }
  }
  const { startsPicture, intra } = firstSlice(slice)
  const isIdr = slice !== undefined && (slice[0]! & 0x1f) === NalType.IDR_SLICE
  return {
    randomAccess: startsPicture && (isIdr || (intra && recoveryFrames === 0)),
    gradualRefresh: startsPicture && !isIdr && recoveryFrames !== undefined && recoveryFrames > 0,
    decodableLeading: false,
    startsPicture,
    closedCaptions,
    preferredTransfer,
    nalUnits,
    nalBytes,
    parameterSets,
  }
}

function bytesWanted(header: number): number {
  switch (header & 0x1f) {
    case NalType.SPS:
    case NalType.PPS:
    case NalType.SEI:
      return MAX_HEAD_BYTES
    case NalType.SLICE:
    case NalType.PARTITION_A:
    case NalType.IDR_SLICE:
      return SLICE_HEAD_BYTES
    default:
      return 0
  }
}

/** Reads the id of a parameter set (7.3.2.1.1, 7.3.2.2). */
export function readH264ParameterSet(kind: 'sps' | 'pps', nal: Buffer): ParameterSet {
  const head = unescapeNal(nal.subarray(1, 1 + SLICE_HEAD_BYTES))
  const idAt = kind === 'sps' ? SPS_ID_AT : 0
  return { kind, id: new BitReader(head.subarray(idAt)).readUe(), nal }
}

/** Reads a slice header up to `slice_type` (7.3.3). Only the first slice of a picture has `first_mb_in_slice` 0. */
function firstSlice(nal: Buffer | undefined): { startsPicture: boolean; intra: boolean } {
  if (nal === undefined) return { startsPicture: false, intra: false }
  const reader = new BitReader(unescapeNal(nal.subarray(1)))
  const startsPicture = reader.readUe() === 0
  const type = reader.readUe()
  // Table 7-6: 2 is an I slice, 7 an I slice in a picture of I slices only.
  return { startsPicture: startsPicture && !reader.overrun, intra: type === 2 || type === 7 }
}

/** @returns `recovery_frame_cnt`; undefined for another message or a truncated one */
function readRecoveryFrames(type: number, payload: Buffer): number | undefined {
  if (type !== SeiType.RECOVERY_POINT) return undefined
  const reader = new BitReader(payload)
  const frames = reader.readUe()
  return reader.overrun ? undefined : frames
}
