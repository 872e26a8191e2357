/**
 * Calling side without the socket: the handshake with a listener, then the connection.
 *
 * Inputs: `start` once, `tick` every 10 ms, `handleDatagram`, `send`, `close`. The last output is one call of
 * `CallHost.ended`, or of `CallHost.refused` if no connection was established.
 *
 * @module
 */
import {
  HandshakeInitiator,
  type ConclusionResponse,
  type InitiatorOptions,
} from '../handshake/handshake-initiator.ts'
import { negotiateLatency, windowPackets } from '../handshake/negotiation.ts'
import { ReceiveQueue } from '../receive/receive-queue.ts'
import type { SrtError } from '../srt-error.ts'
import type { SenderStats } from '../stats.ts'
import type { CloseReason, PayloadSink } from '../types.ts'
import { HsFlag } from '../wire/extension.ts'
import { MAX_LATENCY_MS } from '../wire/limits.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  MAX_DATAGRAM_BYTES,
} from '../wire/packet.ts'
import { Connection } from './connection.ts'
import type { Datagram } from '../transmitter.ts'
import { ReadProgress } from '../read-progress.ts'

interface CallOptions extends Omit<InitiatorOptions, 'receiveWindowPackets' | 'host'> {
  readonly sendBufferPackets: number
  readonly maxBandwidthBps: number
  /** Silence of the listener after which the connection ends with `timeout`. */
  readonly idleTimeoutUs: number
  /** Receiver of the listener's payloads; default: they are discarded. */
  readonly sink?: PayloadSink | undefined
  /** Whether data packets of the listener are taken; otherwise they are discarded as they arrive. Default true. */
  readonly receives?: boolean
  readonly host: CallHost
}

/** Owner of the socket; receives the outputs of a call. */
interface CallHost {
  transmit(datagram: Datagram): void
  connected(): void
  refused(error: SrtError): void
  ended(reason: CloseReason): void
  /** Reports an exception thrown by the sink or by this code; the connection then ends. */
  fail(error: unknown): void
}

export class Call {
  readonly #options: CallOptions
  readonly #initiator: HandshakeInitiator
  #connection: Connection | undefined
  #progress: ReadProgress | undefined
  #startedUs = 0

  constructor(options: CallOptions) {
    const { host } = options
    this.#options = options
    this.#initiator = new HandshakeInitiator({
      ...options,
      receiveWindowPackets: windowPackets(options.latencyMs),
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
    const { sink } = options
    const latency = negotiateLatency(hs.senderDelayMs, {
      latencyMs: options.latencyMs,
      maxLatencyMs: Math.max(options.latencyMs, MAX_LATENCY_MS),
    })
    const latencyUs = latency.latencyMs * 1000
    const shared = {
      initialSequenceNumber: options.initialSequenceNumber,
      windowPackets: latency.windowPackets,
      nowUs,
    }
    this.#connection = new Connection({
      remoteAddress: options.remoteAddress,
      remotePort: options.remotePort,
      peerSrtVersion: hs.srtVersion,
      peerSocketId: handshake.socketId,
      ...shared,
      latencyUs,
      marksRetransmissions: (hs.flags & HsFlag.RETRANSMIT_FLAG) !== 0,
      idleTimeoutUs: options.idleTimeoutUs,
      progress: this.#progress!,
      startUs: this.#startedUs,
      startTimestampUs: options.startTimestampUs,
      sending: {
        bufferPackets: options.sendBufferPackets,
        peerWindowPackets: handshake.flowWindowPackets,
        peerLatencyUs: hs.receiverDelayMs * 1000,
        peerRepeatsNaks: (hs.flags & HsFlag.PERIODIC_NAK) !== 0,
        maxBandwidthBps: options.maxBandwidthBps,
        ...(options.encryption && { encryption: options.encryption }),
      },
      receives: options.receives ?? true,
      ...(options.encryption && { decryption: options.encryption.createDecryption(nowUs) }),
      queue: new ReceiveQueue({
        ...shared,
        delivery: { handshakeTimestampUs: timestampUs, handshakeArrivedUs: nowUs, latencyUs },
        sink: {
          push: (payload) => sink?.push(payload),
          gap: (lostPackets) => sink?.gap(lostPackets),
        },
      }),
      sink: {
        open: (connection) => {
          options.host.connected()
          sink?.open(connection)
        },
        end: (reason) => {
          options.host.ended(reason)
          sink?.end(reason)
        },
      },
      send: (datagram) => options.host.transmit(datagram),
      onMalformed: () => {},
      onExcess: () => {},
      onFailure: (error) => options.host.fail(error),
    })
    this.#connection.open()
  }

  /**
   * @param payload  must not be changed afterwards
   * @returns false if it was not accepted: no connection, closing, or the send buffer is full
   */
  send(payload: Buffer, nowUs: number): boolean {
    return this.#connection?.send(payload, nowUs) === true
  }

  /** @returns undefined before the connection is established */
  stats(): SenderStats | undefined {
    return this.#connection?.senderStats()
  }

  /** @param drained  whether the socket was found empty at some time since the previous tick */
  tick(nowUs: number, drained = true): void {
    if (this.#progress?.tick(nowUs, drained) === true) return
    if (this.#connection === undefined) this.#initiator.tick(nowUs)
    else this.#connection.tick(nowUs)
  }

  /**
   * Ends the connection once all payloads are acknowledged or dropped and the listener's latency has passed. No effect
   * before the connection is established.
   */
  close(): void {
    this.#connection?.finish(Infinity)
  }
}
