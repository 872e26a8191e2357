/**
 * Receiving half of a connection: turns data packets in any order into payloads in sequence. Reports missing packets
 * (draft-sharabayko-srt 4.8), and drops a missing packet when a later packet is due for delivery (4.6).
 *
 * Payloads in order are delivered at once: the first missing packet, `next` of the buffer, is the position in ACKs.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import type { Decryption } from '../crypto/decryption.ts'
import { RateMeter } from '../rate-meter.ts'
import type { ReadProgress } from '../read-progress.ts'
import type { SrtStats } from '../stats.ts'
import type { PayloadSink } from '../types.ts'
import type { LossRange } from '../wire/loss-list.ts'
import {
  encryptionKeyFlag,
  HEADER_BYTES,
  isRetransmitted,
  messageNumber,
  sequenceNumber,
  timestampUs,
} from '../wire/packet.ts'
import { Acknowledger, type AcknowledgerOptions } from './acknowledger.ts'
import { DeliveryClock, type DeliveryClockOptions } from './delivery-clock.ts'
import { LossReporter, type LossReporterOptions } from './loss-reporter.ts'
import { ReceiveBuffer } from './receive-buffer.ts'

/** Number of latest dropped ranges that are stored to distinguish belated packets from duplicates. */
const MAX_DROPPED_RANGES = 16

interface ReceiverOptions
  extends AcknowledgerOptions, Omit<LossReporterOptions, 'buffer' | 'latencyUs' | 'progress'> {
  readonly progress: Pick<ReadProgress, 'behind' | 'mayHaveWaited'>
  readonly delivery: DeliveryClockOptions
  /** Whether the sender sets the R flag of retransmissions, so that a late packet without the flag was reordered. */
  readonly marksRetransmissions: boolean
  readonly decryption?: Decryption
  readonly sink: Pick<PayloadSink, 'push' | 'gap'>
}

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

/** Inputs: `handle…`, `tick` every 10 ms while `busy`, `flush` to deliver held packets at the end, `stop`. */
export class Receiver {
  readonly #counters = new ReceiverCounters()
  readonly #windowPackets: number
  readonly #marksRetransmissions: boolean
  readonly #isBonded: boolean
  readonly #buffer: ReceiveBuffer
  readonly #acknowledger: Acknowledger
  readonly #lossReporter: LossReporter
  readonly #deliveryClock: DeliveryClock
  readonly #decryption: Decryption | undefined
  readonly #sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly #rate: RateMeter
  readonly #droppedRanges: LossRange[] = []
  /** Sequence number of the latest packet beyond the window; undefined once a packet in order has arrived. */
  #beyondWindow: number | undefined
  #stopped = false

  constructor(options: ReceiverOptions) {
    this.#windowPackets = options.windowPackets
    this.#marksRetransmissions = options.marksRetransmissions
    this.#isBonded = options.isBonded
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

  /** Highest sequence number that arrived, plus one. */
  get end(): number {
    return this.#buffer.end
  }

  /** Whether a tick is due every 10 ms: a packet is missing, or the peer has not confirmed the latest position. */
  get busy(): boolean {
    return this.#buffer.hasGap || !this.#acknowledger.isConfirmed(this.#buffer.next)
  }

  handleData(datagram: Buffer, nowUs: number): void {
    const counters = this.#counters
    // A packet of a packet filter (FEC) repeats the sequence number of a data packet and must not take its place.
    if (messageNumber(datagram) === 0) {
      counters.filter++
      return
    }
    // An unreadable packet may be forged: its sequence number must not move the window.
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
      this.#beyondWindow = undefined
      buffer.advance()
      if (isRetransmitted(datagram)) counters.retransmitted++
      this.#sink.push(datagram.subarray(HEADER_BYTES))
    } else {
      this.#handleUnordered(datagram, sequence, deliveryUs, nowUs)
      this.#lossReporter.reportFresh(nowUs)
    }
    this.#acknowledger.countPacket(buffer.next, nowUs)
  }

