/**
 * H.264 access units: random access points and parameter sets (ITU-T H.264 7.3.1, 7.3.3, D.1.8). The
 * `random_access_indicator` of the transport stream is ignored: many encoders set it on other pictures too.
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { MAX_HEAD_BYTES, MAX_NAL_UNITS, nalHeads, unescapeNal } from './annex-b.ts'
import { isParameterSet, isSlice, nalRole } from './nal-unit.ts'
import { readParameterSet, type ParameterSet } from './parameter-sets.ts'
import { carriesCaptions, readPreferredTransfer, seiMessages, SeiType } from './sei.ts'
import type { VideoAccessUnit } from './video-access-unit.ts'

/** Number of bytes copied of a slice: more than NAL header and slice header take up to the field flags. */
const SLICE_HEAD_BYTES = 16

/**
 * Reads an access unit up to its first slice. Random access points are IDR pictures, and I pictures with a recovery
 * point of `recovery_frame_cnt` 0, which start open GOPs. A recovery point of intra refresh is not a random access
 * point.
 *
 * @param bytes  the access unit in a byte stream; nothing that is returned is a view of it
 */
export function inspectH264AccessUnit(bytes: Buffer): VideoAccessUnit {
  const parameterSets: ParameterSet[] = []
  let recoveryFrames: number | undefined
  let closedCaptions = false
  let preferredTransfer: number | undefined
  let slice: Buffer | undefined
  let nalUnits = 0
  let nalBytes = 0
  for (const nal of nalHeads(bytes, bytesWanted)) {
    if (++nalUnits > MAX_NAL_UNITS) break
    nalBytes += nal.length
    const role = nalRole('h264', nal[0]!)
    if (isParameterSet(role)) {
      if (nal.length < MAX_HEAD_BYTES)
        parameterSets.push(readParameterSet('h264', role, Buffer.from(nal)))
    } else if (role === 'sei') {
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
  const isIdr = slice !== undefined && nalRole('h264', slice[0]!) === 'sync'
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
  const role = nalRole('h264', header)
  if (isSlice(role)) return SLICE_HEAD_BYTES
  return isParameterSet(role) || role === 'sei' ? MAX_HEAD_BYTES : 0
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
