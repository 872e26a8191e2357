/**
 * Program map table: the elementary streams of one program (ISO/IEC 13818-1 2.4.4.9).
 *
 *   | reserved 3 | PCR PID 13 | reserved 4 | program info length 12 | descriptors … |
 *   | stream type 8 | reserved 3 | PID 13 | reserved 4 | ES info length 12 | descriptors … | repeated
 *
 * @module
 */
import { FIRST_FREE_PID, NULL_PID, PID_MASK } from '../packet.ts'

export const PMT_TABLE_ID = 0x02

const HEADER_BYTES = 4
const STREAM_HEADER_BYTES = 5

export interface ProgramMap {
  readonly programNumber: number
  /** `NULL_PID` when the program has no PCR. */
  readonly pcrPid: number
  /** Streams in the order sent, each PID once. */
  readonly streams: readonly StreamEntry[]
}

export interface StreamEntry {
  readonly pid: number
  readonly streamType: number
  readonly descriptors: Buffer
}

/**
 * @param programNumber  `table_id_extension` of the section
 * @param body  section body; the descriptors are views into it
 * @returns undefined when the lengths in the body do not add up to its size
 */
export function decodePmt(programNumber: number, body: Buffer): ProgramMap | undefined {
  if (body.length < HEADER_BYTES) return undefined
  const pcrPid = body.readUInt16BE(0) & PID_MASK
  const streams = new Map<number, StreamEntry>()
  let at = HEADER_BYTES + (body.readUInt16BE(2) & 0x0fff)
  while (at + STREAM_HEADER_BYTES <= body.length) {
    const streamType = body[at]!
    const pid = body.readUInt16BE(at + 1) & PID_MASK
    const begin = at + STREAM_HEADER_BYTES
    at = begin + (body.readUInt16BE(at + 3) & 0x0fff)
    const usable = pid >= FIRST_FREE_PID && pid !== NULL_PID && !streams.has(pid)
    if (usable) streams.set(pid, { pid, streamType, descriptors: body.subarray(begin, at) })
  }
  return at === body.length ? { programNumber, pcrPid, streams: [...streams.values()] } : undefined
}
