/**
 * A caller in its handshake: its address, what it sent and what was agreed with it.
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
export interface Attempt extends Peer, ConnectionRequest {
  readonly agreement: Agreement
  /** FILTER extension as sent, where the caller has a packet filter. */
  readonly filter: Buffer | undefined
  /** Timestamp and arrival of the first CONCLUSION: the base of delivery times (4.5.1.1). */
  readonly timestampUs: number
  readonly arrivedUs: number
}

/** Identity of an attempt. Two encoders may choose the same socket id, and one encoder may call twice from one port. */
export function attemptKey({ remoteAddress, remotePort, handshake }: Peer): string {
  return `${remoteAddress} ${remotePort} ${handshake.socketId} ${handshake.initialSequenceNumber}`
}
