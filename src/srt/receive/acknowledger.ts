/**
 * Acknowledgments (ACK, draft-sharabayko-srt 4.8.1), and the round-trip time from each full ACK to its ACKACK (4.10).
 * The position in an ACK is the first sequence number not delivered.
 *
 * @module
 */
import { sequenceDistance } from '../wire/counters.ts'
import type { RateMeter } from '../rate-meter.ts'
import type { ReadProgress } from '../read-progress.ts'
import type { RttEstimator } from '../rtt-estimator.ts'
import type { Transmitter } from '../transmitter.ts'
import { FULL_ACK_BYTES, LIGHT_ACK_BYTES, writeFullAck, writeLightAck } from '../wire/ack.ts'
import { ControlType } from '../wire/packet.ts'
import { AckHistory } from './ack-history.ts'

/** Number of data packets since the latest full ACK after which a light ACK is sent (3.2.4). */
const LIGHT_ACK_PACKETS = 64

/** Number of data packets, or time, from one full ACK to the next, whichever comes first. */
interface AckPacing {
  readonly packets: number
  readonly delayUs: number
}

/**
 * Pacing while no packet is missing. A full ACK every 10 ms, as in the draft (4.8.1), would cost an ACK and an ACKACK
 * for each packet of a 0.5 Mbit/s stream, whose packets arrive 21 ms apart.
 */
const RELAXED: AckPacing = { packets: 48, delayUs: 100_000 }
/**
 * Pacing while packets are missing: both peers time retransmissions by the RTT that ACKs measure. And in a backup group:
 * libsrt takes a line for unstable, and another into use, that has not responded for 60 ms (srtcore/group.cpp).
 */
const PROMPT: AckPacing = { packets: 16, delayUs: 25_000 }

export interface AcknowledgerOptions {
  readonly initialSequenceNumber: number
  /** Receive window: number of sequence numbers accepted, from the first missing packet on; announced in full ACKs. */
  readonly windowPackets: number
  /** Read progress of the process: an ACKACK that may have lain unread measures no round trip. */
  readonly progress: Pick<ReadProgress, 'mayHaveWaited'>
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
  /** Whether ACKs are as frequent as while packets are missing; default false. */
  readonly acksPromptly?: boolean
}

export class Acknowledger {
  readonly #windowPackets: number
  readonly #progress: Pick<ReadProgress, 'mayHaveWaited'>
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #acksPromptly: boolean
  readonly #history = new AckHistory()
  #sentAcks = 0
  /** Position of the last ACK, light or full. */
  #acked: number
  /** Position of the last full ACK. */
  #fullyAcked: number
  /** Position of the last full ACK that the peer confirmed. */
  #confirmed: number
  #fullyAckedUs = -Infinity
  #packetsSinceFullAck = 0

  constructor(options: AcknowledgerOptions) {
    this.#windowPackets = options.windowPackets
    this.#progress = options.progress
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#acksPromptly = options.acksPromptly ?? false
    this.#acked = this.#fullyAcked = this.#confirmed = options.initialSequenceNumber
  }

  /** ACKs sent, light and full. */
  get sentAcks(): number {
    return this.#sentAcks
  }

  /** Whether this is the latest position that the peer has confirmed. */
  isConfirmed(position: number): boolean {
    return position === this.#confirmed
  }

  /** Counts a data packet, and sends a light ACK if one is due. */
  countPacket(position: number, nowUs: number): void {
    if (++this.#packetsSinceFullAck % LIGHT_ACK_PACKETS === 0) this.#sendLight(position, nowUs)
  }

  handleAckAck(ackNumber: number, nowUs: number): void {
    const ack = this.#history.take(ackNumber)
    if (ack === undefined) return
    // libsrt takes the RTT of the ACKs, and its peer for dead only after 17 x (RTT + 4 x variance): checkExpTimer in
    // srtcore/core.cpp. With the delays of a late event loop, encoders took minutes to leave a node that had died.
    if (!this.#progress.mayHaveWaited(nowUs)) this.#rtt.push(nowUs - ack.sentUs)
    if (sequenceDistance(this.#confirmed, ack.position) > 0) this.#confirmed = ack.position
  }

  /** Sends a full ACK if the position has moved and the pacing allows it; repeats the ACK if its ACKACK is overdue. */
  tick(position: number, hasGap: boolean, rate: RateMeter, nowUs: number): void {
    if (position === this.#confirmed) return
    const elapsedUs = nowUs - this.#fullyAckedUs
    if (position === this.#fullyAcked) {
      if (elapsedUs < this.#rtt.responseTimeoutUs) return
    } else {
      const { packets, delayUs } = hasGap || this.#acksPromptly ? PROMPT : RELAXED
      if (this.#packetsSinceFullAck < packets && elapsedUs < delayUs) return
    }
    this.#acked = this.#fullyAcked = position
    this.#fullyAckedUs = nowUs
    this.#packetsSinceFullAck = 0
    const number = this.#history.push(position, nowUs)
    const datagram = this.#transmitter.createControl(ControlType.ACK, number, FULL_ACK_BYTES, nowUs)
    // Packets before the position are delivered, so the whole window is free.
    const freePackets = this.#windowPackets
    const { rttUs, varianceUs: rttVarianceUs } = this.#rtt
    writeFullAck(datagram, position, { rttUs, rttVarianceUs, freePackets }, rate)
    this.#send(datagram, nowUs)
  }

  #sendLight(position: number, nowUs: number): void {
    if (position === this.#acked) return
    this.#acked = position
    const datagram = this.#transmitter.createControl(ControlType.ACK, 0, LIGHT_ACK_BYTES, nowUs)
    writeLightAck(datagram, position)
    this.#send(datagram, nowUs)
  }

  #send(datagram: Buffer, nowUs: number): void {
    this.#sentAcks++
    this.#transmitter.send(datagram, nowUs)
  }
}
