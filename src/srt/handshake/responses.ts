/**
 * Handshake packets of a listener (draft-sharabayko-srt 4.3.1): the induction response, the conclusion response and the
 * rejection.
 *
 * @module
 */
import {
  encodeBlock,
  encodeGroupExtension,
  encodeHsExtension,
  extensionFieldOf,
  ExtensionType,
} from '../wire/extension.ts'
import { encodeHandshake, HANDSHAKE_VERSION, SRT_MAGIC, type Handshake } from '../wire/handshake.ts'
import { ControlType, HEADER_BYTES, writeControlHeader } from '../wire/packet.ts'
import type { Attempt, Peer } from './attempt.ts'

/** @returns a response no longer than the request, so that forged sources gain no amplification */
export function encodeInductionResponse(peer: Peer, cookie: number): Buffer {
  return encodeResponse(peer, {
    ...peer.handshake,
    version: HANDSHAKE_VERSION,
    encryptionField: 0,
    extensionField: SRT_MAGIC,
    cookie,
  })
}

/** @param groupId  id of the group that the caller has joined */
export function encodeConclusionResponse(
  attempt: Attempt,
  { localSocketId, groupId }: { readonly localSocketId: number; readonly groupId?: number },
  nowUs: number,
): Buffer {
  const { handshake, agreement, filter, arrivedUs } = attempt
  const { keyMaterial, group } = agreement
  const blocks = [
    encodeHsExtension(ExtensionType.HSRSP, {
      receiverDelayMs: agreement.latencyMs,
      senderDelayMs: agreement.peerLatencyMs,
    }),
    // A caller with a packet filter expects its own configuration back; filter packets are discarded on arrival.
    ...(filter === undefined ? [] : [encodeBlock(ExtensionType.FILTER, filter)]),
    ...(group && groupId !== undefined ? [encodeGroupExtension({ ...group, groupId })] : []),
    // A repetition of the key material confirms it (3.2.2).
    ...(keyMaterial === undefined ? [] : [encodeBlock(ExtensionType.KMRSP, keyMaterial.message)]),
  ]
  const response: Handshake = {
    ...handshake,
    encryptionField: 0,
    extensionField: extensionFieldOf(blocks),
    mtuBytes: agreement.mtuBytes,
    flowWindowPackets: agreement.windowPackets,
    socketId: localSocketId,
  }
  return encodeResponse(attempt, response, nowUs - arrivedUs, blocks)
}

/** @param code  reject code, from 1000 on; it takes the place of the handshake type */
export function encodeRejection(peer: Peer, code: number): Buffer {
  return encodeResponse(peer, { ...peer.handshake, version: HANDSHAKE_VERSION, type: code })
}

/** SHUTDOWN for a caller of handshake version 4, which reads no reject codes. */
export function encodeShutdown({ handshake }: Peer): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + 4)
  writeControlHeader(datagram, {
    type: ControlType.SHUTDOWN,
    information: 0,
    timestampUs: 0,
    socketId: handshake.socketId,
  })
  return datagram
}

function encodeResponse(
  { remoteAddress, handshake }: Peer,
  response: Handshake,
  timestampUs = 0,
  blocks: Buffer[] = [],
): Buffer {
  return encodeHandshake(response, {
    socketId: handshake.socketId,
    timestampUs,
    peerAddress: remoteAddress,
    blocks,
  })
}
