/**
 * Transport stream packets (ISO/IEC 13818-1 2.4.3.2). A packet is identified by a buffer and the offset of its sync
 * byte, so reading one allocates nothing.
 *
 *   | sync byte 47 8 | transport error 1 | payload unit start 1 | priority 1 | PID 13 |
 *   | scrambling 2 | adaptation field control 2 | continuity counter 4 | adaptation field, payload … |
 *
 * Start of an adaptation field (2.4.3.4):
 *
 *   | length 8 | discontinuity 1 | random access 1 | ES priority 1 | PCR 1 | OPCR 1 | splice 1 | private 1 | ext 1 | …
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

/** `discontinuity_indicator`, in the flags of the adaptation field. */
const DISCONTINUITY = 0x80

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

/**
 * @returns offset of the payload in `bytes`; `at + PACKET_BYTES` when the packet has none; undefined when the
 *   adaptation field leaves no room for the payload or `adaptation_field_control` is the reserved 00
 */
export function payloadOffset(bytes: Buffer, at: number): number | undefined {
  const control = bytes[at + 3]! & (HAS_PAYLOAD | HAS_ADAPTATION_FIELD)
  if (control === HAS_PAYLOAD) return at + 4
  if (control === 0) return undefined
  if (control === HAS_ADAPTATION_FIELD) return at + PACKET_BYTES
  const offset = at + 5 + bytes[at + 4]!
  return offset < at + PACKET_BYTES ? offset : undefined
}

/** Whether the continuity counter may jump at this packet (2.4.3.5). */
export function announcesDiscontinuity(bytes: Buffer, at: number): boolean {
  const hasFlags = (bytes[at + 3]! & HAS_ADAPTATION_FIELD) !== 0 && bytes[at + 4]! > 0
  return hasFlags && (bytes[at + 5]! & DISCONTINUITY) !== 0
}

/** @returns the lowest PID from `wanted` up that is not in `taken` */
export function freePid(wanted: number, taken: Iterable<number>): number {
  const pids = new Set(taken)
  let pid = wanted
  while (pids.has(pid)) pid++
  return pid
}
