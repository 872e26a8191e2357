/**
 * The receiving half of a connection: datagrams in any order become payloads in sequence; what is missing is asked for
 * (draft-sharabayko-srt 4.8), and given up once it would come too late (4.6).
 *
 *          delivered         missing      held    missing    held
 *   ───────────────────────┬───────────┬────────┬─────────┬────────┬─────►  sequence numbers
 *                        #next      #heldFrom                    #end
 *
 * Payloads in order are handed on at once, so the position up to which everything is delivered, the position that ACKs
 * tell, and the first missing packet are one and the same: `#next`. Where nothing is missing, `#next === #end`.
 *
 * Inputs: `handleData`, `handleAckAck`, `handleDropRequest`, and `tick` every 10 ms while `busy`. Then `flush` or `stop`.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../binary/sequence-number.ts'
import { AckHistory } from './ack-history.ts'
import type { Decryption } from './decryption.ts'
import { RateMeter } from './rate-meter.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import type { RttEstimator } from './rtt.ts'
import { MIN_NAK_INTERVAL_US } from './timers.ts'
import { TokenBucket } from './token-bucket.ts'
import type { Transmitter } from './transmitter.ts'
import { DeliveryClock, type TsbpdOptions } from './tsbpd.ts'
import type { PayloadSink } from './types.ts'
import { FULL_ACK_BYTES, LIGHT_ACK_BYTES, writeFullAck, writeLightAck } from './wire/ack.ts'
import { encodeLossList, MAX_LOSS_RANGES, type LossRange } from './wire/loss-list.ts'
import {
  ControlType,
  encryptionKeyFlag,
  HEADER_BYTES,
  isRetransmitted,
  messageNumber,
  sequenceNumber,
  timestampUs,
} from './wire/packet.ts'

/** A light ACK after so many packets without a full one (draft 3.2.4). */
const LIGHT_ACK_PACKETS = 64

/**
 * A full ACK is due in 10 ms (draft 4.8.1), but a few packets are not worth one: it waits for so many, or for the third
 * tick. 100 streams of 5 Mbit/s cost 5.8 instead of 6.8 us of CPU a packet, all in.
 */
const ACK_PACKETS = 16
const ACK_DELAY_US = 25_000

/**
 * What NAKs may take of the way back: a tenth of what arrives, or this much (bytes a second). The worst that 10 % loss asks
 * for stays below; a sender that leaves out every other number of tiny packets would get more back than it sends.
 */
const NAK_SHARE = 0.1
const MIN_NAK_BYTES_PER_SEC = 64_000

/** Ranges given up lately, remembered to tell a belated packet from a duplicate. */
const MAX_GIVEN_UP_RANGES = 16

export interface ReceiverOptions {
  readonly initialSequenceNumber: number
  readonly delivery: TsbpdOptions
  /** How far a packet may be ahead of a missing one; announced to the sender as its window. */
  readonly bufferPackets: number
  /** The sender does not send a packet twice because it was asked for twice: asking often makes up for lost NAKs. */
  readonly eagerNak: boolean
  /** Where the connection is encrypted. */
  readonly decryption?: Decryption
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
  readonly sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly nowUs: number
}

/** Counters since the beginning; see `SrtStats` for their meaning. */
export class ReceiverCounters {
  packets = 0
  bytes = 0
  lost = 0
  retransmitted = 0
  dropped = 0
  belated = 0
  duplicate = 0
  undecryptable = 0
  /** Packets of a packet filter, set aside. */
  filter = 0
  /** Too far ahead of a missing packet to be kept. */
  overflow = 0
  /** Loss reports not sent, because they would take too much of the way back. */
  withheldReports = 0
}

export class Receiver {
  readonly counters = new ReceiverCounters()
  readonly #windowPackets: number
  readonly #buffer: ReceiveBuffer
  readonly #deliveryClock: DeliveryClock
  readonly #eagerNak: boolean
  readonly #decryption: Decryption | undefined
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly #rate: RateMeter
  readonly #acks = new AckHistory()
  readonly #nakBudget: TokenBucket
  readonly #givenUp: LossRange[] = []

