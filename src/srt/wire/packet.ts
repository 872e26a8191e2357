/**
 * The 16-byte header that opens every SRT datagram (draft-sharabayko-srt 3). All fields are big-endian.
 *
 *    0                   1                   2                   3
 *    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *   +-+-------------------------------------------------------------+
 *   |0|                 packet sequence number                      |  data (3.1)
 *   +---+-+---+-+---------------------------------------------------+
 *   |P P|O|K K|R|                message number                     |
 *   +---+-+---+-+---------------------------------------------------+
 *
 *   +-+-----------------------------+-------------------------------+
 *   |1|        control type         |            subtype            |  control (3.2)
 *   +-+-----------------------------+-------------------------------+
 *   |                   type-specific information                   |
 *   +---------------------------------------------------------------+
 *
 *   |                        timestamp (us)                         |  both
 *   +---------------------------------------------------------------+
 *   |                    destination socket id                      |
 *   +---------------------------------------------------------------+
 *
 * The hot path reads fields in place and allocates no object. Every function expects at least `HEADER_BYTES`.
 *
 * @module
 */

export const HEADER_BYTES = 16

/** Maximum transmission unit that both sides propose: an Ethernet payload, IP and UDP headers included. */
export const DEFAULT_MTU_BYTES = 1500

/** IPv4 and UDP headers, which MTU and bandwidth include. */
export const IP_UDP_HEADER_BYTES = 28

/** Longest datagram (UDP payload) within the default MTU over IPv4. */
export const MAX_DATAGRAM_BYTES = DEFAULT_MTU_BYTES - IP_UDP_HEADER_BYTES

/** Longest payload of a data packet, and longest control information field of a control packet. */
export const MAX_PAYLOAD_BYTES = MAX_DATAGRAM_BYTES - HEADER_BYTES

/** Control types (draft Table 1). */
export const ControlType = {
  HANDSHAKE: 0,
  KEEPALIVE: 1,
  ACK: 2,
  NAK: 3,
  CONGESTION_WARNING: 4,
  SHUTDOWN: 5,
  ACKACK: 6,
  DROPREQ: 7,
  PEER_ERROR: 8,
  USER_DEFINED: 0x7fff,
} as const

export type ControlType = (typeof ControlType)[keyof typeof ControlType]

/** Second header word of a data packet: a complete message (PP = 11), in clear, no retransmission. */
const SOLO_PACKET = 0xc0000000

const RETRANSMITTED = 0x04000000
const MESSAGE_NUMBER = 0x03ffffff

export function isControl(datagram: Buffer): boolean {
  return datagram.readInt8(0) < 0
}

/** @returns a `ControlType`, or an unknown type */
export function controlType(datagram: Buffer): number {
  return datagram.readUInt16BE(0) & 0x7fff
}

/** Extension type of a `USER_DEFINED` packet. */
export function controlSubtype(datagram: Buffer): number {
  return datagram.readUInt16BE(2)
}

/** ACK number of a full ACK and its ACKACK, message number of a DROPREQ; 0 in most other control packets. */
export function typeSpecificInformation(datagram: Buffer): number {
  return datagram.readUInt32BE(4)
}

/** Microseconds of the sender's clock since it opened its socket, modulo 2^32. */
export function timestampUs(datagram: Buffer): number {
  return datagram.readUInt32BE(8)
}

/** Socket id of the receiver; 0 in a caller's handshake, and never negative in a valid packet. */
export function destinationSocketId(datagram: Buffer): number {
  return datagram.readInt32BE(12)
}

/** Sequence number of a data packet. */
export function sequenceNumber(datagram: Buffer): number {
  return datagram.readInt32BE(0)
}

/** Message number of a data packet; 0 in packets of a packet filter (FEC), which carry no message. */
export function messageNumber(datagram: Buffer): number {
  return datagram.readInt32BE(4) & MESSAGE_NUMBER
}

/** KK flag of a data packet: 0 in clear, 1 even key, 2 odd key. */
export function encryptionKeyFlag(datagram: Buffer): number {
  return (datagram.readInt32BE(4) >> 27) & 3
}

/** R flag of a data packet. */
export function isRetransmitted(datagram: Buffer): boolean {
  return (datagram.readInt32BE(4) & RETRANSMITTED) !== 0
}

/** Sets the R flag of a data packet. */
export function markRetransmitted(datagram: Buffer): void {
  datagram.writeInt32BE(datagram.readInt32BE(4) | RETRANSMITTED, 4)
}

/** Sets the KK flag of a data packet in clear. */
export function markEncrypted(datagram: Buffer, keyFlag: 1 | 2): void {
  datagram.writeInt32BE(datagram.readInt32BE(4) | (keyFlag << 27), 4)
}

/** @param header.timestampUs  reduced modulo 2^32 here */
export function writeControlHeader(
  datagram: Buffer,
  header: {
    type: ControlType
    subtype?: number
    information: number
    timestampUs: number
    socketId: number
  },
): void {
  datagram.writeUInt16BE(0x8000 | header.type, 0)
  datagram.writeUInt16BE(header.subtype ?? 0, 2)
  datagram.writeUInt32BE(header.information >>> 0, 4)
  datagram.writeUInt32BE(header.timestampUs >>> 0, 8)
  datagram.writeInt32BE(header.socketId, 12)
}

/** @param header.timestampUs  reduced modulo 2^32 here */
export function writeDataHeader(
  datagram: Buffer,
  header: { sequence: number; message: number; timestampUs: number; socketId: number },
): void {
  datagram.writeInt32BE(header.sequence, 0)
  datagram.writeUInt32BE((SOLO_PACKET | header.message) >>> 0, 4)
  datagram.writeUInt32BE(header.timestampUs >>> 0, 8)
  datagram.writeInt32BE(header.socketId, 12)
}
