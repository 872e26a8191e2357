/**
 * INDUCTION of a caller, to which a listener responds without state (draft-sharabayko-srt 4.3.1.1).
 *
 * @module
 */
import { encodeHandshake, HandshakeType, UDT_DATAGRAM } from '../../src/srt/wire/handshake.ts'

export function encodeInduction(socketId: number, peerAddress: string): Buffer {
  return encodeHandshake(
    {
      version: 4,
      encryptionField: 0,
      extensionField: UDT_DATAGRAM,
      initialSequenceNumber: 0,
      mtuBytes: 1500,
      flowWindowPackets: 8192,
      type: HandshakeType.INDUCTION,
      socketId,
      cookie: 0,
    },
    { socketId: 0, timestampUs: 0, peerAddress, blocks: [] },
  )
}