  /** First sequence number that is not delivered. */
  #next: number
  /** One beyond the highest that arrived. */
  #end: number
  /** First that waits in the buffer; has a meaning where `#next !== #end`. */
  #heldFrom: number

  /** Position of the last ACK of either kind, of the last full one, and of the last that the peer confirmed. */
  #lightAcked: number
  #acked: number
  #confirmed: number
  #ackedUs = -Infinity
  #packetsSinceAck = 0
  #nakDueUs = 0
  #stopped = false

  constructor(options: ReceiverOptions) {
    this.#windowPackets = options.bufferPackets
    this.#buffer = new ReceiveBuffer()
    this.#deliveryClock = new DeliveryClock(options.delivery)
    this.#eagerNak = options.eagerNak
    this.#decryption = options.decryption
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#sink = options.sink
    this.#rate = new RateMeter(options.nowUs)
    this.#nakBudget = new TokenBucket(MIN_NAK_BYTES_PER_SEC, options.nowUs)
    const first = options.initialSequenceNumber
    this.#next = this.#end = this.#heldFrom = first
    this.#lightAcked = this.#acked = this.#confirmed = first
  }

  get bytesPerSec(): number {
    return this.#rate.bytesPerSec
  }

  /** One beyond the highest sequence number that arrived. */
  get end(): number {
    return this.#end
  }

  /** Something is missing, or an ACK is not confirmed: the next tick may have work. */
  get busy(): boolean {
    return this.#next !== this.#end || this.#next !== this.#confirmed
  }

