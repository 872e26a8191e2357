/**
 * Timestamps of a transport packet, read and moved in place: PCR in the adaptation field
 * (ISO/IEC 13818-1 2.4.3.5), PTS and DTS in a PES header (2.4.3.7).
 *
 *   PCR  | base 33, 90 kHz | reserved 6 | extension 9, 27 MHz |
 *   PTS  | 001x 4 | 32-30 3 | 1 | 29-15 15 | 1 | 14-0 15 | 1 |
 *
 * A PES header that spans two packets is neither read nor moved; no current muxer writes one.
 *
 * @module
 */
import { TIME_MODULUS } from '../mpegts/timestamps.ts'
import { hasPcr, isUnitStart, PACKET_BYTES, payloadOffset } from '../mpegts/packet.ts'
import { decodePesHeader, writeTimestamp } from '../mpegts/pes.ts'

const MIN_PES_HEADER_BYTES = 9
const TIMESTAMP_BYTES = 5

export interface PesTimes {
  /** Whether the stream_id is that of a video stream (Table 2-22). */
  readonly isVideo: boolean
  readonly ptsTicks: number
  /** Equals `ptsTicks` in a PES header without DTS. */
  readonly dtsTicks: number
}

/** @returns base of the packet's PCR in ticks of 90 kHz; undefined for a packet without a PCR */
export function readPcr(bytes: Buffer, at: number): number | undefined {
  if (!hasPcr(bytes, at)) return undefined
  return bytes.readUInt32BE(at + 6) * 2 + (bytes[at + 10]! >> 7)
}

/** Adds `ticks` to the packet's PCR, if it has one. */
export function movePcr(bytes: Buffer, at: number, ticks: number): void {
  const base = readPcr(bytes, at)
  if (base === undefined) return
  const moved = (base + ticks) % TIME_MODULUS
  bytes.writeUInt32BE(Math.floor(moved / 2), at + 6)
  bytes[at + 10] = (bytes[at + 10]! & 0x7f) | ((moved % 2) << 7)
}

/** @returns timestamps of the PES packet that begins in this packet; undefined without a PES packet or PTS */
export function readPesTimes(bytes: Buffer, at: number): PesTimes | undefined {
  const start = pesOffset(bytes, at)
  if (start === undefined) return undefined
  const { ptsTicks, dtsTicks } = decodePesHeader(bytes.subarray(start, at + PACKET_BYTES)) ?? {}
  if (ptsTicks === undefined) return undefined
  const isVideo = (bytes[start + 3]! & 0xf0) === 0xe0
  return { isVideo, ptsTicks, dtsTicks: dtsTicks ?? ptsTicks }
}

/** Adds `ticks` to PTS and DTS of the PES packet that begins in this packet, if it has them. */
export function movePesTimes(bytes: Buffer, at: number, ticks: number): void {
  const start = pesOffset(bytes, at)
  if (start === undefined) return
  const { ptsTicks, dtsTicks } = decodePesHeader(bytes.subarray(start, at + PACKET_BYTES)) ?? {}
  const ptsAt = start + MIN_PES_HEADER_BYTES
  if (ptsTicks !== undefined) writeTimestamp(bytes, ptsAt, ptsTicks + ticks)
  if (dtsTicks !== undefined) writeTimestamp(bytes, ptsAt + TIMESTAMP_BYTES, dtsTicks + ticks)
}

function pesOffset(bytes: Buffer, at: number): number | undefined {
  return isUnitStart(bytes, at) ? payloadOffset(bytes, at) : undefined
}
