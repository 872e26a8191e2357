/**
 * The receiving half of a connection: datagrams in any order become payloads in sequence; what is missing is asked for
 * (draft-sharabayko-srt 4.8), and given up once it would come too late (4.6).
 *
 * Payloads in order are handed on at once, so the position up to which everything is handed on, the position that ACKs
 * tell, and the first missing packet are one and the same: `next` of the buffer.
 *
 * Inputs: `handleData`, `handleAckAck`, `handleDropRequest`, and `tick` every 10 ms while `busy`. Then `flush` or `stop`.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'
import { Acknowledger } from './acknowledger.ts'
import type { Decryption } from '../crypto/decryption.ts'
import { LossReporter } from './loss-reporter.ts'
import { RateMeter } from '../rate-meter.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import type { RttEstimator } from '../rtt.ts'
import type { Transmitter } from '../transmitter.ts'
import { DeliveryClock, type TsbpdOptions } from './tsbpd.ts'
import type { PayloadSink, SrtStats } from '../types.ts'
import type { LossRange } from '../wire/loss-list.ts'
import {
  encryptionKeyFlag,
  HEADER_BYTES,
  isRetransmitted,
  messageNumber,
  sequenceNumber,
  timestampUs,
} from '../wire/packet.ts'

/** Ranges given up lately, remembered to tell a belated packet from a duplicate. */
const MAX_GIVEN_UP_RANGES = 16

export interface ReceiverOptions {
  readonly initialSequenceNumber: number
  readonly delivery: TsbpdOptions
  /** How far a packet may be ahead of a missing one; announced to the sender as its window. */
  readonly windowPackets: number
  /** The sender does not send a packet twice because it was asked for twice: asking often makes up for lost NAKs. */
  readonly eagerNak: boolean
  /** The sender marks what it sends again, so that a packet without the mark can be known to be merely late. */
  readonly marksRetransmissions: boolean
  /** Where the connection is encrypted. */
  readonly decryption?: Decryption
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
  readonly sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly nowUs: number
}

/** Counters since the beginning; see `SrtStats` for their meaning. */
class ReceiverCounters {
  packets = 0
  bytes = 0
  lost = 0
  retransmitted = 0
  dropped = 0
  belated = 0
  duplicate = 0
  undecryptable = 0
  filter = 0
  overflow = 0
  resync = 0
}

export class Receiver {
  readonly #counters = new ReceiverCounters()
  readonly #windowPackets: number
  readonly #marksRetransmissions: boolean
  readonly #buffer: ReceiveBuffer
  readonly #acknowledger: Acknowledger
  readonly #lossReporter: LossReporter
  readonly #deliveryClock: DeliveryClock
  readonly #decryption: Decryption | undefined
  readonly #sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly #rate: RateMeter
  readonly #givenUp: LossRange[] = []
  /** A packet that was too far ahead to be kept, unless the one that was due has come since. */
  #outOfReach: number | undefined
  #stopped = false

