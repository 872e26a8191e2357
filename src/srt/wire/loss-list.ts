/**
 * Which sequence numbers the receiver misses: the information field of NAK (draft-sharabayko-srt 3.2.5, appendix A).
 *
 *   |0|          a single lost packet           |
 *   |1|  first of a range  |0|  last of a range |
 *
 * @module
 */
import { sequenceDistance } from '../../binary/sequence-number.ts'
import { HEADER_BYTES, MAX_PAYLOAD_BYTES } from './packet.ts'

/** Inclusive run of lost packets; `first === last` for a single one. */
export interface LossRange {
  readonly first: number
  readonly last: number
}

const RANGE = 0x80000000

const MAX_WORDS = MAX_PAYLOAD_BYTES / 4

/** As many always fit one datagram. */
export const MAX_LOSS_RANGES = MAX_WORDS / 2

/**
 * @returns the ranges as the peer sent them, sorted or not; undefined where a range lacks its last number, ends
 *   before it begins, or nothing is listed at all
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

/** @returns the information field of a NAK that lists as many of the ranges, in order, as fit one datagram */
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
