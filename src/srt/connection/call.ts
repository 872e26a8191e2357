/**
 * The calling side without the socket: shakes hands with a listener (draft-sharabayko-srt 4.3.1, the caller's side), then
 * carries the connection.
 *
 *   INDUCTION ─► cookie ─► CONCLUSION ─► agreement, or reject
 *
 * Inputs: `start` once; `handleDatagram`, `send` and `tick` every 10 ms; `close`. Everything ends with one call of
 * `CallHost.ended`, or of `CallHost.refused` where there never was a connection.
 *
 * @module
 */
import { MillraceError, RejectCode } from '../../errors.ts'
import { Connection } from './connection.ts'
import type { Encryption } from '../crypto/encryption.ts'
import { isSane } from '../handshake/negotiation.ts'
import { StallDetector } from './stall.ts'
import { HANDSHAKE_RETRY_US } from '../timers.ts'
import type { CloseReason, SenderStats } from '../types.ts'
import {
  decodeExtensions,
  encodeBlock,
  encodeHsExtension,
  encodeStreamIdExtension,
  extensionFieldOf,
  ExtensionType,
  HsFlag,
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
import {
  ControlType,
  controlType,
  DEFAULT_MTU_BYTES,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  MAX_DATAGRAM_BYTES,
  timestampUs,
} from '../wire/packet.ts'

/** A caller's induction speaks the version before, so that older listeners understand it. */
const INDUCTION_VERSION = 4

/** libsrt's default; publishers receive nothing. */
const RECEIVE_BUFFER_PACKETS = 8192

export interface CallOptions {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly socketId: number
  readonly streamId: string
  readonly latencyMs: number
  readonly peerLatencyMs: number
  readonly initialSequenceNumber: number
  readonly startTimestampUs: number
  readonly sendBufferPackets: number
  readonly maxBandwidthBps: number
  readonly connectTimeoutUs: number
  readonly idleTimeoutUs: number
  /** Made for this call alone, where it is to be encrypted. */
  readonly encryption?: Encryption
  readonly host: CallHost
}

/** Whoever owns the socket. */
export interface CallHost {
  transmit(datagram: Buffer): void
  connected(): void
  refused(error: MillraceError): void
  ended(reason: CloseReason): void
}

export class Call {
  readonly #options: CallOptions
  #state: 'idle' | 'induction' | 'conclusion' | 'connected' | 'closing' | 'over' = 'idle'
  #connection: Connection | undefined
  #stalls: StallDetector | undefined
  #startedUs = 0
  #requestedUs = 0
  #cookie = 0

  constructor(options: CallOptions) {
    this.#options = options
  }

  start(nowUs: number): void {
    this.#startedUs = nowUs
    this.#stalls = new StallDetector(nowUs)
    this.#state = 'induction'
    this.#request(nowUs)
  }

  /** @param datagram  the call's to keep */
  handleDatagram(datagram: Buffer, nowUs: number): void {
    const { length } = datagram
    if (length < HEADER_BYTES || length > MAX_DATAGRAM_BYTES) return
    if (destinationSocketId(datagram) !== this.#options.socketId) return
    if (this.#connection !== undefined) this.#connection.handleDatagram(datagram, nowUs)
    else if (isControl(datagram) && controlType(datagram) === ControlType.HANDSHAKE) {
      this.#handleHandshake(datagram, nowUs)
    }
  }

  #handleHandshake(datagram: Buffer, nowUs: number): void {
    const answer = decodeHandshake(datagram)
    if (answer === undefined || this.#state === 'over') return
    if (answer.type >= RejectCode.UNKNOWN) this.#refuse(describeReject(answer.type))
    else if (this.#state === 'induction' && answer.type === HandshakeType.INDUCTION) {
      if (answer.version !== HANDSHAKE_VERSION || answer.extensionField !== SRT_MAGIC) {
        this.#refuse(`the SRT peer speaks handshake version ${answer.version}, not 5`)
        return
      }
      this.#cookie = answer.cookie
      this.#state = 'conclusion'
      this.#request(nowUs)
    } else if (this.#state === 'conclusion' && answer.type === HandshakeType.CONCLUSION) {
      this.#conclude(datagram, answer, nowUs)
    }
  }

  #request(nowUs: number): void {
    const { host, remoteAddress, startTimestampUs, encryption, ...options } = this.#options
    const isInduction = this.#state === 'induction'
    const blocks = isInduction ? [] : this.#encodeTerms()
    const request: Handshake = {
      version: isInduction ? INDUCTION_VERSION : HANDSHAKE_VERSION,
      encryptionField: isInduction || encryption === undefined ? 0 : encryption.keyBytes / 8,
      extensionField: isInduction ? UDT_DATAGRAM : extensionFieldOf(blocks),
      initialSequenceNumber: options.initialSequenceNumber,
      mtuBytes: DEFAULT_MTU_BYTES,
      flowWindowPackets: RECEIVE_BUFFER_PACKETS,
      type: isInduction ? HandshakeType.INDUCTION : HandshakeType.CONCLUSION,
      socketId: options.socketId,
      cookie: this.#cookie,
    }
    this.#requestedUs = nowUs
    host.transmit(
      encodeHandshake(request, {
        socketId: 0,
        timestampUs: startTimestampUs + nowUs - this.#startedUs,
        peerAddress: remoteAddress,
        blocks,
      }),
    )
  }

  /** @returns the blocks of the conclusion: what this side asks for, and with */
  #encodeTerms(): Buffer[] {
    const { latencyMs, peerLatencyMs, streamId, encryption } = this.#options
    const delays = { receiverDelayMs: latencyMs, senderDelayMs: peerLatencyMs }
    return [
      encodeHsExtension(ExtensionType.HSREQ, delays),
      ...(streamId === '' ? [] : [encodeStreamIdExtension(streamId)]),
      ...(encryption ? [encodeBlock(ExtensionType.KMREQ, encryption.keyMaterial)] : []),
    ]
  }

  #conclude(datagram: Buffer, answer: Handshake, nowUs: number): void {
    const options = this.#options
    const { hs, keyMaterial } = decodeExtensions(datagram) ?? {}
    if (hs === undefined || !isSane(answer)) return
    if (answer.initialSequenceNumber !== options.initialSequenceNumber) return
    const disagreement = options.encryption && describeDisagreement(options.encryption, keyMaterial)
    if (disagreement !== undefined) {
      this.#refuse(disagreement)
      return
    }
    this.#connection = new Connection({
      remoteAddress: options.remoteAddress,
      remotePort: options.remotePort,
      peerSrtVersion: hs.srtVersion,
      peerSocketId: answer.socketId,
      initialSequenceNumber: options.initialSequenceNumber,
      delivery: {
        handshakeTimestampUs: timestampUs(datagram),
        handshakeArrivedUs: nowUs,
        latencyUs: Math.max(options.latencyMs, hs.senderDelayMs) * 1000,
      },
      windowPackets: RECEIVE_BUFFER_PACKETS,
      marksRetransmissions: (hs.flags & HsFlag.RETRANSMIT_FLAG) !== 0,
      idleTimeoutUs: options.idleTimeoutUs,
      startUs: this.#startedUs,
      startTimestampUs: options.startTimestampUs,
      nowUs,
      sending: {
        bufferPackets: options.sendBufferPackets,
        peerWindowPackets: answer.flowWindowPackets,
        peerLatencyUs: hs.receiverDelayMs * 1000,
        peerRepeatsNaks: (hs.flags & HsFlag.PERIODIC_NAK) !== 0,
        maxBandwidthBps: options.maxBandwidthBps,
        ...(options.encryption && { encryption: options.encryption }),
      },
      sink: {
        open: () => options.host.connected(),
        // A publisher wants nothing in return; what comes is acknowledged and let go.
        push: () => {},
        gap: () => {},
        end: (reason) => this.#finish(() => options.host.ended(reason)),
      },
      send: (sent) => options.host.transmit(sent),
      onMalformed: () => {},
      onExcess: () => {},
      // No sink of somebody else's could throw; what does is our own mistake and shall be seen.
      onFailure: (error) => {
        throw error
      },
    })
    this.#state = 'connected'
    this.#connection.open()
  }

  /** @returns false where the payload could not be taken: no connection, or the send buffer is full */
  send(payload: Buffer, nowUs: number): boolean {
    return this.#state === 'connected' && this.#connection!.send(payload, nowUs)
  }

  /** @returns undefined before the connection stands */
  stats(): SenderStats | undefined {
    return this.#connection?.senderStats()
  }

  tick(nowUs: number): void {
    if (this.#stalls?.shouldSkip(nowUs)) return
    if (this.#connection !== undefined) {
      this.#connection.tick(nowUs)
      if (this.#state === 'closing' && this.#connection.isDone(nowUs)) this.#connection.close()
    } else if (this.#state === 'induction' || this.#state === 'conclusion') {
      if (nowUs - this.#startedUs >= this.#options.connectTimeoutUs) this.#timeOut()
      else if (nowUs - this.#requestedUs >= HANDSHAKE_RETRY_US) this.#request(nowUs)
    }
  }

  /** Ends the connection once the peer has what was taken and has played it, or it is too late for that. */
  close(): void {
    if (this.#state === 'connected') this.#state = 'closing'
  }

  #timeOut(): void {
    const { remoteAddress, remotePort, connectTimeoutUs } = this.#options
    const message = `no SRT peer answered at ${remoteAddress}:${remotePort} within ${connectTimeoutUs / 1e6} s`
    this.#finish(() => this.#options.host.refused(new MillraceError('SRT_TIMEOUT', { message })))
  }

  #refuse(message: string): void {
    this.#finish(() => this.#options.host.refused(new MillraceError('SRT_REJECTED', { message })))
  }

  #finish(tell: () => void): void {
    this.#state = 'over'
    tell()
  }
}

/** A listener may let a caller in whose encryption it does not share (libsrt: `enforcedencryption=0`). */
function describeDisagreement(
  { keyMaterial }: Encryption,
  answer: Buffer | undefined,
): string | undefined {
  if (answer?.equals(keyMaterial) === true) return undefined
  return answer !== undefined && decodeKmState(answer) === KmState.BAD_SECRET
    ? 'the SRT peer has another passphrase'
    : 'the SRT peer does not agree to encrypt'
}

function describeReject(code: number): string {
  const name = Object.entries(RejectCode).find(([, value]) => value === code)?.[0]
  return `the SRT peer refused the connection: ${code}${name === undefined ? '' : ` (${name})`}`
}
