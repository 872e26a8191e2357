/**
 * The listener's side of the handshake (draft-sharabayko-srt 4.3.1).
 *
 *   INDUCTION  ─► a cookie; nothing is kept
 *   CONCLUSION ─► good cookie? ─► seen before? same answer ─► too many? silence ─► negotiable? ─► the host decides
 *                                                                              ─► connection, or reject
 *
 * A caller repeats its CONCLUSION every 250 ms, so on long paths repetitions are the rule. An attempt is known by address,
 * port, socket id and initial sequence number; it keeps its answer as long as its connection lives, and a while longer.
 *
 * @module
 */
import { RejectCode } from '../../errors.ts'
import type { Connection } from '../connection/connection.ts'
import { CookieIssuer, type CookieOwner } from './cookie.ts'
import type { Decryption } from '../crypto/decryption.ts'
import { negotiate, type Agreement, type Terms } from './negotiation.ts'
import { CONCLUSION_LEVELS, INDUCTION_LEVELS, SourceLimiter } from './source-limiter.ts'
import { networkOf } from './source-network.ts'
import { TOMBSTONE_US } from '../timers.ts'
import type { ConnectionRequest, PayloadSink } from '../types.ts'
import {
  decodeExtensions,
  encodeBlock,
  encodeHsExtension,
  ExtensionType,
  extensionFieldOf,
  formatSrtVersion,
} from '../wire/extension.ts'
import {
  decodeHandshake,
  encodeHandshake,
  HANDSHAKE_VERSION,
  HandshakeType,
  SRT_MAGIC,
  type Handshake,
} from '../wire/handshake.ts'
import { ControlType, HEADER_BYTES, timestampUs, writeControlHeader } from '../wire/packet.ts'

/** Callers that wait for the host's decision at one time. */
const MAX_PENDING = 256

/** Refusals remembered for callers that repeat themselves. */
const MAX_REFUSALS = 1024

export interface ResponderOptions extends Terms {
  /** How long the host may think about a caller. */
  readonly acceptTimeoutUs: number
  readonly random: (bytes: number) => Buffer
  readonly nowUs: number
  readonly host: ResponderHost
}

export interface ResponderHost {
  transmit(datagram: Buffer, port: number, address: string): void
  /** A caller waits for `decide`. */
  request(attempt: Attempt): void
  /** The attempt is over without a decision; one that still comes has no effect. */
  expire(attempt: Attempt): void
  /** Makes the connection, known by `localSocketId` from now on. */
  connect(
    attempt: Attempt,
    acceptance: Acceptance,
    nowUs: number,
  ): { localSocketId: number; connection: Connection }
  /** The connection ended long enough ago for its socket id to be given away. */
  forget(localSocketId: number): void
}

/** Where an accepted caller's payloads go; `decryption` if and only if it encrypts them. */
export interface Acceptance {
  readonly sink: PayloadSink
  readonly decryption?: Decryption
}

/** The host's last word: accepted, with keys in hand, or a reject code. */
export type Verdict = Acceptance | { readonly reject: number }

/** Address of a caller and the handshake it sent. */
interface Peer {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly handshake: Handshake
}

/** A caller with a good cookie and agreeable terms. */
export interface Attempt extends Peer, ConnectionRequest {
  readonly agreement: Agreement
  readonly filter: Buffer | undefined
  /** Timestamp and arrival of its first CONCLUSION: the base of delivery times (4.5.1.1). */
  readonly timestampUs: number
  readonly arrivedUs: number
}

/** An accepted attempt. */
interface Accepted {
  readonly answer: Buffer
  readonly localSocketId: number
  readonly connection: Connection
  /** When it may be forgotten; Infinity while the connection lives. */
  expiresUs: number
}

interface Refused {
  readonly answer: Buffer
  readonly expiresUs: number
}

export class HandshakeResponder {
  readonly counters = {
    inductions: 0,
    inductionsDropped: 0,
    conclusionsDropped: 0,
    accepted: 0,
    duplicateHandshakes: 0,
    badCookies: 0,
    malformed: 0,
    rejects: {} as Record<number, number>,
  }
  readonly #options: ResponderOptions
  readonly #host: ResponderHost
  readonly #cookies: CookieIssuer
  readonly #inductions = new SourceLimiter(INDUCTION_LEVELS)
  readonly #conclusions = new SourceLimiter(CONCLUSION_LEVELS)
  readonly #pending = new Map<string, Attempt>()
  readonly #accepted = new Map<string, Accepted>()
  /** Oldest first. */
  readonly #refused = new Map<string, Refused>()
  #closed = false

  constructor(options: ResponderOptions) {
    this.#options = options
    this.#host = options.host
    this.#cookies = new CookieIssuer(options.random, options.nowUs)
  }

