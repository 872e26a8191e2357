/**
 * The sending half of a connection: payloads become data packets, paced and within the peer's window. Lost packets are
 * retransmitted (draft-sharabayko-srt 4.8.2), or dropped when they are too late to be played (4.6).
 *
 * Inputs: `push`, `handleAck`, `handleNak`, and `tick` every 10 ms while `busy`.
 *
 * @module
 */
import { addToSequence, nextMessageNumber, sequenceDistance } from '../wire/counters.ts'
import type { Encryption } from '../crypto/encryption.ts'
import { RateMeter } from '../rate-meter.ts'
import type { RttEstimator } from '../rtt-estimator.ts'
import type { SenderStats } from '../stats.ts'
import { TICK_MS } from '../timers.ts'
import type { DataPacket, Transmitter } from '../transmitter.ts'
import type { Ack } from '../wire/ack.ts'
import { ExtensionType } from '../wire/extension.ts'
import type { LossRange } from '../wire/loss-list.ts'
import { ControlType, HEADER_BYTES, markRetransmitted, writeDataHeader } from '../wire/packet.ts'
import { DropReporter } from './drop-reporter.ts'
import { Pacer } from './pacer.ts'
import { RetransmissionBudget } from './retransmission-budget.ts'
import { RetransmissionTimer } from './retransmission-timer.ts'
import { SendBuffer } from './send-buffer.ts'

/**
 * Age at which an unacknowledged packet is dropped: the peer's latency, but at least this minimum, plus the margin
 * (libsrt, srtcore/core.cpp).
 */
const MIN_DROP_AGE_US = 1_000_000
const MARGIN_US = 20_000

/** Minimum interval between two retransmissions of a packet. */
const MIN_RETRANSMISSION_INTERVAL_US = TICK_MS * 1000

/**
 * Packets and ranges that are looked at for reports of losses, for each new packet: a lost packet is reported until it is
 * repaired, several times a round trip. Otherwise 2000 NAKs a second that name the whole send buffer take a core. Unused looks
 * accumulate, up to one for each packet of the buffer.
 */
const LOOKS_PER_NEW = 16

/** Upper limit on the round-trip time and on the variance adopted from an ACK. */
const MAX_RTT_US = 10_000_000

export interface SenderOptions {
  readonly initialSequenceNumber: number
  /** Capacity of the send buffer. */
  readonly bufferPackets: number
  /** Flow window in the peer's handshake. */
  readonly peerWindowPackets: number
  readonly peerLatencyUs: number
  /** Whether the peer sends periodic NAKs (HSRSP flag PERIODICNAK). */
  readonly peerRepeatsNaks: boolean
  readonly maxBandwidthBps: number
  /** Present if the connection is encrypted. */
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
  readonly #buffer: SendBuffer<DataPacket>
  readonly #dropReporter: DropReporter
  readonly #pacer: Pacer
  readonly #rate: RateMeter
  readonly #retransmissionBudget: RetransmissionBudget
  readonly #retransmissionTimer: RetransmissionTimer
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #peerLatencyUs: number
  readonly #encryption: Encryption | undefined
  readonly #maxLooks: number
  #looks: number
  #peerWindowPackets: number
  #messageNumber = 1
  #pushedUs = -Infinity

  constructor(options: SenderOptions) {
    this.#buffer = new SendBuffer(options.initialSequenceNumber, options.bufferPackets)
    this.#dropReporter = new DropReporter(options.rtt, options.transmitter)
    this.#pacer = new Pacer(options.maxBandwidthBps)
    this.#rate = new RateMeter(options.nowUs)
    this.#retransmissionBudget = new RetransmissionBudget(options.bufferPackets)
    this.#retransmissionTimer = new RetransmissionTimer(options.rtt, options.peerRepeatsNaks)
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#peerLatencyUs = options.peerLatencyUs
    this.#encryption = options.encryption
    this.#maxLooks = this.#looks = options.bufferPackets
    this.#peerWindowPackets = options.peerWindowPackets
  }

  /** Whether the send buffer holds packets, so that a tick is due every 10 ms. */
  get busy(): boolean {
    return !this.#buffer.isEmpty
  }

  /**
   * Whether the send buffer is empty and the peer has delivered every packet. libsrt discards packets that still wait
   * for their delivery time when SHUTDOWN arrives.
   */
  isDone(nowUs: number): boolean {
    const playedUs = this.#pushedUs + this.#rtt.rttUs + this.#peerLatencyUs + MARGIN_US
    return !this.busy && nowUs >= playedUs
  }

  /**
   * @param payload  at most `MAX_PAYLOAD_BYTES`; must not be changed afterwards, since it is not copied unless it is encrypted
   * @returns false if the send buffer is full and the payload was not accepted
   */
  push(payload: Buffer, nowUs: number): boolean {
    if (this.#buffer.isFull) {
      this.#counters.refused++
      return false
    }
    const header = Buffer.allocUnsafe(HEADER_BYTES)
    writeDataHeader(header, {
      sequence: this.#buffer.end,
      message: this.#messageNumber,
      timestampUs: this.#transmitter.timestampUs(nowUs),
      socketId: this.#transmitter.peerSocketId,
    })
    // Encrypted once, here: a retransmission has the same key even after a key change.
    const content = this.#encryption?.seal(header, payload) ?? payload
    this.#messageNumber = nextMessageNumber(this.#messageNumber)
    this.#buffer.push([header, content], nowUs)
    this.#pushedUs = nowUs
    this.#transmit(nowUs)
    return true
  }