  /**
   * Decrypts the payload in place if the connection is encrypted.
   *
   * @returns false for an encrypted packet whose key is unknown, or a packet in clear on an encrypted connection
   */
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
      // The sink may have closed the connection while held packets were delivered.
      if (this.#stopped || !this.#followJump(sequence)) return
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
      if (!retransmitted && this.#marksRetransmissions) this.#lossReporter.handleReordered(sequence)
    } else if (ahead > 0) {
      this.#counters.lost += ahead
      this.#lossReporter.handleGap(nowUs)
    }
    const payload = datagram.subarray(HEADER_BYTES)
    if (sequence !== buffer.next) {
      buffer.hold(sequence, payload, deliveryUs)
      return
    }
    buffer.advance()
    if (!this.#stopped) this.#sink.push(payload)
    this.#deliverHeld()
  }

  /**
   * Moves the window if the sender's sequence numbers have jumped.
   *
   * @returns whether the packet is within the window now, and the receiver not stopped
   */
  #followJump(sequence: number): boolean {
    const { next, hasGap } = this.#buffer
    if (sequenceDistance(next, sequence) < this.#windowPackets) return true
    const before = this.#beyondWindow
    this.#beyondWindow = sequence
    // A single packet may be forged or corrupt; following it would make every genuine packet stale.
    if (hasGap || before === undefined || !this.#isSoonAfter(before, sequence)) {
      this.#counters.overflow++
      return false
    }
    // The sender continued after an outage. libsrt closes the connection here (srt#2093).
    this.#counters.resync++
    this.#counters.lost += sequenceDistance(next, before)
    this.#dropTo(before)
    return !this.#stopped
  }

  #isSoonAfter(before: number, sequence: number): boolean {
    const distance = sequenceDistance(before, sequence)
    return distance > 0 && distance < this.#windowPackets
  }

  #countStale(sequence: number): void {
    const dropped = this.#droppedRanges.some(
      ({ first, last }) =>
        sequenceDistance(first, sequence) >= 0 && sequenceDistance(sequence, last) >= 0,
    )
    if (dropped) this.#counters.belated++
    else this.#counters.duplicate++
  }

  /** Delivers held packets up to the next gap. */
  #deliverHeld(): void {
    for (;;) {
      const payload = this.#buffer.takeNext()
      if (payload === undefined) return
      this.#sink.push(payload)
    }
  }

  /** Too-late packet drop (4.6): drops a gap when the first packet after it is due. */
  #dropTooLate(nowUs: number): void {
    while (this.#buffer.hasGap && this.#buffer.firstHeldDueUs <= nowUs) {
      this.#dropTo(this.#buffer.firstHeld)
    }
  }

  /** Drops the missing packets before `sequence`, and delivers the packets held from there to the next gap. */
  #dropTo(sequence: number): void {
    const { next } = this.#buffer
    const lostPackets = sequenceDistance(next, sequence)
    this.#counters.dropped += lostPackets
    this.#droppedRanges.push({ first: next, last: addToSequence(sequence, -1) })
    if (this.#droppedRanges.length > MAX_DROPPED_RANGES) this.#droppedRanges.shift()
    this.#buffer.skipTo(sequence)
    this.#sink.gap(lostPackets)
    this.#deliverHeld()
  }

  /** Drops the packets missing at `next` that the sender has dropped. */
  handleDropRequest({ first, last }: LossRange): void {
    const { next, firstHeld, hasGap } = this.#buffer
    const coversNext = sequenceDistance(first, next) >= 0 && sequenceDistance(next, last) >= 0
    // Requests for later gaps are ignored: the next NAK reports such a gap again, and the sender repeats its request.
    if (!hasGap || !coversNext) return
    const beyond = addToSequence(last, 1)
    this.#dropTo(sequenceDistance(beyond, firstHeld) > 0 ? beyond : firstHeld)
  }

  handleAckAck(ackNumber: number, nowUs: number): void {
    this.#acknowledger.handleAckAck(ackNumber, nowUs)
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.#counters, nowUs)
    this.#dropTooLate(nowUs)
    if (this.#stopped) return
    this.#acknowledger.tick(this.#buffer.next, this.#buffer.hasGap, this.#rate, nowUs)
    this.#lossReporter.tick(this.#rate.bytesPerSec, nowUs)
  }

  /** Delivers all held packets and drops the gaps between them. */
  flush(): void {
    while (this.#buffer.hasGap) this.#dropTo(this.#buffer.firstHeld)
  }

  /** Discards the held packets and stops calling the sink. May be called from within the sink. */
  stop(): void {
    this.#stopped = true
    this.#buffer.clear()
  }

  stats(): Omit<SrtStats, 'msRtt' | 'msRcvTsbPdDelay'> {
    const counters = this.#counters
    return {
      pktRecvTotal: counters.packets,
      byteRecvTotal: counters.bytes,
      // Over several lines, most packets that are missing when a later one arrives are on their way.
      pktRcvLossTotal: this.#isBonded ? this.#lossReporter.reportedPackets : counters.lost,
      pktRcvRetransTotal: counters.retransmitted,
      pktRcvDropTotal: counters.dropped,
      pktRcvBelatedTotal: counters.belated,
      pktRcvDuplicateTotal: counters.duplicate,
      pktRcvUndecryptTotal: counters.undecryptable,
      pktRcvFilterExtraTotal: counters.filter,
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
