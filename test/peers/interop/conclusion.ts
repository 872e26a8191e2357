/**
 * The second handshake of a caller, and the answer to it (draft-sharabayko-srt 4.3.1.2), as a relay sees them.
 *
 * @module
 */
import { decodeHandshake, HandshakeType } from '../../../src/srt/wire/handshake.ts'
import { ControlType, controlType, isControl } from '../../../src/srt/wire/packet.ts'

export function isConclusion(datagram: Buffer): boolean {
  return (
    isControl(datagram) &&
    controlType(datagram) === ControlType.HANDSHAKE &&
    decodeHandshake(datagram)?.type === HandshakeType.CONCLUSION
  )
}
