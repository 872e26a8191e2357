/**
 * The caller's side of the handshake (draft-sharabayko-srt 4.3.1).
 *
 *   INDUCTION ─► cookie ─► CONCLUSION ─► acceptance, or rejection
 *
 * Each request is repeated every 250 ms until its response arrives or `connectTimeoutUs` has passed.
 *
 * @module
 */
import type { Encryption } from '../crypto/encryption.ts'
import { SrtError } from '../srt-error.ts'
import {
  decodeExtensions,
  encodeBlock,
  encodeHsExtension,
  encodeStreamIdExtension,
  extensionFieldOf,
  ExtensionType,
  type HsExtension,
} from '../wire/extension.ts'
import {
  decodeHandshake,
  encodeHandshake,
  HANDSHAKE_VERSION,
  HandshakeType,
  SRT_MAGIC,
  UDT_DATAGRAM,
  type Handshake,
} from '../wire/handshake.ts'
import { decodeKmState, KmState } from '../wire/key-material.ts'
import { DEFAULT_MTU_BYTES, timestampUs } from '../wire/packet.ts'
import { RejectCode } from '../wire/reject-code.ts'
import { hasValidLimits } from './negotiation.ts'

/** Version in a caller's induction: lower than `HANDSHAKE_VERSION`, so that older listeners understand it (4.3.1.1). */
const INDUCTION_VERSION = 4

/** Interval of repeated requests, as in libsrt; the draft gives none. */
const RETRY_US = 250_000

export interface InitiatorOptions {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly socketId: number
  /** StreamID; empty for none. */
  readonly streamId: string
  /** Receive latency of this side. */
  readonly latencyMs: number
  /** Receive latency proposed to the listener. */
  readonly peerLatencyMs: number
  readonly initialSequenceNumber: number
  /** Timestamp of the first request. */
  readonly startTimestampUs: number
  readonly receiveWindowPackets: number
  readonly connectTimeoutUs: number
  /** Present if the payloads are to be encrypted. */
  readonly encryption?: Encryption
  readonly host: InitiatorHost
}

interface InitiatorHost {
  transmit(datagram: Buffer): void
  /** The listener accepted; the last call. */
  accepted(response: ConclusionResponse, nowUs: number): void
  /** The listener refused or did not answer in time; the last call. */
  refused(error: SrtError): void
}

/** A listener's acceptance. */
export interface ConclusionResponse {
  readonly handshake: Handshake
  readonly hs: HsExtension
  readonly timestampUs: number
}

/** Inputs: `start` once, `tick` every 10 ms, `handleDatagram`. */
export class HandshakeInitiator {
  readonly #options: InitiatorOptions
  #phase: 'idle' | 'induction' | 'conclusion' | 'over' = 'idle'
  #startedUs = 0
  #requestedUs = 0
  #cookie = 0

  constructor(options: InitiatorOptions) {
    this.#options = options
  }

  start(nowUs: number): void {
    this.#startedUs = nowUs
    this.#phase = 'induction'
    this.#request(nowUs)
  }

