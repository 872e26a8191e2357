/**
 * The listener's side of the handshake (draft-sharabayko-srt 4.3.1).
 *
 *   INDUCTION  ─► a cookie; nothing is stored
 *   CONCLUSION ─► valid cookie? ─► known attempt? same response ─► rate limit ─► negotiation ─► backlog ─► accept hook
 *                                                                              ─► connection, or rejection
 *
 * A caller repeats its CONCLUSION every 250 ms, so repetitions are the rule on long paths. The response is therefore
 * stored: an acceptance until `TOMBSTONE_US` after the end of its connection, a rejection for `TOMBSTONE_US`.
 *
 * @module
 */
import type { Elsewhere, PayloadSink } from '../types.ts'
import { decodeExtensions, formatSrtVersion } from '../wire/extension.ts'
import { decodeHandshake, HANDSHAKE_VERSION, HandshakeType } from '../wire/handshake.ts'
import { timestampUs } from '../wire/packet.ts'
import { RejectCode } from '../wire/reject-code.ts'
import { attemptKey, type Attempt, type Peer } from './attempt.ts'
import { Backlog } from './backlog.ts'
import { CookieIssuer, type CookieOwner } from './cookie.ts'
import type { Keys } from './key-agreement.ts'
import { negotiate, negotiateLatency, type Terms } from './negotiation.ts'
import {
  encodeConclusionResponse,
  encodeInductionResponse,
  encodeRejection,
  encodeShutdown,
} from './responses.ts'
import { HandshakeLimits } from './source-limiter.ts'

/** Time for which the identity of a closed connection stays taken, so that no late packet reopens it. */
const TOMBSTONE_US = 3_000_000

/** Max number of rejections stored for callers that repeat their CONCLUSION. */
const MAX_REJECTIONS = 1024

/** Max time for which a caller is expected, which repeats its CONCLUSION for 3 s, and max number of those. */
const EXPECTED_US = 3_000_000
const MAX_EXPECTED = 256

export interface ResponderOptions extends Terms {
  /** Max time from the CONCLUSION to the decision of the accept hook, without stalls of the process. */
  readonly acceptTimeoutUs: number
  readonly random: (bytes: number) => Buffer
  readonly nowUs: number
  /** Default: limits of its own. */
  readonly limits?: HandshakeLimits
  readonly host: ResponderHost
}

export interface ResponderHost {
  transmit(datagram: Buffer, port: number, address: string): void
  /** Requests a decision: the caller waits until `decide` is called. */
  request(attempt: Attempt): void
  /** The caller is rejected without a request, since it asks for what this side does not support. */
  refuse?(peer: Peer, code: RejectCode): void
  /** The attempt has ended without a decision: a later `decide` has no effect. */
  expire(attempt: Attempt): void
  /** Creates the connection and gives it a socket id. */
  connect(attempt: Attempt, acceptance: Acceptance, nowUs: number): Connected
  /** The connection ended `TOMBSTONE_US` ago; its socket id may be used again. */
  forget(localSocketId: number): void
  /** A caller of `expect` is expected no more. */
  lapse?(port: number, address: string): void
}

/** Sink of an accepted caller's payloads, with keys if and only if the caller encrypts. */
export interface Acceptance extends Keys {
  readonly sink: PayloadSink
  /** Min receive latency for this caller, in milliseconds; by default `Terms.latencyMs`. */
  readonly latencyMs?: number
  /** Whether payloads are sent to this caller; default false. */
  readonly sends?: boolean
}

/** Decision about an attempt: accepted, with keys derived, or a reject code, or no answer: another listener gives one. */
export type Decision = Acceptance | { readonly reject: number } | Elsewhere

/** Socket id of a new connection, and the part of the connection that the handshake uses. */
interface Connected {
  readonly localSocketId: number
  /** Present for a member of a socket group: this side's id of the group. */
  readonly groupId?: number
  readonly connection: { readonly closed: boolean; open(): void }
}

interface Accepted extends Connected {
  readonly response: Buffer
  /** Time at which the connection is forgotten; Infinity until `sweep` finds it closed. */
  expiresUs: number
}

interface Expected {
  readonly port: number
  readonly address: string
  readonly expiresUs: number
}

