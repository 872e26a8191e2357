/**
 * The sending half of a connection: payloads become data packets, paced and within the peer's window; what the peer
 * misses is sent again (draft-sharabayko-srt 4.8.2), unless it would come too late (4.6): then the peer is told.
 *
 * Inputs: `push`, `handleAck`, `handleNak`, and `tick` every 10 ms while `busy`.
 *
 * @module
 */
import { nextMessageNumber } from '../../binary/message-number.ts'
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'
import { DropReporter } from './drop-reporter.ts'
import type { Encryption } from '../crypto/encryption.ts'
import { Pacer } from './pacer.ts'
import { RateMeter } from '../rate-meter.ts'
import { ResendBudget } from './resend-budget.ts'
import type { RttEstimator } from '../rtt.ts'
import { SendBuffer } from './send-buffer.ts'
import { TICK_MS } from '../timers.ts'
import type { Transmitter } from '../transmitter.ts'
import type { SenderStats } from '../types.ts'
import type { Ack } from '../wire/ack.ts'
import { ExtensionType } from '../wire/extension.ts'
import type { LossRange } from '../wire/loss-list.ts'
import { ControlType, HEADER_BYTES, markRetransmitted, writeDataHeader } from '../wire/packet.ts'

/** A packet is kept for the peer's latency, but for this long at least, and a little more (libsrt, srtcore/core.cpp). */
const MIN_KEEP_US = 1_000_000
const MARGIN_US = 20_000

/** On top of an answer's time: the receiver's acknowledgement may wait, and both sides' ticks are coarse. */
const TAIL_MARGIN_US = 60_000

/** On top of an answer's time, before all is sent again to a receiver that may have asked in vain (libsrt's FASTREXMIT). */
const TIMEOUT_MARGIN_US = 30_000

/** The round trip is what the peer says it is; no receiver asks for a packet more often, and none waits for longer. */
const MIN_RESEND_INTERVAL_US = TICK_MS * 1000
const MAX_RTT_US = 10_000_000

export interface SenderOptions {
  readonly initialSequenceNumber: number
  /** Packets kept until acknowledged. */
  readonly bufferPackets: number
  /** The peer's flow window, as its handshake tells. */
  readonly peerWindowPackets: number
  readonly peerLatencyUs: number
  /** The peer asks again for what it still misses (HSRSP flag PERIODICNAK). */
  readonly peerRepeatsNaks: boolean
  readonly maxBandwidthBps: number
  /** Where the connection is encrypted. */
  readonly encryption?: Encryption
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
  readonly nowUs: number
}

