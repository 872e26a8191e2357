/**
 * Transport stream packets (ISO/IEC 13818-1 2.4.3.2): where the fields of one stand in a buffer. A packet is told by
 * the buffer it lies in and the offset of its sync byte, so that none needs an object of its own.
 *
 *   | sync byte 47 8 | transport error 1 | unit start 1 | priority 1 | PID 13 |
 *   | scrambling 2 | adaptation field control 2 | continuity counter 4 | adaptation field, payload … |
 *
 * An adaptation field (2.4.3.4) begins
 *
 *   | length 8 | discontinuity 1 | random access 1 | ES priority 1 | PCR 1 | OPCR 1 | splice 1 | private 1 | ext 1 | …
 *
 * @module
 */

export const PACKET_BYTES = 188
export const SYNC_BYTE = 0x47

/** PIDs are 13 bits. */
export const PID_COUNT = 8192
export const PAT_PID = 0x0000
/** Stuffing of constant bit rate streams; also "no PCR" where a PMT names it. */
export const NULL_PID = 0x1fff
/** Lower PIDs are reserved for tables of fixed meaning (Table 2-3). */
export const FIRST_FREE_PID = 0x0010

/** Adaptation field control: payload present, adaptation field present. */
export const HAS_PAYLOAD = 0x10
export const HAS_ADAPTATION_FIELD = 0x20

const DISCONTINUITY_INDICATOR = 0x80

export function readPid(bytes: Buffer, at: number): number {
  return ((bytes[at + 1]! & 0x1f) << 8) | bytes[at + 2]!
}

/** The sender or a link before us knows that the packet is damaged. */
export function hasTransportError(bytes: Buffer, at: number): boolean {
  return (bytes[at + 1]! & 0x80) !== 0
}

/** The payload begins a PES packet, or holds the first byte of a section behind its pointer field. */
export function isUnitStart(bytes: Buffer, at: number): boolean {
  return (bytes[at + 1]! & 0x40) !== 0
}

export function isScrambled(bytes: Buffer, at: number): boolean {
  return (bytes[at + 3]! & 0xc0) !== 0
}

export function readContinuityCounter(bytes: Buffer, at: number): number {
  return bytes[at + 3]! & 0x0f
}

/**
 * @returns offset of the payload in `bytes`, `at + 188` where the packet has none; undefined where the adaptation
 *   field does not fit or its control is the reserved value
 */
export function payloadOffset(bytes: Buffer, at: number): number | undefined {
  const control = bytes[at + 3]! & (HAS_PAYLOAD | HAS_ADAPTATION_FIELD)
  if (control === HAS_PAYLOAD) return at + 4
  if (control === 0) return undefined
  if (control === HAS_ADAPTATION_FIELD) return at + PACKET_BYTES
  const offset = at + 5 + bytes[at + 4]!
  return offset < at + PACKET_BYTES ? offset : undefined
}

/** The continuity counter may jump at this packet (2.4.3.5). */
export function announcesDiscontinuity(bytes: Buffer, at: number): boolean {
  const hasFlags = (bytes[at + 3]! & HAS_ADAPTATION_FIELD) !== 0 && bytes[at + 4]! > 0
  return hasFlags && (bytes[at + 5]! & DISCONTINUITY_INDICATOR) !== 0
}

/** @returns `wanted`, or the next PID above it that is not taken */
export function freePid(wanted: number, taken: Iterable<number>): number {
  const pids = new Set(taken)
  let pid = wanted
  while (pids.has(pid)) pid++
  return pid
}
