/**
 * A caller during its handshake: address, handshake packet and agreed terms.
 *
 * @module
 */
import type { ConnectionRequest } from '../types.ts'
import type { Handshake } from '../wire/handshake.ts'
import type { Agreement } from './negotiation.ts'

/** Address of a caller and the handshake that it sent. */
export interface Peer {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly handshake: Handshake
}

/** A caller with a valid cookie and acceptable terms. */
export interface Attempt
  extends Peer, Omit<ConnectionRequest, 'localPort' | 'isJoining' | 'verifyEncryption'> {
  readonly agreement: Agreement
  /** Contents of the FILTER extension as sent; undefined if the caller has no packet filter. */
  readonly filter: Buffer | undefined
  /** Timestamp of the first CONCLUSION; with `arrivedUs`, the base of delivery times (4.5.1.1). */
  readonly timestampUs: number
  /** Arrival time of the first CONCLUSION. */
  readonly arrivedUs: number
}

/** Identity of an attempt: two encoders may choose the same socket id, and an encoder may call twice from one port. */
export function attemptKey({ remoteAddress, remotePort, handshake }: Peer): string {
  return `${remoteAddress} ${remotePort} ${handshake.socketId} ${handshake.initialSequenceNumber}`
}
