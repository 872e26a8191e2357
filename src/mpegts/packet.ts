/**
 * Transport stream packets (ISO/IEC 13818-1 2.4.3.2). A packet is identified by a buffer and the offset of its sync
 * byte, so reading one allocates nothing.
 *
 *   | sync byte 47 8 | transport error 1 | payload unit start 1 | priority 1 | PID 13 |
 *   | scrambling 2 | adaptation field control 2 | continuity counter 4 | adaptation field, payload … |
 *
 * Adaptation field (2.4.3.4):
 *
 *   | length 8 | discontinuity 1 | random access 1 | ES priority 1 | PCR 1 | OPCR 1 | splice 1 | private 1 | ext 1 |
 *   | PCR 48 | OPCR 48 | splice countdown 8 | private length 8, data … | extension length 8, … | FF … |
 *
 * @module
 */

export const PACKET_BYTES = 188
export const SYNC_BYTE = 0x47

/** Mask of a PID: the low 13 bits of the 16-bit field that also holds three flags. */
export const PID_MASK = 0x1fff
export const PID_COUNT = PID_MASK + 1
export const PAT_PID = 0x0000
/** PID of null packets, the stuffing of constant bit rate streams; as PCR_PID of a PMT it means "no PCR". */
export const NULL_PID = 0x1fff
/** Lowest PID for elementary streams and program maps; lower ones are reserved (Table 2-3). */
export const FIRST_FREE_PID = 0x0010

/** `payload_unit_start_indicator`, in byte 1. */
export const UNIT_START = 0x40

/** Bits of `adaptation_field_control`, in byte 3. */
export const HAS_PAYLOAD = 0x10
export const HAS_ADAPTATION_FIELD = 0x20

/** `discontinuity_indicator` and `PCR_flag`, in the flags of the adaptation field. */
const DISCONTINUITY = 0x80
const PCR = 0x10

/** Flag and size of PCR, OPCR and splice_countdown, in the order sent. */
const FIXED_FIELDS = [
  [PCR, 6],
  [0x08, 6],
  [0x04, 1],
] as const

/** Flags of the fields that start with their length: private data, extension. */
const COUNTED_FIELDS = [0x02, 0x01] as const

export function readPid(bytes: Buffer, at: number): number {
  return ((bytes[at + 1]! << 8) | bytes[at + 2]!) & PID_MASK
}

/** `transport_error_indicator`: an upstream receiver found bit errors in the packet. */
export function hasTransportError(bytes: Buffer, at: number): boolean {
  return (bytes[at + 1]! & 0x80) !== 0
}

/** `payload_unit_start_indicator`: a PES packet or a section starts in the payload. */
export function isUnitStart(bytes: Buffer, at: number): boolean {
  return (bytes[at + 1]! & UNIT_START) !== 0
}

export function isScrambled(bytes: Buffer, at: number): boolean {
  return (bytes[at + 3]! & 0xc0) !== 0
}

export function readContinuityCounter(bytes: Buffer, at: number): number {
  return bytes[at + 3]! & 0x0f
}

/** Whether `adaptation_field_control` announces a payload: each such packet increments the continuity counter (2.4.3.3). */
export function hasPayload(bytes: Buffer, at: number): boolean {
  return (bytes[at + 3]! & HAS_PAYLOAD) !== 0
}

/**
 * @returns offset of the payload in `bytes`; `at + PACKET_BYTES` when the packet has none, even if it announces one, as
 *   the stuffing packets of some multiplexers do; undefined when the adaptation field ends outside of the packet or
 *   `adaptation_field_control` is the reserved 00
 */
export function payloadOffset(bytes: Buffer, at: number): number | undefined {
  const control = bytes[at + 3]! & (HAS_PAYLOAD | HAS_ADAPTATION_FIELD)
  if (control === HAS_PAYLOAD) return at + 4
  if (control === 0) return undefined
  if (control === HAS_ADAPTATION_FIELD) return at + PACKET_BYTES
  const offset = at + 5 + bytes[at + 4]!
  return offset <= at + PACKET_BYTES ? offset : undefined
}

/** Whether the adaptation field has a PCR: after its length, 1 byte of flags and 6 bytes of PCR. */
export function hasPcr(bytes: Buffer, at: number): boolean {
  const hasField = (bytes[at + 3]! & HAS_ADAPTATION_FIELD) !== 0 && bytes[at + 4]! >= 7
  return hasField && (bytes[at + 5]! & PCR) !== 0
}

/** Whether the continuity counter may jump at this packet (2.4.3.5). */
export function announcesDiscontinuity(bytes: Buffer, at: number): boolean {
  const hasFlags = (bytes[at + 3]! & HAS_ADAPTATION_FIELD) !== 0 && bytes[at + 4]! > 0
  return hasFlags && (bytes[at + 5]! & DISCONTINUITY) !== 0
}

/**
 * Content of an adaptation field, to be copied into a new packet.
 *
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

/** Whether the packet is filled up with stuffing, as the last one of a PES packet is (2.4.3.5), unless that fits by chance. */
export function hasStuffing(bytes: Buffer, at: number): boolean {
  if ((bytes[at + 3]! & HAS_ADAPTATION_FIELD) === 0) return false
  const fieldBytes = bytes[at + 4]!
  // The length alone is a byte of stuffing.
  return fieldBytes === 0 || adaptationFields(bytes.subarray(at)).length < fieldBytes
}

/** @returns the lowest PID from `wanted` up that is not in `taken` */
export function freePid(wanted: number, taken: Iterable<number>): number {
  const pids = new Set(taken)
  let pid = wanted
  while (pids.has(pid)) pid++
  return pid
}
