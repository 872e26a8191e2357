/**
 * Calling side without the socket: the handshake with a listener, then the connection.
 *
 * Inputs: `start` once, `tick` every 10 ms, `handleDatagram`, `send`, `close`. The last output is one call of
 * `CallHost.ended`, or of `CallHost.refused` if no connection was established.
 *
 * @module
 */
import type { MillraceError } from '../../errors.ts'
import {
  HandshakeInitiator,
  type ConclusionResponse,
  type InitiatorOptions,
} from '../handshake/handshake-initiator.ts'
import type { SenderStats } from '../stats.ts'
import type { CloseReason } from '../types.ts'
import { HsFlag } from '../wire/extension.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  MAX_DATAGRAM_BYTES,
} from '../wire/packet.ts'
import { Connection } from './connection.ts'
import { ReadProgress } from '../read-progress.ts'

/** Receive window, as by default in libsrt; a listener sends no payloads to a publisher. */
const RECEIVE_WINDOW_PACKETS = 8192

export interface CallOptions extends Omit<InitiatorOptions, 'receiveWindowPackets' | 'host'> {
  readonly sendBufferPackets: number
  readonly maxBandwidthBps: number
  /** Silence of the listener after which the connection ends with `timeout`. */
  readonly idleTimeoutUs: number
  readonly host: CallHost
}

/** Owner of the socket; receives the outputs of a call. */
export interface CallHost {
  transmit(datagram: Buffer): void
  connected(): void
  refused(error: MillraceError): void
  ended(reason: CloseReason): void
}

export class Call {
  readonly #options: CallOptions
  readonly #initiator: HandshakeInitiator
  #connection: Connection | undefined
  #progress: ReadProgress | undefined
  #startedUs = 0
  #closing = false

  constructor(options: CallOptions) {
    const { host } = options
    this.#options = options
    this.#initiator = new HandshakeInitiator({
      ...options,
      receiveWindowPackets: RECEIVE_WINDOW_PACKETS,
      host: {
        transmit: (datagram) => host.transmit(datagram),
        accepted: (response, nowUs) => this.#connect(response, nowUs),
        refused: (error) => host.refused(error),
      },
    })
  }

  start(nowUs: number): void {
    this.#startedUs = nowUs
    this.#progress = new ReadProgress(nowUs)
    this.#initiator.start(nowUs)
  }

  /** @param datagram  owned by the call from now on */
  handleDatagram(datagram: Buffer, nowUs: number): void {
    const { length } = datagram
    if (length < HEADER_BYTES || length > MAX_DATAGRAM_BYTES) return
    if (destinationSocketId(datagram) !== this.#options.socketId) return
    if (this.#connection !== undefined) this.#connection.handleDatagram(datagram, nowUs)
    else if (isControl(datagram) && controlType(datagram) === ControlType.HANDSHAKE) {
      this.#initiator.handleDatagram(datagram, nowUs)
    }
  }

  #connect({ handshake, hs, timestampUs }: ConclusionResponse, nowUs: number): void {
    const options = this.#options
    this.#connection = new Connection({
      remoteAddress: options.remoteAddress,
      remotePort: options.remotePort,
      peerSrtVersion: hs.srtVersion,
      peerSocketId: handshake.socketId,
      initialSequenceNumber: options.initialSequenceNumber,
      delivery: {
        handshakeTimestampUs: timestampUs,
        handshakeArrivedUs: nowUs,
        latencyUs: Math.max(options.latencyMs, hs.senderDelayMs) * 1000,
      },
      windowPackets: RECEIVE_WINDOW_PACKETS,
      marksRetransmissions: (hs.flags & HsFlag.RETRANSMIT_FLAG) !== 0,
      idleTimeoutUs: options.idleTimeoutUs,
      progress: this.#progress!,
      startUs: this.#startedUs,
      startTimestampUs: options.startTimestampUs,
      nowUs,
      sending: {
        bufferPackets: options.sendBufferPackets,
        peerWindowPackets: handshake.flowWindowPackets,
        peerLatencyUs: hs.receiverDelayMs * 1000,
        peerRepeatsNaks: (hs.flags & HsFlag.PERIODIC_NAK) !== 0,
        maxBandwidthBps: options.maxBandwidthBps,
        ...(options.encryption && { encryption: options.encryption }),
      },
      sink: {
        open: () => options.host.connected(),
        // A publisher expects no payloads: the receiver acknowledges a payload, and this sink discards it.
        push: () => {},
        gap: () => {},
        end: (reason) => options.host.ended(reason),
      },
      send: (datagram) => options.host.transmit(datagram),
      onMalformed: () => {},
      onExcess: () => {},
      // The sink is defined above: an exception is a bug and must surface.
      onFailure: (error) => {
        throw error
      },
    })
    this.#connection.open()
  }

  /** @returns false if the payload was not accepted: no connection, closing, or the send buffer is full */
  send(payload: Buffer, nowUs: number): boolean {
    return !this.#closing && this.#connection?.send(payload, nowUs) === true
  }

  /** @returns undefined before the connection is established */
  stats(): SenderStats | undefined {
    return this.#connection?.senderStats()
  }

  tick(nowUs: number): void {
    if (this.#progress?.tick(nowUs, true) === true) return
    if (this.#connection === undefined) this.#initiator.tick(nowUs)
    else {
      this.#connection.tick(nowUs)
      if (this.#closing && this.#connection.isDone(nowUs)) this.#connection.close()
    }
  }

  /**
   * Ends the connection once all payloads are acknowledged or dropped and the listener's latency has passed. No effect
   * before the connection is established.
   */
  close(): void {
    this.#closing = this.#connection !== undefined
  }
}
