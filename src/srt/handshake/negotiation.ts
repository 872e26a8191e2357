/**
 * Negotiation between a caller's CONCLUSION and a live listener (draft-sharabayko-srt 4.3.1.2, 4.4).
 *
 * @module
 */
import { MAX_SEQUENCE_NUMBER } from '../wire/counters.ts'
import {
  GROUP_ID_BIT,
  GroupType,
  HsFlag,
  type Extensions,
  type GroupExtension,
} from '../wire/extension.ts'
import { HANDSHAKE_VERSION, type Handshake } from '../wire/handshake.ts'
import { decodeKeyMaterial, KmCipher, type KeyMaterial } from '../wire/key-material.ts'
import { DEFAULT_MTU_BYTES, HEADER_BYTES, IP_UDP_HEADER_BYTES } from '../wire/packet.ts'
import { RejectCode } from '../wire/reject-code.ts'

/** Oldest SRT version accepted, 1.3.0: older versions support only handshake version 4. */
const MIN_SRT_VERSION = 0x010300

/** Headers and 32 bytes of payload; libsrt accepted an MTU of 32 bytes and underflowed (srt#3359). */
const MIN_MTU_BYTES = IP_UDP_HEADER_BYTES + HEADER_BYTES + 32

/**
 * Receive window per millisecond of latency, for 100 Mbit/s. The ring of the receive buffer grows up to the window as
 * needed.
 */
const WINDOW_PACKETS_PER_MS = 10
const MIN_WINDOW_PACKETS = 16_384
const MAX_WINDOW_PACKETS = 65_536

/** Terms of the listener. */
export interface Terms {
  /** Min receive latency, used if the caller proposes less. */
  readonly latencyMs: number
  /** Max receive latency, used if the caller proposes more. */
  readonly maxLatencyMs: number
  /** Whether members of socket groups are accepted; default false. */
  readonly acceptsGroups?: boolean
}

/** Terms negotiated between both sides. */
export interface Agreement {
  /** Version of the caller: `major << 16 | minor << 8 | patch`. */
  readonly srtVersion: number
  /** Receive latency that the caller proposes to the listener. */
  readonly proposedLatencyMs: number
  /** Receive latency of the listener. */
  readonly latencyMs: number
  /** Receive latency of the caller. */
  readonly peerLatencyMs: number
  readonly mtuBytes: number
  /** Receive window: number of sequence numbers accepted, from the first missing packet on. */
  readonly windowPackets: number
  /** Whether the caller sets the R flag of packets that it retransmits. */
  readonly marksRetransmissions: boolean
  /** Whether the caller sends periodic NAKs. */
  readonly repeatsNaks: boolean
  /** Key material of the caller; undefined if it does not encrypt. */
  readonly keyMaterial: KeyMaterial | undefined
  /** Socket group that the caller is a member of; undefined if it is in none. */
  readonly group: GroupExtension | undefined
}

/** @returns the agreement, or the reject code for the caller */
export function negotiate(
  handshake: Handshake,
  { hs, congestion, keyMaterial: message, group }: Extensions,
  terms: Terms,
): Agreement | { readonly reject: RejectCode } {
  if (handshake.version !== HANDSHAKE_VERSION) return { reject: RejectCode.VERSION }
  if (!hasValidLimits(handshake) || hs === undefined || hs.flags === 0)
    return { reject: RejectCode.ROGUE }
  if (hs.srtVersion < MIN_SRT_VERSION) return { reject: RejectCode.VERSION }
  if (group !== undefined) {
    if (terms.acceptsGroups !== true || !isGroupType(group.type))
      return { reject: RejectCode.GROUP }
    if ((group.groupId & GROUP_ID_BIT) === 0) return { reject: RejectCode.ROGUE }
  }
  if ((hs.flags & HsFlag.STREAM) !== 0) return { reject: RejectCode.MESSAGEAPI }
  if (congestion !== undefined && congestion !== 'live') return { reject: RejectCode.CONGESTION }
  const keyMaterial = message && decodeKeyMaterial(message)
  if (message !== undefined && keyMaterial === undefined) return { reject: RejectCode.ROGUE }
  // AES-GCM is not supported: libsrt has it since 1.5.2, and changed its wire format in 1.5.4.
  if (keyMaterial !== undefined && keyMaterial.cipher !== KmCipher.AES_CTR) {
    return { reject: RejectCode.CRYPTO }
  }
  return {
    srtVersion: hs.srtVersion,
    ...negotiateLatency(hs.senderDelayMs, terms),
    peerLatencyMs: hs.receiverDelayMs,
    mtuBytes: Math.min(handshake.mtuBytes, DEFAULT_MTU_BYTES),
    marksRetransmissions: (hs.flags & HsFlag.RETRANSMIT_FLAG) !== 0,
    repeatsNaks: (hs.flags & HsFlag.PERIODIC_NAK) !== 0,
    keyMaterial,
    group,
  }
}

function isGroupType(type: number): boolean {
  return type === GroupType.BROADCAST || type === GroupType.BACKUP
}

/** Receive latency of this side, and the receive window that it needs. */
export function negotiateLatency(
  proposedLatencyMs: number,
  terms: Terms,
): Pick<Agreement, 'proposedLatencyMs' | 'latencyMs' | 'windowPackets'> {
  const latencyMs = Math.min(Math.max(terms.latencyMs, proposedLatencyMs), terms.maxLatencyMs)
  return { proposedLatencyMs, latencyMs, windowPackets: windowPackets(latencyMs) }
}

/** Receive window of a connection with this latency, in packets. */
export function windowPackets(latencyMs: number): number {
  const packets = latencyMs * WINDOW_PACKETS_PER_MS
  return Math.min(Math.max(packets, MIN_WINDOW_PACKETS), MAX_WINDOW_PACKETS)
}

/**
 * Whether sequence number, MTU, flow window and socket id allow a connection. A libsrt caller draws its first sequence
 * number from all 31 bits, although a libsrt listener refuses the largest (srtcore/handshake.cpp).
 */
export function hasValidLimits(handshake: Handshake): boolean {
  return (
    handshake.initialSequenceNumber <= MAX_SEQUENCE_NUMBER &&
    handshake.mtuBytes >= MIN_MTU_BYTES &&
    handshake.flowWindowPackets >= 2 &&
    handshake.socketId > 0
  )
}