  /** Attempts and refusals wait for their time to pass. */
  get busy(): boolean {
    return this.#pending.size + this.#accepted.size + this.#refused.size > 0
  }

  get connections(): Connection[] {
    return [...this.#accepted.values()].map(({ connection }) => connection)
  }

  /** @param datagram  a handshake packet that looks for a listener */
  handleDatagram(datagram: Buffer, port: number, address: string, nowUs: number): void {
    const handshake = decodeHandshake(datagram)
    const peer = handshake && { remoteAddress: address, remotePort: port, handshake }
    if (peer?.handshake.type === HandshakeType.INDUCTION) this.#answerInduction(peer, nowUs)
    else if (peer?.handshake.type === HandshakeType.CONCLUSION) {
      this.#handleConclusion(datagram, peer, nowUs)
    } else this.counters.malformed++
  }

  /** The answer is no longer than the request, so that nobody can be flooded through us. */
  #answerInduction(peer: Peer, nowUs: number): void {
    this.counters.inductions++
    if (!this.#inductions.admit(peer.remoteAddress, nowUs)) {
      this.counters.inductionsDropped++
      return
    }
    const answer: Handshake = {
      ...peer.handshake,
      version: HANDSHAKE_VERSION,
      encryptionField: 0,
      extensionField: SRT_MAGIC,
      cookie: this.#cookies.issue(ownerOf(peer), nowUs),
    }
    this.#send(peer, encodeAnswer(peer, answer, 0))
  }

