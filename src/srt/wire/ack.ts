/**
 * Acknowledgement (draft-sharabayko-srt 3.2.4). The kind follows from the length: light ACK 4 bytes, small 16, full 28.
 *
 *   | next expected sequence number | RTT (us) | RTT variance (us) | free buffer (packets) |
 *   | receiving rate (packets/s) | link capacity (packets/s) | receiving rate (bytes/s) |
 *
 * @module
 */
import { MAX_SEQUENCE_NUMBER } from './counters.ts'
import { HEADER_BYTES } from './packet.ts'

export const LIGHT_ACK_BYTES = 4
export const FULL_ACK_BYTES = 28

/** Fields of small and full ACKs; a light ACK has none of them. */
interface AckReport {
  readonly rttUs: number
  readonly rttVarianceUs: number
  /** Free receive buffer in packets, the sender's flow window. */
  readonly freePackets: number
}

export interface Ack {
  /** First sequence number that the receiver still expects. */
  readonly nextExpected: number
  readonly report?: AckReport
}

/** Receiving rate that a full ACK reports. */
export interface ReceivingRate {
  readonly packetsPerSec: number
  readonly bytesPerSec: number
}

/** Reported link capacity: libsrt's initial value. It has no effect in live mode. */
const LINK_CAPACITY_PACKETS_PER_SEC = 1000

/** @returns undefined if the contents are empty or not whole 4-byte words */
export function decodeAck(datagram: Buffer): Ack | undefined {
  const bytes = datagram.length - HEADER_BYTES
  if (bytes < LIGHT_ACK_BYTES || bytes % 4 !== 0) return undefined
  const nextExpected = datagram.readUInt32BE(HEADER_BYTES) & MAX_SEQUENCE_NUMBER
  if (bytes < 16) return { nextExpected }
  return {
    nextExpected,
    report: {
      rttUs: datagram.readUInt32BE(HEADER_BYTES + 4),
      rttVarianceUs: datagram.readUInt32BE(HEADER_BYTES + 8),
      freePackets: datagram.readUInt32BE(HEADER_BYTES + 12),
    },
  }
}

/** Writes the control information field of a light ACK after the header. */
export function writeLightAck(datagram: Buffer, nextExpected: number): void {
  datagram.writeInt32BE(nextExpected, HEADER_BYTES)
}

/** Writes the control information field of a full ACK after the header. */
export function writeFullAck(
  datagram: Buffer,
  nextExpected: number,
  report: AckReport,
  rate: ReceivingRate,
): void {
  datagram.writeInt32BE(nextExpected, HEADER_BYTES)
  datagram.writeUInt32BE(report.rttUs >>> 0, HEADER_BYTES + 4)
  datagram.writeUInt32BE(report.rttVarianceUs >>> 0, HEADER_BYTES + 8)
  datagram.writeUInt32BE(report.freePackets, HEADER_BYTES + 12)
  datagram.writeUInt32BE(rate.packetsPerSec >>> 0, HEADER_BYTES + 16)
  datagram.writeUInt32BE(LINK_CAPACITY_PACKETS_PER_SEC, HEADER_BYTES + 20)
  datagram.writeUInt32BE(rate.bytesPerSec >>> 0, HEADER_BYTES + 24)
}
