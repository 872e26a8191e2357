/**
 * Loss list: sequence numbers of packets missing at the receiver, in the control information field of a NAK
 * (draft-sharabayko-srt 3.2.5, appendix A).
 *
 *   |0|          a single lost packet           |
 *   |1|  first of a range  |0|  last of a range |
 *
 * @module
 */
import { sequenceDistance } from './counters.ts'
import { HEADER_BYTES, MAX_PAYLOAD_BYTES } from './packet.ts'

/** Inclusive run of lost packets; `first === last` for a single one. */
export interface LossRange {
  readonly first: number
  readonly last: number
}

/** Bit that marks the first sequence number of a range. */
const RANGE = 0x80000000

const MAX_WORDS = MAX_PAYLOAD_BYTES / 4

/** Number of ranges of two or more packets that fit one datagram. */
export const MAX_LOSS_RANGES = MAX_WORDS / 2

/**
 * @returns ranges in the peer's order, sorted or not; undefined if the list is empty or not whole 4-byte words, or if
 *   a range lacks its last number or ends before it begins
 */
export function decodeLossList(datagram: Buffer): LossRange[] | undefined {
  const bytes = datagram.length - HEADER_BYTES
  if (bytes < 4 || bytes % 4 !== 0) return undefined
  const ranges: LossRange[] = []
  for (let offset = HEADER_BYTES; offset < datagram.length; offset += 4) {
    const word = datagram.readUInt32BE(offset)
    if (word < RANGE) {
      ranges.push({ first: word, last: word })
      continue
    }
    offset += 4
    if (offset === datagram.length) return undefined
    const first = word - RANGE
    const last = datagram.readUInt32BE(offset)
    if (last >= RANGE || sequenceDistance(first, last) < 0) return undefined
    ranges.push({ first, last })
  }
  return ranges
}

/** @returns control information field of a NAK, with the first ranges that fit one datagram */
export function encodeLossList(ranges: readonly LossRange[]): Buffer {
  const bytes = Buffer.allocUnsafe(Math.min(ranges.length * 2, MAX_WORDS) * 4)
  let offset = 0
  for (const { first, last } of ranges) {
    if (offset + (first === last ? 4 : 8) > bytes.length) break
    if (first !== last) offset = bytes.writeUInt32BE((RANGE | first) >>> 0, offset)
    offset = bytes.writeUInt32BE(last, offset)
  }
  return bytes.subarray(0, offset)
}