  #handleConclusion(datagram: Buffer, peer: Peer, nowUs: number): void {
    // Silence: an answer would go to whoever's address was forged.
    if (!this.#cookies.verify(peer.handshake.cookie, ownerOf(peer), nowUs)) {
      this.counters.badCookies++
      return
    }
    const key = keyOf(peer)
    if (this.#pending.has(key) || this.#accepted.has(key) || this.#refused.has(key)) {
      this.counters.duplicateHandshakes++
      this.#repeatAnswer(key, peer)
      return
    }
    // Not before: a forged source must not cost its owner an answer, nor a caller's repeats those of its NAT.
    if (!this.#conclusions.admit(peer.remoteAddress, nowUs)) {
      this.counters.conclusionsDropped++
      return
    }
    const extensions = decodeExtensions(datagram)
    if (extensions === undefined) {
      this.counters.malformed++
      return
    }
    const agreement = negotiate(peer.handshake, extensions, this.#options)
    if ('reject' in agreement) this.#refuse(peer, agreement.reject, nowUs)
    else if (this.#closed) this.#refuse(peer, RejectCode.CLOSE, nowUs)
    else if (!this.#hasRoomFor(peer)) this.#refuse(peer, RejectCode.BACKLOG, nowUs)
    else {
      const attempt: Attempt = {
        ...peer,
        agreement,
        streamId: extensions.streamId ?? '',
        peerVersion: formatSrtVersion(agreement.srtVersion),
        filter: extensions.filter,
        timestampUs: timestampUs(datagram),
        arrivedUs: nowUs,
      }
      this.#pending.set(key, attempt)
      this.#host.request(attempt)
    }
  }

  /** A network holds no more places than it leaves free: one alone half of them, and always some for a newcomer's. */
  #hasRoomFor({ remoteAddress }: Peer): boolean {
    const free = MAX_PENDING - this.#pending.size
    if (this.#pending.size < free) return true
    const network = networkOf(remoteAddress)
    const neighbors = [...this.#pending.values()].filter(
      (attempt) => networkOf(attempt.remoteAddress) === network,
    )
    return neighbors.length < free
  }

  /** Nothing while the host decides; nothing once the connection is over, so that no late packet brings it back. */
  #repeatAnswer(key: string, peer: Peer): void {
    const accepted = this.#accepted.get(key)
    if (accepted?.connection.closed) return
    const answer = (accepted ?? this.#refused.get(key))?.answer
    if (answer !== undefined) this.#send(peer, answer)
  }

  /** The host's word on an attempt. */
  decide(attempt: Attempt, verdict: Verdict, nowUs: number): void {
    const key = keyOf(attempt)
    if (this.#pending.get(key) !== attempt) return
    this.#pending.delete(key)
    if ('reject' in verdict) {
      this.#refuse(attempt, verdict.reject, nowUs)
      return
    }
    this.counters.accepted++
    const { localSocketId, connection } = this.#host.connect(attempt, verdict, nowUs)
    const answer = this.#encodeAcceptance(attempt, localSocketId, nowUs)
    this.#accepted.set(key, { answer, localSocketId, connection, expiresUs: Infinity })
    this.#send(attempt, answer)
    connection.open()
  }

  #encodeAcceptance(attempt: Attempt, localSocketId: number, nowUs: number): Buffer {
    const { handshake, agreement, filter } = attempt
    const { keyMaterial } = agreement
    const hsResponse = encodeHsExtension(ExtensionType.HSRSP, {
      receiverDelayMs: agreement.latencyMs,
      senderDelayMs: agreement.peerLatencyMs,
    })
    // A caller with a packet filter wants to read of it in the answer; its packets are set aside on arrival.
    const filterBlock = filter === undefined ? [] : [encodeBlock(ExtensionType.FILTER, filter)]
    // 3.2.2: whoever agrees repeats what it read.
    const keyBlock =
      keyMaterial === undefined ? [] : [encodeBlock(ExtensionType.KMRSP, keyMaterial.message)]
    const blocks = [hsResponse, ...filterBlock, ...keyBlock]
    const answer: Handshake = {
      ...handshake,
      encryptionField: 0,
      extensionField: extensionFieldOf(blocks),
      mtuBytes: agreement.mtuBytes,
      flowWindowPackets: agreement.windowPackets,
      socketId: localSocketId,
    }
    return encodeAnswer(attempt, answer, nowUs - attempt.arrivedUs, blocks)
  }

  #refuse(peer: Peer, code: number, nowUs: number): void {
    // Below 1000 lie the types that do not refuse.
    const type = code >= RejectCode.UNKNOWN ? code : RejectCode.INTERNAL
    this.counters.rejects[type] = (this.counters.rejects[type] ?? 0) + 1
    const answer = encodeAnswer(peer, { ...peer.handshake, version: HANDSHAKE_VERSION, type }, 0)
    this.#refused.set(keyOf(peer), { answer, expiresUs: nowUs + TOMBSTONE_US })
    const [oldest] = this.#refused.keys()
    if (this.#refused.size > MAX_REFUSALS) this.#refused.delete(oldest!)
    this.#send(peer, answer)
    if (peer.handshake.version < HANDSHAKE_VERSION) this.#send(peer, encodeShutdown(peer))
  }

  /** To be called now and then: lets go of what is over. */
  sweep(nowUs: number): void {
    for (const [key, attempt] of this.#pending) {
      if (nowUs - attempt.arrivedUs < this.#options.acceptTimeoutUs) continue
      this.#expire(key, attempt, RejectCode.TIMEOUT, nowUs)
    }
    for (const [key, accepted] of this.#accepted) {
      if (!accepted.connection.closed) continue
      accepted.expiresUs = Math.min(accepted.expiresUs, nowUs + TOMBSTONE_US)
      if (nowUs < accepted.expiresUs) continue
      this.#accepted.delete(key)
      this.#host.forget(accepted.localSocketId)
    }
    for (const [key, { expiresUs }] of this.#refused) {
      if (nowUs < expiresUs) break
      this.#refused.delete(key)
    }
  }

  #expire(key: string, attempt: Attempt, code: RejectCode, nowUs: number): void {
    this.#pending.delete(key)
    this.#refuse(attempt, code, nowUs)
    this.#host.expire(attempt)
  }

  /** Turns away whoever waits or comes from now on. */
  close(nowUs: number): void {
    this.#closed = true
    for (const [key, attempt] of this.#pending) {
      this.#expire(key, attempt, RejectCode.CLOSE, nowUs)
    }
  }

  #send(peer: Peer, datagram: Buffer): void {
    this.#host.transmit(datagram, peer.remotePort, peer.remoteAddress)
  }
}

function ownerOf({ remoteAddress, remotePort, handshake }: Peer): CookieOwner {
  return { address: remoteAddress, port: remotePort, socketId: handshake.socketId }
}

/** Two encoders may choose the same socket id, and one may call twice: none of these alone tells attempts apart. */
function keyOf({ remoteAddress, remotePort, handshake }: Peer): string {
  return `${remoteAddress} ${remotePort} ${handshake.socketId} ${handshake.initialSequenceNumber}`
}

function encodeAnswer(
  { remoteAddress, handshake }: Peer,
  answer: Handshake,
  timestamp: number,
  blocks: Buffer[] = [],
): Buffer {
  return encodeHandshake(answer, {
    socketId: handshake.socketId,
    timestampUs: timestamp,
    peerAddress: remoteAddress,
    blocks,
  })
}

/** A caller that speaks version 4 reads no reject codes. */
function encodeShutdown({ handshake }: Peer): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + 4)
  writeControlHeader(datagram, {
    type: ControlType.SHUTDOWN,
    information: 0,
    timestampUs: 0,
    socketId: handshake.socketId,
  })
  return datagram
}
