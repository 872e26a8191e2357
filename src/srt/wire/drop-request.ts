/**
 * Drop request (DROPREQ, draft-sharabayko-srt 3.2.9): packets that the sender has dropped and will not retransmit.
 *
 *   | first sequence number | last sequence number |
 *
 * The type-specific information of the header is the message number of the packets, or 0.
 *
 * @module
 */
import { sequenceDistance } from './counters.ts'
import type { LossRange } from './loss-list.ts'
import { HEADER_BYTES } from './packet.ts'

/** @returns undefined if the datagram is too short, a number exceeds 31 bits, or the range ends before it begins */
export function decodeDropRequest(datagram: Buffer): LossRange | undefined {
  if (datagram.length < HEADER_BYTES + 8) return undefined
  const first = datagram.readInt32BE(HEADER_BYTES)
  const last = datagram.readInt32BE(HEADER_BYTES + 4)
  if (first < 0 || last < 0 || sequenceDistance(first, last) < 0) return undefined
  return { first, last }
}

/** @returns the control information field of a drop request */
export function encodeDropRequest({ first, last }: LossRange): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeInt32BE(first, 0)
  bytes.writeInt32BE(last, 4)
  return bytes
}
