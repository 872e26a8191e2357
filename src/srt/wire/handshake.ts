/**
 * Control information field of the handshake (draft-sharabayko-srt 3.2.1), without the extension blocks that follow.
 *
 *   |                            version                            |   0
 *   |       encryption field        |        extension field        |   4
 *   |                initial packet sequence number                 |   8
 *   |          maximum transmission unit (with IP header)           |  12
 *   |               maximum flow window (packets)                   |  16
 *   |                        handshake type                         |  20
 *   |                         SRT socket id                         |  24
 *   |                          SYN cookie                           |  28
 *   |                    peer IP address (16 bytes)                 |  32
 *
 * @module
 */
import { ControlType, HEADER_BYTES, writeControlHeader } from './packet.ts'
import { parseIpAddress } from '../../binary/ip-address.ts'

/** Length of the control information field without extension blocks. */
export const HANDSHAKE_BYTES = 48

export const HandshakeType = {
  WAVEAHAND: 0,
  INDUCTION: 1,
  CONCLUSION: -1,
  AGREEMENT: -2,
  DONE: -3,
} as const

/** Extension field of an induction response, which announces version 5 (4.3.1.1). */
export const SRT_MAGIC = 0x4a17

/** Extension field of a caller's induction: UDT's value for a datagram socket. */
export const UDT_DATAGRAM = 2

/** Flags in the extension field of a conclusion: the kinds of block that follow. */
export const ExtensionFlag = { HSREQ: 1, KMREQ: 2, CONFIG: 4 } as const

/** Version in every handshake packet except a caller's induction, which says 4. */
export const HANDSHAKE_VERSION = 5

export interface Handshake {
  readonly version: number
  /** Advertised key length in units of 8 bytes: 2, 3 or 4; 0 for none. */
  readonly encryptionField: number
  readonly extensionField: number
  readonly initialSequenceNumber: number
  readonly mtuBytes: number
  readonly flowWindowPackets: number
  /** A `HandshakeType`, or a reject code from 1000 on. */
  readonly type: number
  readonly socketId: number
  /** SYN cookie, as a signed 32-bit integer. */
  readonly cookie: number
}

/** @returns undefined if the datagram is too short */
export function decodeHandshake(datagram: Buffer): Handshake | undefined {
  if (datagram.length < HEADER_BYTES + HANDSHAKE_BYTES) return undefined
  return {
    version: datagram.readUInt32BE(HEADER_BYTES),
    encryptionField: datagram.readUInt16BE(HEADER_BYTES + 4),
    extensionField: datagram.readUInt16BE(HEADER_BYTES + 6),
    initialSequenceNumber: datagram.readUInt32BE(HEADER_BYTES + 8),
    mtuBytes: datagram.readUInt32BE(HEADER_BYTES + 12),
    flowWindowPackets: datagram.readUInt32BE(HEADER_BYTES + 16),
    type: datagram.readInt32BE(HEADER_BYTES + 20),
    socketId: datagram.readInt32BE(HEADER_BYTES + 24),
    cookie: datagram.readInt32BE(HEADER_BYTES + 28),
  }
}

/**
 * Encodes a complete handshake datagram.
 *
 * @param packet.socketId  destination socket id; 0 in a caller's requests
 * @param packet.peerAddress  IP address of the destination; informative, `decodeHandshake` skips it
 * @param packet.blocks  extension blocks, see extension.ts
 */
export function encodeHandshake(
  handshake: Handshake,
  packet: { socketId: number; timestampUs: number; peerAddress: string; blocks?: Buffer[] },
): Buffer {
  const field = Buffer.alloc(HEADER_BYTES + HANDSHAKE_BYTES)
  writeControlHeader(field, { type: ControlType.HANDSHAKE, information: 0, ...packet })
  field.writeUInt32BE(handshake.version, HEADER_BYTES)
  field.writeUInt16BE(handshake.encryptionField, HEADER_BYTES + 4)
  field.writeUInt16BE(handshake.extensionField, HEADER_BYTES + 6)
  field.writeUInt32BE(handshake.initialSequenceNumber, HEADER_BYTES + 8)
  field.writeUInt32BE(handshake.mtuBytes, HEADER_BYTES + 12)
  field.writeUInt32BE(handshake.flowWindowPackets, HEADER_BYTES + 16)
  field.writeInt32BE(handshake.type, HEADER_BYTES + 20)
  field.writeInt32BE(handshake.socketId, HEADER_BYTES + 24)
  field.writeInt32BE(handshake.cookie, HEADER_BYTES + 28)
  field.set(encodePeerAddress(packet.peerAddress), HEADER_BYTES + 32)
  return Buffer.concat([field, ...(packet.blocks ?? [])])
}

/**
 * Encodes the peer's IP address: 16 bytes, of which IPv4 uses the first four. The draft gives no byte order. libsrt
 * reverses each word (srtcore/common.cpp), so 127.0.0.1 is sent as 01 00 00 7f. Receivers do not check the field.
 *
 * @param address  numeric, with or without zone; any other text encodes as zeros
 */
export function encodePeerAddress(address: string): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.set(parseIpAddress(address))
  return bytes.swap32()
}
