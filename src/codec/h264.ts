/**
 * H.264 access units: can a decoder start here, and the parameter set that comes along (ITU-T H.264 7.3.1, 7.3.3,
 * D.1.8). The encoder's own flags are not asked: `random_access_indicator` is set by many on pictures that are none.
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { nalHeads, unescapeNal } from './annex-b.ts'

/** `nal_unit_type` (Table 7-1). */
const NalType = { SLICE: 1, PARTITION_A: 2, IDR_SLICE: 5, SEI: 6, SPS: 7 } as const

/** `payloadType` of the recovery point SEI message (D.1.8). */
const RECOVERY_POINT = 6

/** Bytes that hold `first_mb_in_slice` and `slice_type`, whatever their values. */
const SLICE_HEAD_BYTES = 16

/** A parameter set or SEI NAL unit that is longer is read in part. */
const MAX_GATHERED_BYTES = 4096

/** What stands before the first slice of an access unit. */
export interface H264AccessUnit {
  /**
   * An IDR picture, or an I picture from which decoding is exact at once (recovery point with `recovery_frame_cnt` 0,
   * as open GOPs have it). Intra refresh is neither.
   */
  readonly randomAccess: boolean
  /** Sequence parameter set as sent, with NAL header. */
  readonly sps?: Buffer
}

/** @param chunks  the access unit in any pieces; read up to its first slice */
export function inspectH264AccessUnit(chunks: Iterable<Uint8Array>): H264AccessUnit {
  let sps: Buffer | undefined
  let exactRecovery = false
  for (const nal of nalHeads(chunks, bytesWanted)) {
    switch (nal[0]! & 0x1f) {
      case NalType.SPS:
        sps ??= nal
        break
      case NalType.SEI:
        exactRecovery ||= hasExactRecoveryPoint(nal)
        break
      case NalType.IDR_SLICE:
        return { randomAccess: firstSlice(nal).startsPicture, sps }
      default: {
        const { startsPicture, intra } = firstSlice(nal)
        return { randomAccess: exactRecovery && startsPicture && intra, sps }
      }
    }
  }
  return { randomAccess: false, sps }
}

function bytesWanted(header: number): number {
  switch (header & 0x1f) {
    case NalType.SPS:
    case NalType.SEI:
      return MAX_GATHERED_BYTES
    case NalType.SLICE:
    case NalType.PARTITION_A:
    case NalType.IDR_SLICE:
      return SLICE_HEAD_BYTES
    default:
      return 0
  }
}

/** Slice header up to `slice_type` (7.3.3). A PES that begins within a picture begins with a later macroblock. */
function firstSlice(nal: Buffer): { startsPicture: boolean; intra: boolean } {
  const reader = new BitReader(unescapeNal(nal.subarray(1)))
  const startsPicture = reader.readUe() === 0
  const type = reader.readUe()
  // Table 7-6: 2 is an I slice, 7 says that all slices of the picture are.
  return { startsPicture: startsPicture && !reader.overrun, intra: type === 2 || type === 7 }
}

/**
 * SEI messages (7.3.2.3.1): type and size are each a run of FF bytes plus a last one.
 *
 *   | FF … | type | FF … | size | payload … |
 */
function hasExactRecoveryPoint(nal: Buffer): boolean {
  const bytes = unescapeNal(nal.subarray(1))
  let at = 0
  const readRun = (): number => {
    let value = 0
    while (bytes[at] === 0xff) {
      value += 255
      at++
    }
    return value + (bytes[at++] ?? 0)
  }
  // rbsp_trailing_bits take the last byte.
  while (at < bytes.length - 1) {
    const type = readRun()
    const sizeBytes = readRun()
    if (type === RECOVERY_POINT) {
      const reader = new BitReader(bytes.subarray(at, at + sizeBytes))
      return reader.readUe() === 0 && !reader.overrun
    }
    at += sizeBytes
  }
  return false
}