  /** Takes a data packet. */
  handleData(datagram: Buffer, nowUs: number): void {
    // A filter packet bears the sequence number of the data packet before it and must not take its place.
    if (messageNumber(datagram) === 0) {
      this.counters.filter++
      return
    }
    // Nothing is known of it but a number that anybody could have written; if it was sent, it is missed and asked for.
    if (!this.#isReadable(datagram)) {
      this.counters.undecryptable++
      return
    }
    this.counters.packets++
    this.counters.bytes += datagram.length - HEADER_BYTES
    if (isRetransmitted(datagram)) this.counters.retransmitted++

    const sequence = sequenceNumber(datagram)
    const deliveryUs = this.#deliveryClock.deliveryUs(timestampUs(datagram), nowUs)
    const payload = datagram.subarray(HEADER_BYTES)
    if (sequence === this.#next && this.#next === this.#end) {
      this.#next = this.#end = addToSequence(sequence, 1)
      this.#sink.push(payload)
    } else {
      this.#handleUnordered(sequence, payload, deliveryUs, nowUs)
    }
    if (++this.#packetsSinceAck % LIGHT_ACK_PACKETS === 0) this.#sendLightAck(nowUs)
  }

  /** Decrypts what is encrypted. A clear packet in an encrypted connection is somebody else's. */
  #isReadable(datagram: Buffer): boolean {
    if (this.#decryption === undefined) return encryptionKeyFlag(datagram) === 0
    return this.#decryption.open(datagram)
  }

  #handleUnordered(sequence: number, payload: Buffer, deliveryUs: number, nowUs: number): void {
    if (sequenceDistance(this.#next, sequence) >= this.#windowPackets) {
      this.#dropTooLate(nowUs)
      // A sink that hears what was held may end it all.
      if (this.#stopped || !this.#isWithinReach(sequence)) return
    }
    const offset = sequenceDistance(this.#next, sequence)
    if (offset < 0) {
      this.#countStale(sequence)
      return
    }
    const ahead = sequenceDistance(this.#end, sequence)
    if (ahead < 0 && this.#buffer.has(sequence)) {
      this.counters.duplicate++
      return
    }
    const missing = this.#next !== this.#end
    if (ahead >= 0) {
      if (ahead > 0) this.#reportLoss(this.#end, addToSequence(sequence, -1), nowUs)
      this.#end = addToSequence(sequence, 1)
    }
    if (offset === 0) {
      this.#next = addToSequence(sequence, 1)
      if (!this.#stopped) this.#sink.push(payload)
      this.#deliverHeld()
      return
    }
    this.#buffer.reserve(this.#next, sequenceDistance(this.#next, this.#end))
    this.#buffer.put(sequence, payload, deliveryUs)
    if (!missing || sequenceDistance(sequence, this.#heldFrom) > 0) this.#heldFrom = sequence
  }

  /** Whether the buffer can take the packet, once what blocks it is late. With nothing to wait for, anything new can. */
  #isWithinReach(sequence: number): boolean {
    if (sequenceDistance(this.#next, sequence) < this.#windowPackets) return true
    if (this.#next !== this.#end) {
      this.counters.overflow++
      return false
    }
    // The sender went on after an outage. libsrt ends the connection here (srt#2093).
    this.counters.lost += sequenceDistance(this.#next, sequence)
    this.#end = sequence
    this.#giveUpTo(sequence)
    return true
  }

  #countStale(sequence: number): void {
    const givenUp = this.#givenUp.some(
      ({ first, last }) =>
        sequenceDistance(first, sequence) >= 0 && sequenceDistance(sequence, last) >= 0,
    )
    if (givenUp) this.counters.belated++
    else this.counters.duplicate++
  }

  /** Hands on what follows without a gap, and finds what is held after the next one. */
  #deliverHeld(): void {
    while (this.#next !== this.#end) {
      const payload = this.#buffer.take(this.#next)
      if (payload === undefined) break
      this.#next = addToSequence(this.#next, 1)
      this.#sink.push(payload)
    }
    if (this.#next === this.#end || sequenceDistance(this.#next, this.#heldFrom) >= 0) return
    this.#heldFrom = this.#next
    while (!this.#buffer.has(this.#heldFrom)) this.#heldFrom = addToSequence(this.#heldFrom, 1)
  }

  /** Too-late packet drop (4.6): a gap is given up when the packet behind it is due. */
  #dropTooLate(nowUs: number): void {
    while (this.#next !== this.#end && this.#buffer.deliveryUs(this.#heldFrom) <= nowUs) {
      this.#giveUpTo(this.#heldFrom)
    }
  }

  #giveUpTo(sequence: number): void {
    const lostPackets = sequenceDistance(this.#next, sequence)
    this.counters.dropped += lostPackets
    this.#givenUp.push({ first: this.#next, last: addToSequence(sequence, -1) })
    if (this.#givenUp.length > MAX_GIVEN_UP_RANGES) this.#givenUp.shift()
    this.#next = sequence
    this.#sink.gap(lostPackets)
    this.#deliverHeld()
  }

  /** The sender will not send these again: if they are what we wait for, we need not wait. */
  handleDropRequest({ first, last }: LossRange): void {
    const coversNext =
      sequenceDistance(first, this.#next) >= 0 && sequenceDistance(this.#next, last) >= 0
    // A range that begins further on is asked for again by the next NAK, and answered again, when its turn has come.
    if (this.#next === this.#end || !coversNext) return
    const beyond = addToSequence(last, 1)
    this.#giveUpTo(sequenceDistance(beyond, this.#heldFrom) > 0 ? beyond : this.#heldFrom)
  }

  handleAckAck(ackNumber: number, nowUs: number): void {
    const ack = this.#acks.settle(ackNumber)
    if (ack === undefined) return
    this.#rtt.sample(nowUs - ack.sentUs)
    if (sequenceDistance(this.#confirmed, ack.position) > 0) this.#confirmed = ack.position
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.counters, nowUs)
    this.#nakBudget.perSec = Math.max(MIN_NAK_BYTES_PER_SEC, this.bytesPerSec * NAK_SHARE)
    this.#dropTooLate(nowUs)
    if (this.#stopped) return
    this.#acknowledge(nowUs)
    this.#repeatLossReport(nowUs)
  }

  /** A full ACK where the position moved; again, where its ACKACK should have come by now (libsrt; 3.2.4). */
  #acknowledge(nowUs: number): void {
    if (this.#next === this.#confirmed) return
    const sinceUs = nowUs - this.#ackedUs
    if (this.#next === this.#acked) {
      if (sinceUs < this.#rtt.answerUs) return
    } else if (this.#packetsSinceAck < ACK_PACKETS && sinceUs < ACK_DELAY_US) return
    this.#acked = this.#next
    this.#ackedUs = nowUs
    this.#packetsSinceAck = 0
    const number = this.#acks.record(this.#next, nowUs)
    const datagram = this.#transmitter.createControl(ControlType.ACK, number, FULL_ACK_BYTES, nowUs)
    // What is behind the position is handed on: all of the window lies before it.
    const freePackets = this.#windowPackets
    const { rttUs, varianceUs: rttVarianceUs } = this.#rtt
    writeFullAck(datagram, this.#next, { rttUs, rttVarianceUs, freePackets }, this.#rate)
    this.#transmitter.send(datagram, nowUs)
  }

  #sendLightAck(nowUs: number): void {
    if (this.#next === this.#lightAcked) return
    this.#lightAcked = this.#next
    const datagram = this.#transmitter.createControl(ControlType.ACK, 0, LIGHT_ACK_BYTES, nowUs)
    writeLightAck(datagram, this.#next)
    this.#transmitter.send(datagram, nowUs)
  }

  /** The immediate NAK (4.8.2): only the new gap. */
  #reportLoss(first: number, last: number, nowUs: number): void {
    if (this.#next === this.#end) this.#nakDueUs = nowUs + this.#nakIntervalUs
    this.counters.lost += sequenceDistance(first, last) + 1
    this.#sendNak([{ first, last }], nowUs)
  }

  /** The periodic NAK (4.8.2): everything missing, as far as it fits. */
  #repeatLossReport(nowUs: number): void {
    if (this.#next === this.#end || nowUs < this.#nakDueUs) return
    this.#sendNak(this.#missingRanges(), nowUs)
    this.#nakDueUs = nowUs + this.#nakIntervalUs
  }

  /** 4.8.2 has half an answer's time. Asking at the lower bound leaves 1.5e-5 instead of 1.4e-4 (10 % loss, RTT 100 ms, 500 ms). */
  get #nakIntervalUs(): number {
    return this.#eagerNak
      ? MIN_NAK_INTERVAL_US
      : Math.max(this.#rtt.answerUs / 2, MIN_NAK_INTERVAL_US)
  }

  #sendNak(ranges: readonly LossRange[], nowUs: number): void {
    const list = encodeLossList(ranges)
    if (this.#nakBudget.take(nowUs, HEADER_BYTES + list.length)) {
      this.#transmitter.sendControl(ControlType.NAK, 0, list, nowUs)
    } else this.counters.withheldReports++
  }

  #missingRanges(): LossRange[] {
    const ranges: LossRange[] = []
    let first = this.#next
    let sequence = this.#heldFrom
    while (sequence !== this.#end && ranges.length < MAX_LOSS_RANGES) {
      ranges.push({ first, last: addToSequence(sequence, -1) })
      while (sequence !== this.#end && this.#buffer.has(sequence))
        sequence = addToSequence(sequence, 1)
      first = sequence
      while (sequence !== this.#end && !this.#buffer.has(sequence))
        sequence = addToSequence(sequence, 1)
    }
    return ranges
  }

  /** Hands on all that is held, over every gap: nothing more will come. */
  flush(): void {
    while (this.#next !== this.#end) this.#giveUpTo(this.#heldFrom)
  }

  /** Lets go of everything; the sink hears nothing more. May be called from within the sink. */
  stop(): void {
    this.#stopped = true
    this.#next = this.#end
    this.#buffer.clear()
  }
}