export class Sender {
  readonly #counters = {
    packets: 0,
    bytes: 0,
    retransmittedPackets: 0,
    retransmittedBytes: 0,
    lost: 0,
    dropped: 0,
    refused: 0,
    acks: 0,
    invalidAcks: 0,
    naks: 0,
  }
  readonly #buffer: SendBuffer
  readonly #dropReporter: DropReporter
  readonly #pacer: Pacer
  readonly #rate: RateMeter
  readonly #resendBudget: ResendBudget
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #peerLatencyUs: number
  readonly #peerRepeatsNaks: boolean
  readonly #encryption: Encryption | undefined
  #peerWindowPackets: number
  #messageNumber = 1
  #pushedUs = -Infinity
  /** When the latest data packet left. */
  #sentUs = 0
  /** When the flight began, an ACK released some of it, or all of it was sent again. */
  #progressUs = 0

  constructor(options: SenderOptions) {
    this.#buffer = new SendBuffer(options.initialSequenceNumber, options.bufferPackets)
    this.#dropReporter = new DropReporter(options.rtt, options.transmitter)
    this.#pacer = new Pacer(options.maxBandwidthBps)
    this.#rate = new RateMeter(options.nowUs)
    this.#resendBudget = new ResendBudget(options.bufferPackets)
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#peerLatencyUs = options.peerLatencyUs
    this.#peerRepeatsNaks = options.peerRepeatsNaks
    this.#encryption = options.encryption
    this.#peerWindowPackets = options.peerWindowPackets
  }

  /** Something is kept: not sent, or not acknowledged. */
  get busy(): boolean {
    return !this.#buffer.isEmpty
  }

  /**
   * Nothing is left to do, and the peer has had the time to play what it has: libsrt discards on SHUTDOWN what it still
   * holds back for its latency.
   */
  isDone(nowUs: number): boolean {
    const playedUs = this.#pushedUs + this.#rtt.rttUs + this.#peerLatencyUs + MARGIN_US
    return !this.busy && nowUs >= playedUs
  }

  /**
   * Takes a payload of at most `MAX_PAYLOAD_BYTES`; it is copied.
   *
   * @returns false where the buffer is full: the payload was not taken
   */
  push(payload: Buffer, nowUs: number): boolean {
    if (this.#buffer.isFull) {
      this.#counters.refused++
      return false
    }
    const datagram = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
    writeDataHeader(datagram, {
      sequence: this.#buffer.end,
      message: this.#messageNumber,
      timestampUs: this.#transmitter.timestampUs(nowUs),
      socketId: this.#transmitter.peerSocketId,
    })
    datagram.set(payload, HEADER_BYTES)
    // Sealed once: what is sent again keeps its key, whichever is in use by then.
    this.#encryption?.seal(datagram)
    this.#messageNumber = nextMessageNumber(this.#messageNumber)
    this.#buffer.push(datagram, nowUs)
    this.#pushedUs = nowUs
    this.#transmit(nowUs)
    return true
  }

  /** @param number  of a full ACK; 0 on a light one */
  handleAck({ nextExpected, report }: Ack, number: number, nowUs: number): void {
    this.#counters.acks++
    // Beyond what was sent: made up. libsrt breaks the connection here; an outsider should not be able to.
    if (sequenceDistance(this.#buffer.unsent, nextExpected) > 0) {
      this.#counters.invalidAcks++
      return
    }
    const isOvertaken = sequenceDistance(this.#buffer.acknowledged, nextExpected) < 0
    const released = this.#buffer.acknowledge(nextExpected)
    if (released > 0) this.#progressUs = nowUs
    if (report === undefined) {
      this.#peerWindowPackets = Math.max(0, this.#peerWindowPackets - released)
    } else {
      // The window begins at the position that the same ACK tells.
      if (!isOvertaken) this.#peerWindowPackets = report.freePackets
      this.#rtt.adopt(
        Math.min(report.rttUs, MAX_RTT_US),
        Math.min(report.rttVarianceUs, MAX_RTT_US),
      )
    }
    if (number !== 0) this.#transmitter.sendControl(ControlType.ACKACK, number, undefined, nowUs)
    this.#transmit(nowUs)
  }

  /** Sends again what is in flight and was not sent again within the last round trip; tells what was given up. */
  handleNak(ranges: readonly LossRange[], nowUs: number): void {
    this.#counters.naks++
    // One report may list a packet only once; overlapping ranges buy no more than one pass over the flight.
    let visits = this.#buffer.flightPackets
    for (const range of ranges) {
      const givenUp = this.#buffer.findGivenUp(range)
      if (givenUp !== undefined) this.#dropReporter.report(givenUp, nowUs)
      const inFlight = this.#buffer.findInFlight(range)
      if (inFlight === undefined || visits === 0) continue
      const packets = Math.min(visits, sequenceDistance(inFlight.first, inFlight.last) + 1)
      this.#counters.lost += this.#request(inFlight.first, packets, nowUs)
      visits -= packets
    }
    this.#transmit(nowUs)
  }

  /** @returns how many of so many packets in flight are to be sent again, and were not already */
  #request(first: number, packets: number, nowUs: number): number {
    const sinceUs = nowUs - Math.max(this.#rtt.rttUs, MIN_RESEND_INTERVAL_US)
    let requested = 0
    for (let i = 0; i < packets; i++) {
      const sequence = addToSequence(first, i)
      if (this.#buffer.resentUs(sequence) <= sinceUs && this.#buffer.request(sequence)) requested++
    }
    return requested
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.#counters, nowUs)
    this.#dropTooLate(nowUs)
    this.#requestUnreported(nowUs)
    this.#transmit(nowUs)
    this.#tellKeys(nowUs)
  }

  #tellKeys(nowUs: number): void {
    const message = this.#encryption?.request(nowUs, this.#rtt.rttUs)
    if (message !== undefined) this.#transmitter.sendExtension(ExtensionType.KMREQ, message, nowUs)
  }

  /**
   * Requests what no NAK will ask for: the last packet, as its loss shows only by what follows; or all that is in flight,
   * where the peer asks only once and may have asked in vain.
   */
  #requestUnreported(nowUs: number): void {
    const { first, unsent, flightPackets } = this.#buffer
    if (flightPackets === 0) return
    if (this.#peerRepeatsNaks) {
      const isDue = nowUs - this.#sentUs >= this.#rtt.answerUs + TAIL_MARGIN_US
      if (isDue) this.#request(addToSequence(unsent, -1), 1, nowUs)
    } else if (nowUs - this.#progressUs >= this.#rtt.answerUs + TIMEOUT_MARGIN_US) {
      this.#progressUs = nowUs
      this.#request(first, flightPackets, nowUs)
    }
  }

  /** 4.6: what the peer would drop on arrival is not worth sending. */
  #dropTooLate(nowUs: number): void {
    const keepUs = Math.max(this.#peerLatencyUs, MIN_KEEP_US) + MARGIN_US
    this.#counters.dropped += this.#buffer.giveUp(nowUs - keepUs)
  }

  /** Losses first, as far as the budget goes: they are the next to be late. */
  #transmit(nowUs: number): void {
    while (this.#pacer.maySend(nowUs)) {
      // One may always be under way, or a lost word of new room would be waited for on both sides.
      const windowPackets = Math.max(this.#peerWindowPackets, 1)
      const newWaits = this.#buffer.waitingPackets > 0 && this.#buffer.flightPackets < windowPackets
      if (this.#buffer.requestedPackets > 0 && this.#resendBudget.allows(newWaits)) {
        this.#resend(nowUs)
      } else if (newWaits) this.#sendNew(nowUs)
      else return
    }
  }

  #resend(nowUs: number): void {
    const datagram = this.#buffer.takeRequested(nowUs)
    markRetransmitted(datagram)
    this.#resendBudget.countResent()
    this.#counters.retransmittedPackets++
    this.#counters.retransmittedBytes += datagram.length - HEADER_BYTES
    this.#send(datagram, nowUs)
  }

  #sendNew(nowUs: number): void {
    if (this.#buffer.flightPackets === 0) this.#progressUs = nowUs
    this.#resendBudget.countNew()
    this.#send(this.#buffer.takeUnsent(), nowUs)
  }

  #send(datagram: Buffer, nowUs: number): void {
    this.#counters.packets++
    this.#counters.bytes += datagram.length - HEADER_BYTES
    this.#sentUs = nowUs
    this.#pacer.sent(datagram.length, nowUs)
    this.#transmitter.send(datagram, nowUs)
  }

  stats(): SenderStats {
    const counters = this.#counters
    return {
      msRtt: this.#rtt.rttUs / 1000,
      pktSentTotal: counters.packets,
      byteSentTotal: counters.bytes,
      mbpsSendRate: (this.#rate.bytesPerSec * 8) / 1e6,
      pktRetransTotal: counters.retransmittedPackets,
      byteRetransTotal: counters.retransmittedBytes,
      pktSndLossTotal: counters.lost,
      pktSndDropTotal: counters.dropped,
      pktSndRefusedTotal: counters.refused,
      pktRecvACKTotal: counters.acks,
      pktRecvACKInvalidTotal: counters.invalidAcks,
      pktRecvNAKTotal: counters.naks,
      pktFlightSize: this.#buffer.flightPackets,
      pktFlowWindow: this.#peerWindowPackets,
      pktSndBuf: this.#buffer.flightPackets + this.#buffer.waitingPackets,
      msSndBuf: this.#buffer.spanUs / 1000,
    }
  }
}