  /** @param datagram  handshake packet for this caller's socket id */
  handleDatagram(datagram: Buffer, nowUs: number): void {
    const handshake = decodeHandshake(datagram)
    if (handshake === undefined || this.#phase === 'over') return
    const { type } = handshake
    if (type >= RejectCode.UNKNOWN) this.#refuse(describeReject(type), type)
    else if (this.#phase === 'induction' && type === HandshakeType.INDUCTION) {
      this.#handleInduction(handshake, nowUs)
    } else if (this.#phase === 'conclusion' && type === HandshakeType.CONCLUSION) {
      this.#handleConclusion(datagram, handshake, nowUs)
    }
  }

  #handleInduction({ version, extensionField, cookie }: Handshake, nowUs: number): void {
    if (version !== HANDSHAKE_VERSION || extensionField !== SRT_MAGIC) {
      this.#refuse(
        `the SRT peer speaks handshake version ${version}, not ${HANDSHAKE_VERSION}: update it`,
      )
      return
    }
    this.#cookie = cookie
    this.#phase = 'conclusion'
    this.#request(nowUs)
  }

  #handleConclusion(datagram: Buffer, handshake: Handshake, nowUs: number): void {
    const { initialSequenceNumber, encryption, host } = this.#options
    const { hs, keyMaterial } = decodeExtensions(datagram) ?? {}
    if (hs === undefined || !hasValidLimits(handshake)) return
    if (handshake.initialSequenceNumber !== initialSequenceNumber) return
    const disagreement = encryption && describeDisagreement(encryption, keyMaterial)
    if (disagreement !== undefined) {
      this.#refuse(disagreement)
      return
    }
    this.#phase = 'over'
    host.accepted({ handshake, hs, timestampUs: timestampUs(datagram) }, nowUs)
  }

  #request(nowUs: number): void {
    const { host, remoteAddress, encryption, ...options } = this.#options
    const isInduction = this.#phase === 'induction'
    const blocks = isInduction ? [] : this.#encodeExtensions()
    const request: Handshake = {
      version: isInduction ? INDUCTION_VERSION : HANDSHAKE_VERSION,
      encryptionField: isInduction || encryption === undefined ? 0 : encryption.keyBytes / 8,
      extensionField: isInduction ? UDT_DATAGRAM : extensionFieldOf(blocks),
      initialSequenceNumber: options.initialSequenceNumber,
      mtuBytes: DEFAULT_MTU_BYTES,
      flowWindowPackets: options.receiveWindowPackets,
      type: isInduction ? HandshakeType.INDUCTION : HandshakeType.CONCLUSION,
      socketId: options.socketId,
      cookie: this.#cookie,
    }
    this.#requestedUs = nowUs
    host.transmit(
      encodeHandshake(request, {
        socketId: 0,
        timestampUs: options.startTimestampUs + nowUs - this.#startedUs,
        peerAddress: remoteAddress,
        blocks,
      }),
    )
  }

  #encodeExtensions(): Buffer[] {
    const { latencyMs, peerLatencyMs, streamId, encryption } = this.#options
    const delays = { receiverDelayMs: latencyMs, senderDelayMs: peerLatencyMs }
    return [
      encodeHsExtension(ExtensionType.HSREQ, delays),
      ...(streamId === '' ? [] : [encodeStreamIdExtension(streamId)]),
      ...(encryption ? [encodeBlock(ExtensionType.KMREQ, encryption.keyMaterial)] : []),
    ]
  }

  tick(nowUs: number): void {
    if (this.#phase === 'idle' || this.#phase === 'over') return
    if (nowUs - this.#startedUs >= this.#options.connectTimeoutUs) this.#timeOut()
    else if (nowUs - this.#requestedUs >= RETRY_US) this.#request(nowUs)
  }

  #timeOut(): void {
    const { remoteAddress, remotePort, connectTimeoutUs, host } = this.#options
    const message = `no SRT peer answered at ${remoteAddress}:${remotePort} within ${connectTimeoutUs / 1e6} s: check address, UDP port and firewall`
    this.#phase = 'over'
    host.refused(new SrtError('SRT_TIMEOUT', message))
  }

  #refuse(message: string, rejectCode: number = RejectCode.UNKNOWN): void {
    this.#phase = 'over'
    this.#options.host.refused(new SrtError('SRT_REJECTED', message, { rejectCode }))
  }
}

/**
 * Explains why the listener has not adopted the key; undefined if it has. A listener may accept a caller whose payloads
 * it cannot decrypt (libsrt: `enforcedencryption=0`).
 *
 * @param response  contents of the KMRSP; they repeat the KMREQ if the listener has adopted the key
 */
function describeDisagreement(
  { keyMaterial }: Encryption,
  response: Buffer | undefined,
): string | undefined {
  if (response?.equals(keyMaterial) === true) return undefined
  return response !== undefined && decodeKmState(response) === KmState.BAD_SECRET
    ? 'the SRT peer has another passphrase: set the same on both sides'
    : 'the SRT peer does not agree to encrypt: set the passphrase there too, or on neither side'
}

/** What the codes of a refusal mean that callers can do something about. */
const REFUSALS: Readonly<Record<number, string>> = {
  [RejectCode.BADSECRET]: 'it does not take the passphrase or the stream id',
  [RejectCode.UNSECURE]: 'set the passphrase on both sides, or on neither',
}

function describeReject(code: number): string {
  const name = Object.entries(RejectCode).find(([, value]) => value === code)?.[0]
  const advice = REFUSALS[code] ?? 'its log has the reason'
  return `the SRT peer refused the connection: ${code}${name === undefined ? '' : ` (${name})`}; ${advice}`
}
