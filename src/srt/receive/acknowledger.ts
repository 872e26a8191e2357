/**
 * Tells the sender how far its packets were received (ACK, draft-sharabayko-srt 4.8.1), and measures the round trip by the
 * ACKACK that comes back (4.10).
 *
 * @module
 */
import { sequenceDistance } from '../../binary/sequence-number.ts'
import { AckHistory } from './ack-history.ts'
import type { RateMeter } from '../rate-meter.ts'
import type { RttEstimator } from '../rtt.ts'
import type { Transmitter } from '../transmitter.ts'
import { FULL_ACK_BYTES, LIGHT_ACK_BYTES, writeFullAck, writeLightAck } from '../wire/ack.ts'
import { ControlType } from '../wire/packet.ts'

/** A light ACK after so many packets without a full one (draft 3.2.4). */
const LIGHT_ACK_PACKETS = 64

/**
 * A full ACK is due in 10 ms (draft 4.8.1), but a few packets are not worth one: it waits for so many, or for the third
 * tick. 100 streams of 5 Mbit/s cost 5.8 instead of 6.8 us of CPU a packet, all in.
 */
const ACK_PACKETS = 16
const ACK_DELAY_US = 25_000

export interface AcknowledgerOptions {
  readonly initialSequenceNumber: number
  readonly windowPackets: number
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
}

export class Acknowledger {
  readonly #windowPackets: number
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #history = new AckHistory()
  #sentAcks = 0
  /** Position of the last ACK of either kind, of the last full one, and of the last that the peer confirmed. */
  #lightAcked: number
  #acked: number
  #confirmed: number
  #ackedUs = -Infinity
  #packetsSinceAck = 0

  constructor(options: AcknowledgerOptions) {
    this.#windowPackets = options.windowPackets
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#lightAcked = this.#acked = this.#confirmed = options.initialSequenceNumber
  }

  /** Of both kinds. */
  get sentAcks(): number {
    return this.#sentAcks
  }

  /** The peer knows that everything before `position` was received. */
  isConfirmed(position: number): boolean {
    return position === this.#confirmed
  }

  /** To be called of every data packet. */
  countPacket(position: number, nowUs: number): void {
    if (++this.#packetsSinceAck % LIGHT_ACK_PACKETS === 0) this.#sendLight(position, nowUs)
  }

  handleAckAck(ackNumber: number, nowUs: number): void {
    const ack = this.#history.settle(ackNumber)
    if (ack === undefined) return
    this.#rtt.sample(nowUs - ack.sentUs)
    if (sequenceDistance(this.#confirmed, ack.position) > 0) this.#confirmed = ack.position
  }

  /** A full ACK where the position moved; again, where its ACKACK should have come by now (libsrt; 3.2.4). */
  tick(position: number, rate: RateMeter, nowUs: number): void {
    if (position === this.#confirmed) return
    const sinceUs = nowUs - this.#ackedUs
    if (position === this.#acked) {
      if (sinceUs < this.#rtt.answerUs) return
    } else if (this.#packetsSinceAck < ACK_PACKETS && sinceUs < ACK_DELAY_US) return
    this.#lightAcked = this.#acked = position
    this.#ackedUs = nowUs
    this.#packetsSinceAck = 0
    const number = this.#history.record(position, nowUs)
    const datagram = this.#transmitter.createControl(ControlType.ACK, number, FULL_ACK_BYTES, nowUs)
    // What is behind the position is handed on: all of the window lies before it.
    const freePackets = this.#windowPackets
    const { rttUs, varianceUs: rttVarianceUs } = this.#rtt
    writeFullAck(datagram, position, { rttUs, rttVarianceUs, freePackets }, rate)
    this.#send(datagram, nowUs)
  }

  #sendLight(position: number, nowUs: number): void {
    if (position === this.#lightAcked) return
    this.#lightAcked = position
    const datagram = this.#transmitter.createControl(ControlType.ACK, 0, LIGHT_ACK_BYTES, nowUs)
    writeLightAck(datagram, position)
    this.#send(datagram, nowUs)
  }

  #send(datagram: Buffer, nowUs: number): void {
    this.#sentAcks++
    this.#transmitter.send(datagram, nowUs)
  }
}
