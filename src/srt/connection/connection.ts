/**
 * An established connection (draft-sharabayko-srt 4): dispatches the peer's packets to receiver and sender, sends
 * keepalives, and ends the sink exactly once.
 *
 * Calling order: `open` once; then `handleDatagram`, `send` and `tick` in any order, until `closed`. `tick` is due
 * every 10 ms while `busy`, and every 250 ms otherwise. Datagrams for the peer leave through `ConnectionOptions.send`.
 *
 * @module
 */
import { TokenBucket } from '../../timing/token-bucket.ts'
import type { Decryption } from '../crypto/decryption.ts'
import type { ReceiveQueue } from '../receive/receive-queue.ts'
import { Receiver } from '../receive/receiver.ts'
import { RttEstimator } from '../rtt-estimator.ts'
import { Sender, type SenderOptions } from '../send/sender.ts'
import type { LineStats, SenderStats, SrtStats } from '../stats.ts'
import { Transmitter, type Datagram } from '../transmitter.ts'
import type { CloseReason, PayloadSink, SrtConnection } from '../types.ts'
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
import type { ReadProgress } from '../read-progress.ts'

/** Time since the latest packet sent after which a keepalive is sent (3.2.3). */
const KEEPALIVE_US = 1_000_000

/** Number of copies of SHUTDOWN: a peer that receives none keeps sending until its idle timeout. */
const SHUTDOWN_COPIES = 3

/** First version of libsrt that retransmits a packet at most once per round trip, however often NAKs report it. */
const RETRANSMITS_ONCE_PER_RTT = 0x010500

/**
 * Max rate of control packets from the peer. At 1 Gbit/s a libsrt receiver sends 1500 light ACKs, 100 full ACKs and 50
 * NAKs per second, and a libsrt sender 100 ACKACKs.
 */
const MAX_CONTROL_PACKETS_PER_SEC = 2000

interface ConnectionOptions {
  readonly peerSocketId: number
  readonly remoteAddress: string
  readonly remotePort: number
  /** `major << 16 | minor << 8 | patch` */
  readonly peerSrtVersion: number
  /** Initial sequence number of both directions: a listener repeats the caller's number in its response. */
  readonly initialSequenceNumber: number
  /** Receive latency. */
  readonly latencyUs: number
  /** Receive window: number of sequence numbers accepted, from the first missing packet on. */
  readonly windowPackets: number
  /** Whether the peer sets the R flag of packets that it retransmits (flag REXMITFLG of HSREQ or HSRSP). */
  readonly marksRetransmissions: boolean
  readonly progress: ReadProgress
  /** Silence of the peer after which the connection ends with `timeout`. */
  readonly idleTimeoutUs: number
  /** Local time at which sent packets have the timestamp `startTimestampUs`. */
  readonly startUs: number
  readonly startTimestampUs: number
  readonly nowUs: number
  /** Present if the peer is bonded: reads its lines. */
  readonly lines?: () => readonly LineStats[]
  /** Present if the peer encrypts its payloads. */
  readonly decryption?: Decryption
  /** Whether data packets of the peer are taken; otherwise they are discarded as they arrive. */
  readonly receives: boolean
  /** Present if this side sends payloads. */
  readonly sending?: Omit<SenderOptions, 'initialSequenceNumber' | 'rtt' | 'transmitter' | 'nowUs'>
  /** Queue of the payloads that arrive: its own, or that of its socket group. */
  readonly queue: ReceiveQueue
  readonly sink: Pick<PayloadSink, 'open' | 'end'>
  /** See `AcknowledgerOptions`. */
  readonly acksPromptly?: boolean
  /** Transmits a datagram to the peer. */
  readonly send: (datagram: Datagram) => void
  /** Counts a control packet that cannot be parsed, or a KMREQ that gets no response. */
  readonly onMalformed: () => void
  /** Counts a control packet dropped over the rate limit. */
  readonly onExcess: () => void
  /** Reports an exception thrown by the sink or by this code; the connection then ends. */
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
  /** Time of the latest input, for the packets that `close` sends. */
  #nowUs: number
  #lastReceivedUs: number
  #lastDataUs: number
  /** Time at which the connection is closed at the latest; undefined before `finish`. */
  #finishesUs: number | undefined
  #closed = false

