/**
 * One established connection (draft-sharabayko-srt 4): datagrams of one peer in; payloads, answers and the end out.
 *
 * Calling order: `open` once; then `handleDatagram`, `send` and `tick` as they come, until `closed`. `tick` is due every
 * 10 ms while `busy`, and every 250 ms otherwise. What reaches the network leaves through `ConnectionOptions.send`.
 *
 * @module
 */
import type { Decryption } from '../crypto/decryption.ts'
import { Receiver } from '../receive/receiver.ts'
import { RttEstimator } from '../rtt.ts'
import { Sender, type SenderOptions } from '../send/sender.ts'
import { KEEPALIVE_US } from '../timers.ts'
import { TokenBucket } from '../../token-bucket.ts'
import { Transmitter } from '../transmitter.ts'
import type { TsbpdOptions } from '../receive/tsbpd.ts'
import type { CloseReason, PayloadSink, SenderStats, SrtConnection, SrtStats } from '../types.ts'
import { decodeAck } from '../wire/ack.ts'
import { decodeDropRequest } from '../wire/drop-request.ts'
import { ExtensionType, formatSrtVersion } from '../wire/extension.ts'
import { decodeLossList } from '../wire/loss-list.ts'
import {
  ControlType,
  controlSubtype,
  controlType,
  HEADER_BYTES,
  isControl,
  typeSpecificInformation,
} from '../wire/packet.ts'

/** A lost SHUTDOWN leaves the peer talking to nobody until it gives up. */
const SHUTDOWN_COPIES = 3

/** From this version on, libsrt sends a packet again at most once per round trip, however often it is asked. */
const RESENDS_ONCE_PER_RTT = 0x010500

/**
 * Control packets that are looked at, a second. At 1 Gbit/s a receiver of libsrt's sends 1500 light ACKs, 100 full ones and
 * 50 NAKs; a sender, 100 ACKACKs.
 */
const CONTROL_PACKETS_PER_SEC = 2000

export interface ConnectionOptions {
  readonly peerSocketId: number
  readonly remoteAddress: string
  readonly remotePort: number
  /** `major << 16 | minor << 8 | patch` */
  readonly peerSrtVersion: number
  /** Of both directions (libsrt answers a handshake with the caller's own). */
  readonly initialSequenceNumber: number
  readonly delivery: TsbpdOptions
  /** How far a packet may be ahead of a missing one. */
  readonly windowPackets: number
  /** The peer marks what it sends again (HSREQ flag REXMITFLG). */
  readonly marksRetransmissions: boolean
  /** A peer that says nothing for this long is gone. */
  readonly idleTimeoutUs: number
  /** Our timestamps read `startTimestampUs` at `startUs`. */
  readonly startUs: number
  readonly startTimestampUs: number
  readonly nowUs: number
  /** Where the peer encrypts what it sends. */
  readonly decryption?: Decryption
  /** Where this side sends data as well. */
  readonly sending?: Omit<SenderOptions, 'initialSequenceNumber' | 'rtt' | 'transmitter' | 'nowUs'>
  readonly sink: PayloadSink
  /** Takes a datagram for the peer away. */
  readonly send: (datagram: Buffer) => void
  /** The peer sent a control packet that cannot be read. */
  readonly onMalformed: () => void
  /** The peer sends too many control packets; this one was dropped. */
  readonly onExcess: () => void
  /** Something threw that must not: the sink, or this code. The connection is closed then. */
  readonly onFailure: (error: unknown) => void
}

export class Connection implements SrtConnection {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly peerVersion: string
  readonly latencyMs: number
  readonly #options: ConnectionOptions
  readonly #transmitter: Transmitter
  readonly #receiver: Receiver
  readonly #sender: Sender | undefined
  readonly #rtt = new RttEstimator()
  readonly #controlBudget: TokenBucket
  /** Time of the latest input. */
  #nowUs: number
  #lastHeardUs: number
  #closed = false

