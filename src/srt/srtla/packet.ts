/**
 * Packets of SRTLA, the bonding of mobile lines beneath SRT. They begin with 16 bits of type, big-endian, from a range that
 * no SRT packet begins with.
 *
 *   | type   | name      | bytes | contents                                                                              |
 *   | 0x9000 | KEEPALIVE | 2…    | echoed on its line; with a report of the sender about the line, see `decodeSenderReport` |
 *   | 0x9100 | ACK       | 44    | 2 bytes of zero, the SRT sequence numbers of the line's latest ten data packets        |
 *   | 0x9200 | REG1      | 258   | 256 bytes of the sender: asks for a group                                              |
 *   | 0x9201 | REG2      | 258   | id of the group, of which the second half is the receiver's; repeated on each line     |
 *   | 0x9202 | REG3      | 2     | the line has joined                                                                    |
 *   | 0x9210 | ERR       | 2     | try later                                                                              |
 *   | 0x9211 | NGP       | 2     | no such group: begin with REG1                                                         |
 *
 * @module
 */

export const SrtlaType = {
  KEEPALIVE: 0x9000,
  ACK: 0x9100,
  REG1: 0x9200,
  REG2: 0x9201,
  REG3: 0x9202,
  ERR: 0x9210,
  NGP: 0x9211,
} as const

type SrtlaType = (typeof SrtlaType)[keyof typeof SrtlaType]

const TYPE_BYTES = 2

/** Length of a group's id, and of what a REG1 contains. */
export const GROUP_ID_BYTES = 256

/** Number of data packets of a line that one ACK acknowledges. */
export const ACKED_PACKETS = 10

/** @returns a `SrtlaType` or an unknown type of its range; undefined for a packet of SRT */
export function srtlaType(datagram: Buffer): number | undefined {
  if (datagram.length < TYPE_BYTES || datagram[0]! >> 4 !== 9) return undefined
  return datagram.readUInt16BE()
}

/** @param contents  id of a REG1 or REG2; the other types have none */
export function encodeSrtla(type: SrtlaType, contents: Buffer = Buffer.alloc(0)): Buffer {
  const datagram = Buffer.allocUnsafe(TYPE_BYTES + contents.length)
  datagram.writeUInt16BE(type)
  datagram.set(contents, TYPE_BYTES)
  return datagram
}

/** @returns the 256 bytes of a REG1 or REG2, a view; undefined for another length */
export function decodeRegistration(datagram: Buffer): Buffer | undefined {
  return datagram.length === TYPE_BYTES + GROUP_ID_BYTES ? datagram.subarray(TYPE_BYTES) : undefined
}

/** @param sequences  SRT sequence numbers, oldest first */
export function encodeSrtlaAck(sequences: readonly number[]): Buffer {
  const datagram = Buffer.alloc(4 + sequences.length * 4)
  datagram.writeUInt16BE(SrtlaType.ACK)
  sequences.forEach((sequence, i) => datagram.writeUInt32BE(sequence, 4 + i * 4))
  return datagram
}

/** What a sender reports of a line: the receiver cannot know over which line a lost packet was sent. */
export interface SenderReport {
  readonly rttMs: number
  /** Losses on the line that were reported to the sender. */
  readonly naks: number
}

const REPORT_BYTES = 38
const REPORT_MAGIC = 0xc01f0001

/**
 * Report in a KEEPALIVE, an extension of irlserver's sender: 0xc01f and version 1 at 10, RTT in ms at 26, NAKs at 30.
 *
 * @returns undefined for a KEEPALIVE without
 */
export function decodeSenderReport(datagram: Buffer): SenderReport | undefined {
  if (datagram.length !== REPORT_BYTES || datagram.readUInt32BE(10) !== REPORT_MAGIC)
    return undefined
  return { rttMs: datagram.readUInt32BE(26), naks: datagram.readUInt32BE(30) }
}