  constructor(options: ConnectionOptions) {
    const { nowUs, initialSequenceNumber, latencyUs, queue } = options
    this.#options = options
    this.remoteAddress = options.remoteAddress
    this.remotePort = options.remotePort
    this.peerVersion = formatSrtVersion(options.peerSrtVersion)
    this.latencyMs = latencyUs / 1000
    this.#nowUs = nowUs
    this.#lastReceivedUs = nowUs
    this.#lastDataUs = nowUs
    this.#controlBudget = new TokenBucket(MAX_CONTROL_PACKETS_PER_SEC, nowUs)
    this.#transmitter = new Transmitter(options)
    const shared = { initialSequenceNumber, rtt: this.#rtt, transmitter: this.#transmitter, nowUs }
    this.#receiver = new Receiver({
      ...shared,
      latencyUs,
      windowPackets: options.windowPackets,
      progress: options.progress,
      eagerNak: options.peerSrtVersion >= RETRANSMITS_ONCE_PER_RTT,
      marksRetransmissions: options.marksRetransmissions,
      isBonded: options.lines !== undefined,
      ...(options.decryption && { decryption: options.decryption }),
      acksPromptly: options.acksPromptly ?? false,
      queue,
    })
    if (options.sending) this.#sender = new Sender({ ...shared, ...options.sending })
  }

  get lastReceivedUs(): number {
    return this.#lastReceivedUs
  }

  get lastDataUs(): number {
    return this.#lastDataUs
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether a tick is due every 10 ms: a packet is missing, an ACK unconfirmed, or this side sends payloads. */
  get busy(): boolean {
    return !this.#closed && (this.#receiver.busy || this.#sender !== undefined)
  }

  open(): void {
    try {
      this.#options.sink.open(this)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** @param datagram  from this peer, with a complete header; payloads pushed to the sink are views into it */
  handleDatagram(datagram: Buffer, nowUs: number): void {
    if (this.#closed) return
    this.#nowUs = nowUs
    this.#lastReceivedUs = nowUs
    try {
      if (!isControl(datagram)) {
        this.#lastDataUs = nowUs
        if (this.#options.receives) this.#receiver.handleData(datagram, nowUs)
      } else if (this.#controlBudget.take(nowUs)) this.#handleControl(datagram, nowUs)
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
      case ControlType.KEEPALIVE:
        this.#receiver.handleKeepalive()
        break
      default:
      // The other types have no effect in live mode.
    }
  }

  #handleExtension(datagram: Buffer, nowUs: number): void {
    const contents = datagram.subarray(HEADER_BYTES)
    const { decryption, sending } = this.#options
    switch (controlSubtype(datagram)) {
      case ExtensionType.KMREQ:
        // No response on failure: libsrt repeats an unanswered KMREQ, but takes a refusal for the end of encryption.
        if (decryption?.refresh(contents, this.#receiver.end, nowUs) === true) {
          this.#transmitter.sendExtension(ExtensionType.KMRSP, contents, nowUs)
        } else this.#options.onMalformed()
        break
      case ExtensionType.KMRSP:
        sending?.encryption?.handleResponse(contents)
        break
      default:
      // Ignored: handshake extensions of version 4 (libsrt before 1.3).
    }
  }

  /** See `SrtConnection.send`. */
  send(payload: Buffer, nowUs: number): boolean {
    if (this.#closed || this.#finishesUs !== undefined || this.#sender === undefined) return false
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
    if (nowUs - this.#lastReceivedUs >= this.#options.idleTimeoutUs) {
      this.#end('timeout')
      return
    }
    this.#receiver.tick(nowUs)
    if (this.#closed) return
    this.#sender?.tick(nowUs)
    if (this.#finishesUs !== undefined) {
      const isDone = nowUs >= this.#finishesUs || this.#sender?.isDone(nowUs) !== false
      if (isDone) return this.close()
    }
    if (nowUs - this.#transmitter.lastSentUs >= KEEPALIVE_US) {
      this.#transmitter.sendControl(ControlType.KEEPALIVE, 0, undefined, nowUs)
    }
  }

  /** See `SrtConnection.finish`. */
  finish(limitUs: number): void {
    if (this.#sender === undefined || limitUs === 0) this.close()
    else this.#finishesUs = Math.min(this.#finishesUs ?? Infinity, this.#nowUs + limitUs)
  }

  close(): void {
    this.#end('closed')
  }

  /** Ends the connection; later calls have no effect. Unless this side closes, held packets are delivered first. */
  #end(reason: CloseReason): void {
    if (reason !== 'closed') this.#receiver.flush()
    // The connection may have ended before, or the sink may have closed it during `flush`.
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
    const { lines } = this.#options
    return {
      ...this.#receiver.stats(),
      msRtt: this.#rtt.rttUs / 1000,
      msRcvTsbPdDelay: this.latencyMs,
      ...(lines && { lines: lines() }),
    }
  }

  /** The connection as a line of a socket group. */
  lineStats(): Omit<LineStats, 'line'> {
    return {
      remoteAddress: this.remoteAddress,
      remotePort: this.remotePort,
      ...this.#receiver.lineStats(),
      msRtt: this.#rtt.rttUs / 1000,
    }
  }

  /** @returns undefined on a side that only receives */
  senderStats(): SenderStats | undefined {
    return this.#sender?.stats()
  }
}
