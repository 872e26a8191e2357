/**
 * Header of a PES packet without a DTS (ISO/IEC 13818-1 2.4.3.6).
 *
 *   | 000001 24 | stream id 8 | length 16 |
 *   | 10 2 | 0 3 | data alignment 1 | 0 2 | PTS only 10 2 | 0 6 | header data length 5 8 | PTS 40 |
 *
 * @module
 */
import { PES_PREFIX_BYTES, writeTimestamp } from '../pes.ts'

export function encodePesHeader(streamId: number, ptsTicks: number, payloadBytes: number): Buffer {
  const header = Buffer.alloc(PES_PREFIX_BYTES + 8)
  header.writeUInt32BE(0x100 | streamId, 0)
  header.writeUInt16BE(header.length - PES_PREFIX_BYTES + payloadBytes, 4)
  header.writeUInt8(0x84, 6)
  header.writeUInt8(0x80, 7)
  header.writeUInt8(5, 8)
  header.writeUInt8(0x20, 9)
  writeTimestamp(header, 9, ptsTicks)
  return header
}
