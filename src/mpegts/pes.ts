/**
 * PES packets (ISO/IEC 13818-1 2.4.3.6): header fields, and the payload as transport packets carry it.
 *
 *   | 000001 24 | stream id 8 | PES packet length 16 |
 *   | 10 2 | flags 6 | PTS and DTS present 2 | flags 6 | header data length 8 | PTS 40 | DTS 40 | … | payload …
 *
 * A timestamp is 33 bits in 40: | 001x 4 | 32-30 3 | 1 | 29-15 15 | 1 | 14-0 15 | 1 |
 *
 * @module
 */
import { TIME_MODULUS } from './timestamps.ts'
import { PACKET_BYTES, payloadOffset } from './packet.ts'

/** Size of start code, stream_id and PES_packet_length. */
export const PES_PREFIX_BYTES = 6

/** Size of prefix, flags and PES_header_data_length. */
export const FIXED_HEADER_BYTES = 9
/** Largest value of PES_packet_length. */
export const MAX_PES_LENGTH = 0xffff

/** Values of stream_id whose PES packets have no header behind the prefix (Table 2-21, Table 2-22). */
const HEADERLESS_STREAM_IDS = new Set([
  0xbc, // program_stream_map
  0xbe, // padding_stream
  0xbf, // private_stream_2
  0xf0, // ECM
  0xf1, // EMM
  0xf2, // DSM-CC
  0xf8, // H.222.1 type E
  0xff, // program_stream_directory
])

export interface PesHeader {
  /** Offset of the payload in the PES packet. */
  readonly sizeBytes: number
  /** PTS as sent: 33 bits, 90 kHz. */
  readonly ptsTicks?: number
  /** DTS as sent: 33 bits, 90 kHz; present only with a PTS. */
  readonly dtsTicks?: number
}

export function isPesStart(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0 && bytes[at + 1] === 0 && bytes[at + 2] === 1
}

/** @returns size of the PES packet according to PES_packet_length; undefined when it is 0 (unbounded) */
export function readPesSize(bytes: Buffer, at: number): number | undefined {
  const length = bytes.readUInt16BE(at + 4)
  return length === 0 ? undefined : PES_PREFIX_BYTES + length
}

/** @returns undefined for a truncated or malformed header */
export function decodePesHeader(bytes: Buffer): PesHeader | undefined {
  if (bytes.length < PES_PREFIX_BYTES || !isPesStart(bytes, 0)) return undefined
  if (HEADERLESS_STREAM_IDS.has(bytes[3]!)) return { sizeBytes: PES_PREFIX_BYTES }
  if (bytes.length < FIXED_HEADER_BYTES || (bytes[6]! & 0xc0) !== 0x80) return undefined
  const dataBytes = bytes[8]!
  const sizeBytes = FIXED_HEADER_BYTES + dataBytes
  if (bytes.length < sizeBytes) return undefined
  const hasPts = (bytes[7]! & 0x80) !== 0 && dataBytes >= 5
  const hasDts = hasPts && (bytes[7]! & 0x40) !== 0 && dataBytes >= 10
  return {
    sizeBytes,
    ...(hasPts ? { ptsTicks: readTimestamp(bytes, FIXED_HEADER_BYTES) } : {}),
    ...(hasDts ? { dtsTicks: readTimestamp(bytes, FIXED_HEADER_BYTES + 5) } : {}),
  }
}

/**
 * Encodes the header of a PES packet that begins with a frame:
 *
 *   | 000001 24 | stream id 8 | length 16 |
 *   | 10 2 | 0 3 | data alignment 1 | 0 2 | PTS and DTS present 2 | 0 6 | header data length 8 | PTS 40 | DTS 40 |
 *
 * @param payloadBytes  of video, may be too many for the length, which is 0 then
 * @param dtsTicks  where it differs from the PTS
 */
export function encodePesHeader(
  streamId: number,
  ptsTicks: number,
  payloadBytes: number,
  dtsTicks = ptsTicks,
): Buffer {
  const hasDts = dtsTicks !== ptsTicks
  const dataBytes = hasDts ? 10 : 5
  const header = Buffer.alloc(FIXED_HEADER_BYTES + dataBytes)
  const length = header.length - PES_PREFIX_BYTES + payloadBytes
  header.writeUInt32BE(0x100 | streamId, 0)
  header.writeUInt16BE(length > MAX_PES_LENGTH ? 0 : length, 4)
  header.writeUInt8(0x84, 6)
  header.writeUInt8(hasDts ? 0xc0 : 0x80, 7)
  header.writeUInt8(dataBytes, 8)
  header.writeUInt8(hasDts ? 0x30 : 0x20, 9)
  writeTimestamp(header, 9, ptsTicks)
  if (!hasDts) return header
  header.writeUInt8(0x10, 14)
  writeTimestamp(header, 14, dtsTicks)
  return header
}

function readTimestamp(bytes: Buffer, at: number): number {
  // Multiplied instead of shifted: bitwise operators have only 32 bits.
  return (
    ((bytes[at]! >> 1) & 0x07) * 2 ** 30 +
    ((bytes.readUInt16BE(at + 1) >> 1) << 15) +
    (bytes.readUInt16BE(at + 3) >> 1)
  )
}

/** Writes a PTS or DTS modulo 2^33, and keeps the four prefix bits, which distinguish PTS from DTS. */
export function writeTimestamp(bytes: Buffer, at: number, ticks: number): void {
  const wrapped = ((ticks % TIME_MODULUS) + TIME_MODULUS) % TIME_MODULUS
  bytes[at] = (bytes[at]! & 0xf0) | (Math.floor(wrapped / 2 ** 30) << 1) | 1
  bytes.writeUInt16BE((((wrapped / 2 ** 15) & 0x7fff) << 1) | 1, at + 1)
  bytes.writeUInt16BE(((wrapped & 0x7fff) << 1) | 1, at + 3)
}

/**
 * @param chunks  the PES packet as whole transport packets
 * @returns a copy of the PES packet in one buffer
 */
export function pesBytes(chunks: readonly Buffer[]): Buffer {
  // Whole packets, closed up in place: a copy of each payload out of its chunk would need a view for each.
  const bytes = Buffer.concat(chunks)
  let sizeBytes = 0
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
    const end = at + PACKET_BYTES
    const begin = payloadOffset(bytes, at) ?? end
    bytes.copyWithin(sizeBytes, begin, end)
    sizeBytes += end - begin
  }
  return bytes.subarray(0, sizeBytes)
}
