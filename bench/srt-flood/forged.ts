/**
 * Handshakes of somebody who does not mean to publish.
 *
 * @module
 */
import { encodeHsExtension, ExtensionType, LIVE_FLAGS } from '../../src/srt/wire/extension.ts'
import {
  encodeHandshake,
  ExtensionFlag,
  HANDSHAKE_VERSION,
  HandshakeType,
  UDT_DATAGRAM,
} from '../../src/srt/wire/handshake.ts'
import type { Random } from '../../test/support/random.ts'

const SENDER = { socketId: 0, timestampUs: 0, peerAddress: '127.0.0.1' }

const TERMS = { encryptionField: 0, mtuBytes: 1500, flowWindowPackets: 8192 }

const HSREQ = encodeHsExtension(ExtensionType.HSREQ, {
  srtVersion: 0x010501,
  flags: LIVE_FLAGS,
  receiverDelayMs: 120,
  senderDelayMs: 0,
})

/** A caller's first word, of another caller each time. */
export function forgeInduction(random: Random): Buffer {
  return encodeHandshake(
    {
      ...TERMS,
      version: 4,
      extensionField: UDT_DATAGRAM,
      initialSequenceNumber: random.below(2 ** 31),
      type: HandshakeType.INDUCTION,
      socketId: 1 + random.below(2 ** 30 - 1),
      cookie: 0,
    },
    { ...SENDER, blocks: [] },
  )
}

/** The second word, with a cookie that was never issued. */
export function forgeConclusion(random: Random): Buffer {
  return encodeHandshake(
    {
      ...TERMS,
      version: HANDSHAKE_VERSION,
      extensionField: ExtensionFlag.HSREQ,
      initialSequenceNumber: random.below(2 ** 31),
      type: HandshakeType.CONCLUSION,
      socketId: 1 + random.below(2 ** 30 - 1),
      cookie: random.below(2 ** 32) | 0,
    },
    { ...SENDER, blocks: [HSREQ] },
  )
}