interface Rejected {
  readonly response: Buffer
  readonly expiresUs: number
}

/** Inputs: `handleDatagram`, `decide` after each `ResponderHost.request`, `sweep` every 250 ms, `close`. */
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
  readonly #limits: HandshakeLimits
  readonly #backlog = new Backlog()
  /** Connections by attempt key. */
  readonly #accepted = new Map<string, Accepted>()
  /** Rejections by attempt key, oldest first. */
  readonly #rejected = new Map<string, Rejected>()
  /** Callers whose cookie another listener has verified, oldest first. */
  readonly #expected = new Map<string, Expected>()
  #closed = false

  constructor(options: ResponderOptions) {
    this.#options = options
    this.#host = options.host
    this.#limits = options.limits ?? new HandshakeLimits()
    this.#cookies = new CookieIssuer(options.random, options.nowUs)
  }

  /** Whether `sweep` has anything to wait for: attempts, connections, rejections or callers that are expected. */
  get busy(): boolean {
    const { size } = this.#expected
    return this.#backlog.size + this.#accepted.size + this.#rejected.size + size > 0
  }

  /**
   * Takes CONCLUSIONs from this address for `EXPECTED_US` without a cookie of its own: another listener at the port has verified it.
   *
   * @returns false if it is expected already, or too many are
   */
  expect(port: number, address: string, nowUs: number): boolean {
    const key = `${address} ${port}`
    if (this.#expected.has(key) || this.#expected.size >= MAX_EXPECTED) return false
    this.#expected.set(key, { port, address, expiresUs: nowUs + EXPECTED_US })
    return true
  }

  /** @param datagram  handshake packet with destination socket id 0 */
  handleDatagram(datagram: Buffer, port: number, address: string, nowUs: number): void {
    const handshake = decodeHandshake(datagram)
    const peer = handshake && { remoteAddress: address, remotePort: port, handshake }
    if (peer?.handshake.type === HandshakeType.INDUCTION) this.#handleInduction(peer, nowUs)
    else if (peer?.handshake.type === HandshakeType.CONCLUSION) {
      this.#handleConclusion(datagram, peer, nowUs)
    } else this.counters.malformed++
  }

  #handleInduction(peer: Peer, nowUs: number): void {
    this.counters.inductions++
    if (!this.#limits.inductions.admit(peer.remoteAddress, nowUs)) {
      this.counters.inductionsDropped++
      return
    }
    const cookie = this.#cookies.issue(cookieOwner(peer), nowUs)
    this.#send(peer, encodeInductionResponse(peer, cookie))
  }

  #handleConclusion(datagram: Buffer, peer: Peer, nowUs: number): void {
    const isExpected = this.#expected.has(`${peer.remoteAddress} ${peer.remotePort}`)
    // No response: the source address may be forged.
    if (!isExpected && !this.#cookies.verify(peer.handshake.cookie, cookieOwner(peer), nowUs)) {
      this.counters.badCookies++
      return
    }
    const key = attemptKey(peer)
    if (this.#backlog.has(key) || this.#accepted.has(key) || this.#rejected.has(key)) {
      this.counters.duplicateHandshakes++
      this.#repeatResponse(key, peer)
      return
    }
    // Checked after cookie and repetition, so that forged sources and repeated packets do not count toward the limit.
    if (!this.#limits.conclusions.admit(peer.remoteAddress, nowUs)) {
      this.counters.conclusionsDropped++
      return
    }
    const extensions = decodeExtensions(datagram)
    if (extensions === undefined) {
      this.counters.malformed++
      return
    }
    const agreement = negotiate(peer.handshake, extensions, this.#options)
    if ('reject' in agreement) {
      this.#reject(peer, agreement.reject, nowUs)
      this.#host.refuse?.(peer, agreement.reject)
    } else if (this.#closed) this.#reject(peer, RejectCode.CLOSE, nowUs)
    else if (!this.#backlog.hasRoomFor(peer.remoteAddress)) {
      this.#reject(peer, RejectCode.BACKLOG, nowUs)
    } else {
      const attempt: Attempt = {
        ...peer,
        agreement,
        streamId: extensions.streamId ?? '',
        peerVersion: formatSrtVersion(agreement.srtVersion),
        filter: extensions.filter,
        timestampUs: timestampUs(datagram),
        arrivedUs: nowUs,
      }
      this.#backlog.push(attempt)
      this.#host.request(attempt)
    }
  }

  /** Sends the stored response again; sends none while the host decides, or after the connection has closed. */
  #repeatResponse(key: string, peer: Peer): void {
    const accepted = this.#accepted.get(key)
    if (accepted?.connection.closed) return
    const { response } = accepted ?? this.#rejected.get(key) ?? {}
    if (response !== undefined) this.#send(peer, response)
  }

  /** Accepts or rejects an attempt as the host decided; no effect once the attempt has expired. */
  decide(attempt: Attempt, decision: Decision, nowUs: number): void {
    if (!this.#backlog.take(attempt) || 'isElsewhere' in decision) return
    if ('reject' in decision) {
      this.#reject(attempt, decision.reject, nowUs)
      return
    }
    this.counters.accepted++
    const accepted = this.#withLatency(attempt, decision.latencyMs)
    const connected = this.#host.connect(accepted, decision, nowUs)
    const response = encodeConclusionResponse(accepted, connected, nowUs)
    this.#accepted.set(attemptKey(attempt), { ...connected, response, expiresUs: Infinity })
    this.#send(attempt, response)
    connected.connection.open()
  }

  #withLatency(attempt: Attempt, latencyMs = this.#options.latencyMs): Attempt {
    const { agreement } = attempt
    const terms = { latencyMs, maxLatencyMs: this.#options.maxLatencyMs }
    const latency = negotiateLatency(agreement.proposedLatencyMs, terms)
    return { ...attempt, agreement: { ...agreement, ...latency } }
  }

  #reject(peer: Peer, code: number, nowUs: number): void {
    // Values below 1000 are handshake types, not reject codes.
    const type = code >= RejectCode.UNKNOWN ? code : RejectCode.INTERNAL
    this.counters.rejects[type] = (this.counters.rejects[type] ?? 0) + 1
    const response = encodeRejection(peer, type)
    this.#rejected.set(attemptKey(peer), { response, expiresUs: nowUs + TOMBSTONE_US })
    const [oldest] = this.#rejected.keys()
    if (this.#rejected.size > MAX_REJECTIONS) this.#rejected.delete(oldest!)
    this.#send(peer, response)
    if (peer.handshake.version < HANDSHAKE_VERSION) this.#send(peer, encodeShutdown(peer))
  }

  /** Rejects attempts not decided in time; forgets closed connections and rejections after `TOMBSTONE_US`, and who does not come. */
  sweep(nowUs: number): void {
    this.#expire(this.#options.acceptTimeoutUs, RejectCode.TIMEOUT, nowUs)
    for (const [key, accepted] of this.#accepted) {
      if (!accepted.connection.closed) continue
      accepted.expiresUs = Math.min(accepted.expiresUs, nowUs + TOMBSTONE_US)
      if (nowUs < accepted.expiresUs) continue
      this.#accepted.delete(key)
      this.#host.forget(accepted.localSocketId)
    }
    for (const [key, { expiresUs }] of this.#rejected) {
      if (nowUs < expiresUs) break
      this.#rejected.delete(key)
    }
    for (const [key, { port, address, expiresUs }] of this.#expected) {
      if (nowUs < expiresUs) break
      this.#expected.delete(key)
      this.#host.lapse?.(port, address)
    }
  }

  #expire(timeoutUs: number, code: RejectCode, nowUs: number): void {
    for (const attempt of this.#backlog.takeExpired(timeoutUs, nowUs)) {
      this.#reject(attempt, code, nowUs)
      this.#host.expire(attempt)
    }
  }

  /** Rejects all waiting callers, and every later one. */
  close(nowUs: number): void {
    this.#closed = true
    this.#expire(0, RejectCode.CLOSE, nowUs)
  }

  #send(peer: Peer, datagram: Buffer): void {
    this.#host.transmit(datagram, peer.remotePort, peer.remoteAddress)
  }
}

function cookieOwner({ remoteAddress, remotePort, handshake }: Peer): CookieOwner {
  return { address: remoteAddress, port: remotePort, socketId: handshake.socketId }
}