  /** @param number  ACK number of a full ACK; 0 for a light or small ACK */
  handleAck({ nextExpected, report }: Ack, number: number, nowUs: number): void {
    this.#counters.acks++
    // An ACK beyond the packets sent is forged. libsrt closes the connection, which lets an attacker end it.
    if (sequenceDistance(this.#buffer.unsent, nextExpected) > 0) {
      this.#counters.invalidAcks++
      return
    }
    const isOvertaken = sequenceDistance(this.#buffer.acknowledged, nextExpected) < 0
    const released = this.#buffer.acknowledge(nextExpected)
    if (released > 0) this.#retransmissionTimer.handleProgress(nowUs)
    if (report === undefined) {
      this.#peerWindowPackets = Math.max(0, this.#peerWindowPackets - released)
    } else {
      // A window begins at the sequence number in its ACK: the window in an overtaken ACK is obsolete.
      if (!isOvertaken) this.#peerWindowPackets = report.freePackets
      this.#rtt.adopt(
        Math.min(report.rttUs, MAX_RTT_US),
        Math.min(report.rttVarianceUs, MAX_RTT_US),
      )
    }
    if (number !== 0) this.#transmitter.sendControl(ControlType.ACKACK, number, undefined, nowUs)
    this.#transmit(nowUs)
  }

  /** Retransmits packets in flight, each at most once per round trip, and sends drop requests for dropped packets. */
  handleNak(ranges: readonly LossRange[], nowUs: number): void {
    this.#counters.naks++
    // Ranges may overlap: one NAK visits at most as many packets as are in flight.
    let visits = this.#buffer.flightPackets
    for (const range of ranges) {
      if (this.#looks === 0) break
      this.#looks--
      const dropped = this.#buffer.findDropped(range)
      if (dropped !== undefined) this.#dropReporter.report(dropped, nowUs)
      const inFlight = this.#buffer.findInFlight(range)
      if (inFlight === undefined || visits === 0) continue
      const packets = Math.min(visits, sequenceDistance(inFlight.first, inFlight.last) + 1)
      this.#counters.lost += this.#request(inFlight.first, packets, nowUs)
      visits -= packets
    }
    this.#transmit(nowUs)
  }

  /**
   * Requests the retransmission of `packets` packets from `first` on, except those already requested and those
   * retransmitted within the last round trip. Those beyond `#looks` are left to the next report.
   *
   * @returns number of new requests
   */
  #request(first: number, packets: number, nowUs: number): number {
    const sinceUs = nowUs - Math.max(this.#rtt.rttUs, MIN_RETRANSMISSION_INTERVAL_US)
    const looks = Math.min(packets, this.#looks)
    this.#looks -= looks
    let requested = 0
    for (let i = 0; i < looks; i++) {
      const sequence = addToSequence(first, i)
      const isDue = this.#buffer.retransmittedUs(sequence) <= sinceUs
      if (isDue && this.#buffer.request(sequence)) requested++
    }
    return requested
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.#counters, nowUs)
    this.#dropTooLate(nowUs)
    this.#requestUnreported(nowUs)
    this.#transmit(nowUs)
    this.#announceKey(nowUs)
  }

  #announceKey(nowUs: number): void {
    const message = this.#encryption?.takeRequest(nowUs, this.#rtt.rttUs)
    if (message !== undefined) this.#transmitter.sendExtension(ExtensionType.KMREQ, message, nowUs)
  }

  #requestUnreported(nowUs: number): void {
    const { unsent, flightPackets } = this.#buffer
    const packets = this.#retransmissionTimer.takeDue(flightPackets, nowUs)
    this.#request(addToSequence(unsent, -packets), packets, nowUs)
  }

  /** Too-late packet drop (4.6): the peer would drop these packets on arrival. */
  #dropTooLate(nowUs: number): void {
    const dropAgeUs = Math.max(this.#peerLatencyUs, MIN_DROP_AGE_US) + MARGIN_US
    this.#counters.dropped += this.#buffer.drop(nowUs - dropAgeUs)
  }

  /** Sends packets while pacer and window allow. Retransmissions within their budget go first: they are due earlier. */
  #transmit(nowUs: number): void {
    while (this.#pacer.maySend(nowUs)) {
      // One packet may be sent into a closed window, to elicit another ACK if the one that opens it was lost.
      const windowPackets = Math.max(this.#peerWindowPackets, 1)
      const newWaits = this.#buffer.waitingPackets > 0 && this.#buffer.flightPackets < windowPackets
      if (this.#buffer.requestedPackets > 0 && this.#retransmissionBudget.allows(newWaits)) {
        this.#retransmit(nowUs)
      } else if (newWaits) this.#sendNew(nowUs)
      else return
    }
  }

  #retransmit(nowUs: number): void {
    const packet = this.#buffer.takeRequested(nowUs)
    const [header, payload] = packet
    markRetransmitted(header)
    this.#retransmissionBudget.countRetransmission()
    this.#counters.retransmittedPackets++
    this.#counters.retransmittedBytes += payload.length
    this.#send(packet, nowUs)
  }

  #sendNew(nowUs: number): void {
    if (this.#buffer.flightPackets === 0) this.#retransmissionTimer.handleProgress(nowUs)
    this.#retransmissionBudget.countNew()
    this.#looks = Math.min(this.#maxLooks, this.#looks + LOOKS_PER_NEW)
    this.#send(this.#buffer.takeUnsent(), nowUs)
  }

  #send(packet: DataPacket, nowUs: number): void {
    const { length } = packet[1]
    this.#counters.packets++
    this.#counters.bytes += length
    this.#retransmissionTimer.handleSent(nowUs)
    this.#pacer.countSent(HEADER_BYTES + length, nowUs)
    this.#transmitter.send(packet, nowUs)
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
      msPeerTsbPdDelay: this.#peerLatencyUs / 1000,
    }
  }
}