  constructor(options: ConnectionOptions) {
    const { nowUs, initialSequenceNumber, sink } = options
    this.#options = options
    this.remoteAddress = options.remoteAddress
    this.remotePort = options.remotePort
    this.peerVersion = formatSrtVersion(options.peerSrtVersion)
    this.latencyMs = options.delivery.latencyUs / 1000
    this.#nowUs = nowUs
    this.#lastHeardUs = nowUs
    this.#controlBudget = new TokenBucket(CONTROL_PACKETS_PER_SEC, nowUs)
    this.#transmitter = new Transmitter(options)
    const both = { initialSequenceNumber, rtt: this.#rtt, transmitter: this.#transmitter, nowUs }
    this.#receiver = new Receiver({
      ...both,
      delivery: options.delivery,
      windowPackets: options.windowPackets,
      eagerNak: options.peerSrtVersion >= RESENDS_ONCE_PER_RTT,
      marksRetransmissions: options.marksRetransmissions,
      ...(options.decryption && { decryption: options.decryption }),
      sink,
    })
    if (options.sending) this.#sender = new Sender({ ...both, ...options.sending })
  }

  get lastHeardUs(): number {
    return this.#lastHeardUs
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Data is under way in either direction. */
  get busy(): boolean {
    return !this.#closed && (this.#receiver.busy || this.#sender?.busy === true)
  }

  /** The peer has what was sent, or would not want it any more; nothing is lost by closing. */
  isDone(nowUs: number): boolean {
    return this.#sender === undefined || this.#sender.isDone(nowUs)
  }

  /** Tells the sink. */
  open(): void {
    try {
      this.#options.sink.open(this)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** @param datagram  of this peer, with a whole header; payloads handed to the sink are views into it */
  handleDatagram(datagram: Buffer, nowUs: number): void {
    if (this.#closed) return
    this.#nowUs = nowUs
    this.#lastHeardUs = nowUs
    try {
      if (!isControl(datagram)) this.#receiver.handleData(datagram, nowUs)
      else if (this.#controlBudget.take(nowUs)) this.#handleControl(datagram, nowUs)
      else this.#options.onExcess()
    } catch (error) {
      this.#fail(error)
    }
  }

  #handleControl(datagram: Buffer, nowUs: number): void {
    const information = typeSpecificInformation(datagram)
    switch (controlType(datagram)) {
      case ControlType.ACK: {
        const ack = decodeAck(datagram)
        if (ack === undefined) this.#options.onMalformed()
        else this.#sender?.handleAck(ack, information, nowUs)
        break
      }
      case ControlType.ACKACK:
        this.#receiver.handleAckAck(information, nowUs)
        break
      case ControlType.NAK: {
        const ranges = decodeLossList(datagram)
        if (ranges === undefined) this.#options.onMalformed()
        else this.#sender?.handleNak(ranges, nowUs)
        break
      }
      case ControlType.DROPREQ: {
        const range = decodeDropRequest(datagram)
        if (range === undefined) this.#options.onMalformed()
        else this.#receiver.handleDropRequest(range)
        break
      }
      case ControlType.USER_DEFINED:
        this.#handleExtension(datagram, nowUs)
        break
      case ControlType.SHUTDOWN:
        this.#end('shutdown')
        break
      default:
      // KEEPALIVE has said all by coming; the rest is not for live data.
    }
  }

  #handleExtension(datagram: Buffer, nowUs: number): void {
    const contents = datagram.subarray(HEADER_BYTES)
    const { decryption, sending } = this.#options
    switch (controlSubtype(datagram)) {
      case ExtensionType.KMREQ:
        // A refusal would be taken for the end of encryption; the peer repeats what is not answered.
        if (decryption?.refresh(contents, this.#receiver.end, nowUs) === true) {
          this.#transmitter.sendExtension(ExtensionType.KMRSP, contents, nowUs)
        } else this.#options.onMalformed()
        break
      case ExtensionType.KMRSP:
        sending?.encryption?.handleResponse(contents)
        break
      default:
      // Handshake extensions of version 4 (libsrt before 1.3).
    }
  }

  /**
   * Takes a payload for the peer.
   *
   * @returns false where it could not be taken: the send buffer is full, or the connection is closed
   */
  send(payload: Buffer, nowUs: number): boolean {
    if (this.#closed || this.#sender === undefined) return false
    this.#nowUs = nowUs
    return this.#sender.push(payload, nowUs)
  }

  tick(nowUs: number): void {
    if (this.#closed) return
    this.#nowUs = nowUs
    try {
      this.#tick(nowUs)
    } catch (error) {
      this.#fail(error)
    }
  }

  #tick(nowUs: number): void {
    if (nowUs - this.#lastHeardUs >= this.#options.idleTimeoutUs) {
      this.#end('timeout')
      return
    }
    this.#receiver.tick(nowUs)
    if (this.#closed) return
    this.#sender?.tick(nowUs)
    if (nowUs - this.#transmitter.lastSentUs >= KEEPALIVE_US) {
      this.#transmitter.sendControl(ControlType.KEEPALIVE, 0, undefined, nowUs)
    }
  }

  close(): void {
    this.#end('closed')
  }

  /** The peer's last words still count; ours end it at once. */
  #end(reason: CloseReason): void {
    if (reason !== 'closed') this.#receiver.flush()
    // Closed before, or by the sink just now.
    if (this.#closed) return
    this.#closed = true
    this.#receiver.stop()
    if (reason !== 'shutdown') {
      for (let i = 0; i < SHUTDOWN_COPIES; i++) {
        this.#transmitter.sendControl(ControlType.SHUTDOWN, 0, undefined, this.#nowUs)
      }
    }
    try {
      this.#options.sink.end(reason)
    } catch (error) {
      this.#options.onFailure(error)
    }
  }

  #fail(error: unknown): void {
    this.#options.onFailure(error)
    this.#end('closed')
  }

  stats(): SrtStats {
    return {
      ...this.#receiver.stats(),
      msRtt: this.#rtt.rttUs / 1000,
      msRcvTsbPdDelay: this.latencyMs,
    }
  }

  /** What was sent; undefined on a side that only receives. */
  senderStats(): SenderStats | undefined {
    return this.#sender?.stats()
  }
}