  constructor(options: ReceiverOptions) {
    this.#windowPackets = options.windowPackets
    this.#marksRetransmissions = options.marksRetransmissions
    this.#buffer = new ReceiveBuffer(options.initialSequenceNumber)
    this.#acknowledger = new Acknowledger(options)
    this.#lossReporter = new LossReporter({
      ...options,
      buffer: this.#buffer,
      latencyUs: options.delivery.latencyUs,
    })
    this.#deliveryClock = new DeliveryClock(options.delivery)
    this.#decryption = options.decryption
    this.#sink = options.sink
    this.#rate = new RateMeter(options.nowUs)
  }

  /** One beyond the highest sequence number that arrived. */
  get end(): number {
    return this.#buffer.end
  }

  /** Something is missing, or an ACK is not confirmed: the next tick may have work. */
  get busy(): boolean {
    return this.#buffer.hasGap || !this.#acknowledger.isConfirmed(this.#buffer.next)
  }

  /** Takes a data packet. */
  handleData(datagram: Buffer, nowUs: number): void {
    const counters = this.#counters
    // A filter packet bears the sequence number of the data packet before it and must not take its place.
    if (messageNumber(datagram) === 0) {
      counters.filter++
      return
    }
    // Nothing is known of it but a number that anybody could have written; if it was sent, it is missed and asked for.
    if (!this.#isReadable(datagram)) {
      counters.undecryptable++
      return
    }
    counters.packets++
    counters.bytes += datagram.length - HEADER_BYTES

    const buffer = this.#buffer
    const sequence = sequenceNumber(datagram)
    const deliveryUs = this.#deliveryClock.deliveryUs(timestampUs(datagram), nowUs)
    if (sequence === buffer.next && !buffer.hasGap) {
      this.#outOfReach = undefined
      buffer.pass()
      if (isRetransmitted(datagram)) counters.retransmitted++
      this.#sink.push(datagram.subarray(HEADER_BYTES))
    } else {
      this.#handleUnordered(datagram, sequence, deliveryUs, nowUs)
      this.#lossReporter.reportFresh(nowUs)
    }
    this.#acknowledger.countPacket(buffer.next, nowUs)
  }

  /** Decrypts what is encrypted. A clear packet in an encrypted connection is somebody else's. */
  #isReadable(datagram: Buffer): boolean {
    if (this.#decryption === undefined) return encryptionKeyFlag(datagram) === 0
    return this.#decryption.open(datagram)
  }

  #handleUnordered(datagram: Buffer, sequence: number, deliveryUs: number, nowUs: number): void {
    const buffer = this.#buffer
    const retransmitted = isRetransmitted(datagram)
    if (retransmitted) this.#counters.retransmitted++
    if (sequenceDistance(buffer.next, sequence) >= this.#windowPackets) {
      this.#dropTooLate(nowUs)
      // A sink that hears what was held may end it all.
      if (this.#stopped || !this.#isWithinReach(sequence)) return
    }
    if (sequenceDistance(buffer.next, sequence) < 0) {
      this.#countStale(sequence)
      return
    }
    const ahead = sequenceDistance(buffer.end, sequence)
    if (ahead < 0) {
      if (buffer.has(sequence)) {
        this.#counters.duplicate++
        return
      }
      if (!retransmitted && this.#marksRetransmissions) this.#lossReporter.noticeLate(sequence)
    } else if (ahead > 0) {
      this.#counters.lost += ahead
      this.#lossReporter.noticeGap(nowUs)
    }
    const payload = datagram.subarray(HEADER_BYTES)
    if (sequence !== buffer.next) {
      buffer.hold(sequence, payload, deliveryUs)
      return
    }
    buffer.pass()
    if (!this.#stopped) this.#sink.push(payload)
    this.#deliverHeld()
  }

  /** Whether the buffer can take the packet, once what blocks it is late. With nothing to wait for, it follows a jump. */
  #isWithinReach(sequence: number): boolean {
    const { next, hasGap } = this.#buffer
    if (sequenceDistance(next, sequence) < this.#windowPackets) return true
    const before = this.#outOfReach
    this.#outOfReach = sequence
    // One alone may bear a number that was altered or made up. Followed, it would make stale all that is really sent.
    if (hasGap || before === undefined || !this.#isSoonAfter(before, sequence)) {
      this.#counters.overflow++
      return false
    }
    // The sender went on after an outage. libsrt ends the connection here (srt#2093).
    this.#counters.resync++
    this.#counters.lost += sequenceDistance(next, before)
    this.#giveUpTo(before)
    return !this.#stopped
  }

  #isSoonAfter(before: number, sequence: number): boolean {
    const distance = sequenceDistance(before, sequence)
    return distance > 0 && distance < this.#windowPackets
  }

  #countStale(sequence: number): void {
    const givenUp = this.#givenUp.some(
      ({ first, last }) =>
        sequenceDistance(first, sequence) >= 0 && sequenceDistance(sequence, last) >= 0,
    )
    if (givenUp) this.#counters.belated++
    else this.#counters.duplicate++
  }

  /** Hands on what follows without a gap. */
  #deliverHeld(): void {
    for (;;) {
      const payload = this.#buffer.takeNext()
      if (payload === undefined) return
      this.#sink.push(payload)
    }
  }

  /** Too-late packet drop (4.6): a gap is given up when the packet behind it is due. */
  #dropTooLate(nowUs: number): void {
    while (this.#buffer.hasGap && this.#buffer.firstHeldDueUs <= nowUs) {
      this.#giveUpTo(this.#buffer.firstHeld)
    }
  }

  #giveUpTo(sequence: number): void {
    const { next } = this.#buffer
    const lostPackets = sequenceDistance(next, sequence)
    this.#counters.dropped += lostPackets
    this.#givenUp.push({ first: next, last: addToSequence(sequence, -1) })
    if (this.#givenUp.length > MAX_GIVEN_UP_RANGES) this.#givenUp.shift()
    this.#buffer.skipTo(sequence)
    this.#sink.gap(lostPackets)
    this.#deliverHeld()
  }

  /** The sender will not send these again: if they are what we wait for, we need not wait. */
  handleDropRequest({ first, last }: LossRange): void {
    const { next, firstHeld, hasGap } = this.#buffer
    const coversNext = sequenceDistance(first, next) >= 0 && sequenceDistance(next, last) >= 0
    // A range that begins further on is asked for again by the next NAK, and answered again, when its turn has come.
    if (!hasGap || !coversNext) return
    const beyond = addToSequence(last, 1)
    this.#giveUpTo(sequenceDistance(beyond, firstHeld) > 0 ? beyond : firstHeld)
  }

  handleAckAck(ackNumber: number, nowUs: number): void {
    this.#acknowledger.handleAckAck(ackNumber, nowUs)
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.#counters, nowUs)
    this.#dropTooLate(nowUs)
    if (this.#stopped) return
    this.#acknowledger.tick(this.#buffer.next, this.#rate, nowUs)
    this.#lossReporter.tick(this.#rate.bytesPerSec, nowUs)
  }

  /** Hands on all that is held, over every gap: nothing more will come. */
  flush(): void {
    while (this.#buffer.hasGap) this.#giveUpTo(this.#buffer.firstHeld)
  }

  /** Lets go of everything; the sink hears nothing more. May be called from within the sink. */
  stop(): void {
    this.#stopped = true
    this.#buffer.clear()
  }

  stats(): Omit<SrtStats, 'msRtt' | 'msRcvTsbPdDelay'> {
    const counters = this.#counters
    return {
      pktRecvTotal: counters.packets,
      byteRecvTotal: counters.bytes,
      pktRcvLossTotal: counters.lost,
      pktRcvRetransTotal: counters.retransmitted,
      pktRcvDropTotal: counters.dropped,
      pktRcvBelatedTotal: counters.belated,
      pktRcvDuplicateTotal: counters.duplicate,
      pktRcvUndecryptTotal: counters.undecryptable,
      pktRcvFilterTotal: counters.filter,
      pktRcvOverflowTotal: counters.overflow,
      pktRcvResyncTotal: counters.resync,
      pktRcvBuf: this.#buffer.heldPackets,
      pktReorderTolerance: this.#lossReporter.tolerancePackets,
      pktSentACKTotal: this.#acknowledger.sentAcks,
      pktSentNAKTotal: this.#lossReporter.sentReports,
      pktNAKWithheldTotal: this.#lossReporter.withheldReports,
      mbpsRecvRate: (this.#rate.bytesPerSec * 8) / 1e6,
      msDrift: this.#deliveryClock.driftUs / 1000,
    }
  }
}
