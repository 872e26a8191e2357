/**
 * What a caller's CONCLUSION asks for, and what a live ingest can agree to (draft-sharabayko-srt 4.3.1.2, 4.4).
 *
 * @module
 */
import { RejectCode } from '../../errors.ts'
import { MAX_SEQUENCE_NUMBER } from '../../binary/sequence-number.ts'
import { type Extensions, HsFlag } from '../wire/extension.ts'
import type { Handshake } from '../wire/handshake.ts'
import { decodeKeyMaterial, KmCipher, type KeyMaterial } from '../wire/key-material.ts'
import { DEFAULT_MTU_BYTES, HEADER_BYTES } from '../wire/packet.ts'

/** Peers before 1.3 speak handshake version 4 at best. */
const OLDEST_SRT_VERSION = 0x010300

/** Headers and a little payload; libsrt would take 32 and underflow (srt#3359). */
const MIN_MTU_BYTES = 28 + HEADER_BYTES + 32

/**
 * Packets that may have to wait behind a missing one: all of a latency at 100 Mbit/s, within bounds. That is what a ring may
 * grow to; it takes no more than what is held.
 */
const WINDOW_PACKETS_PER_MS = 10
const MIN_WINDOW_PACKETS = 16_384
const MAX_WINDOW_PACKETS = 65_536

/** What this side wants. */
export interface Terms {
  readonly latencyMs: number
  /** Longest latency that a peer may ask of us. */
  readonly maxLatencyMs: number
}

/** What both sides keep to. */
export interface Agreement {
  /** The caller's; `major << 16 | minor << 8 | patch`. */
  readonly srtVersion: number
  /** Of data that the caller sends. */
  readonly latencyMs: number
  /** Of data that the caller receives. */
  readonly peerLatencyMs: number
  readonly mtuBytes: number
  /** How far a packet may be ahead of a missing one. */
  readonly windowPackets: number
  /** The caller marks what it sends again. */
  readonly marksRetransmissions: boolean
  /** Where the caller wants to encrypt. */
  readonly keyMaterial: KeyMaterial | undefined
}

/** @returns what holds from now on, or the code to reject with */
export function negotiate(
  handshake: Handshake,
  { hs, congestion, keyMaterial: message, group }: Extensions,
  terms: Terms,
): Agreement | { readonly reject: RejectCode } {
  if (handshake.version !== 5) return { reject: RejectCode.VERSION }
  if (!isSane(handshake) || hs === undefined || hs.flags === 0) return { reject: RejectCode.ROGUE }
  if (hs.srtVersion < OLDEST_SRT_VERSION) return { reject: RejectCode.VERSION }
  if (group) return { reject: RejectCode.GROUP }
  if ((hs.flags & HsFlag.STREAM) !== 0) return { reject: RejectCode.MESSAGEAPI }
  if (congestion !== undefined && congestion !== 'live') return { reject: RejectCode.CONGESTION }
  const keyMaterial = message && decodeKeyMaterial(message)
  if (message !== undefined && keyMaterial === undefined) return { reject: RejectCode.ROGUE }
  // GCM came with libsrt 1.5.2 and changed its wire format with 1.5.4.
  if (keyMaterial !== undefined && keyMaterial.cipher !== KmCipher.AES_CTR) {
    return { reject: RejectCode.CRYPTO }
  }
  const latencyMs = Math.min(Math.max(terms.latencyMs, hs.senderDelayMs), terms.maxLatencyMs)
  return {
    srtVersion: hs.srtVersion,
    latencyMs,
    peerLatencyMs: hs.receiverDelayMs,
    mtuBytes: Math.min(handshake.mtuBytes, DEFAULT_MTU_BYTES),
    windowPackets: windowPackets(latencyMs),
    marksRetransmissions: (hs.flags & HsFlag.RETRANSMIT_FLAG) !== 0,
    keyMaterial,
  }
}

/** @returns the window of a connection with this latency */
export function windowPackets(latencyMs: number): number {
  const packets = latencyMs * WINDOW_PACKETS_PER_MS
  return Math.min(Math.max(packets, MIN_WINDOW_PACKETS), MAX_WINDOW_PACKETS)
}

/** Whether the other side's figures leave room for a connection. */
export function isSane(handshake: Handshake): boolean {
  return (
    handshake.initialSequenceNumber < MAX_SEQUENCE_NUMBER &&
    handshake.mtuBytes >= MIN_MTU_BYTES &&
    handshake.flowWindowPackets >= 2 &&
    handshake.socketId > 0
  )
}
