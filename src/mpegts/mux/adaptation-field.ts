/**
 * Content of an adaptation field (ISO/IEC 13818-1 2.4.3.4), to be copied into a new packet.
 *
 *   | length 8 | flags 8 | PCR 48 | OPCR 48 | splice countdown 8 | private length 8, data … |
 *   | extension length 8, … | FF … |
 *
 * @module
 */
import { HAS_ADAPTATION_FIELD, PACKET_BYTES } from '../packet.ts'

/** Flag and size of PCR, OPCR and splice_countdown, in the order sent. */
const FIXED_FIELDS = [
  [0x10, 6],
  [0x08, 6],
  [0x04, 1],
] as const

/** Flags of the fields that start with their length: private data, extension. */
const COUNTED_FIELDS = [0x02, 0x01] as const

/**
 * @param packet  one transport packet
 * @returns flags and fields without length and stuffing: a view, empty when no flag is set
 */
export function adaptationFields(packet: Buffer): Buffer {
  const hasField = (packet[3]! & HAS_ADAPTATION_FIELD) !== 0
  const field = packet.subarray(5, hasField ? Math.min(5 + packet[4]!, PACKET_BYTES) : 5)
  const flags = field[0] ?? 0
  if (flags === 0) return field.subarray(0, 0)
  let end = 1
  for (const [flag, sizeBytes] of FIXED_FIELDS) if ((flags & flag) !== 0) end += sizeBytes
  for (const flag of COUNTED_FIELDS) if ((flags & flag) !== 0) end += 1 + (field[end] ?? 0)
  return field.subarray(0, end)
}
