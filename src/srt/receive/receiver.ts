/**
 * Receiving half of a connection: passes data packets to its queue, acknowledges them, and reports missing ones
 * (draft-sharabayko-srt 4.8).
 *
 * Members of a socket group share the queue. Each acknowledges and reports only up to the highest packet that has arrived
 * on it, `end`: libsrt closes a connection on which an ACK or NAK names what was never sent there. What another member has
 * brought is acknowledged as if it had arrived here.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import type { Decryption } from '../crypto/decryption.ts'
import { RateMeter } from '../rate-meter.ts'
import type { ReadProgress } from '../read-progress.ts'
import type { LineStats, SrtStats } from '../stats.ts'
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
import { LossReporter, type LossReporterOptions } from './loss-reporter.ts'
import type { ReceiveQueue } from './receive-queue.ts'

export interface ReceiverOptions
  extends AcknowledgerOptions, Omit<LossReporterOptions, 'buffer' | 'progress'> {
  readonly progress: Pick<ReadProgress, 'behind' | 'mayHaveWaited'>
  /** Whether the sender sets the R flag of retransmissions, so that a late packet without the flag was reordered. */
  readonly marksRetransmissions: boolean
  readonly decryption?: Decryption
  /** Its own, or that of its socket group. */
  readonly queue: ReceiveQueue
}

class LineCounters {
  packets = 0
  bytes = 0
  lost = 0
  retransmitted = 0
  undecryptable = 0
  filter = 0
}

/** Inputs: `handle…`, `tick` every 10 ms while `busy`, `flush` to deliver held packets at the end, `stop`. */
export class Receiver {
  readonly #counters = new LineCounters()
  readonly #marksRetransmissions: boolean
  readonly #isBonded: boolean
  readonly #queue: ReceiveQueue
  readonly #acknowledger: Acknowledger
  readonly #lossReporter: LossReporter
  readonly #decryption: Decryption | undefined
  readonly #rate: RateMeter
  /** Sequence number before which the sender has none of the missing packets; undefined unless it has said so. */
  #sentFrom: number | undefined
  /** Highest sequence number that arrived, plus one; undefined while the sender uses other lines. */
  #end: number | undefined
  /** Position in ACKs while `#end` is undefined. */
  #idlePosition: number
  #stopped = false

  constructor(options: ReceiverOptions) {
    this.#marksRetransmissions = options.marksRetransmissions
    this.#isBonded = options.isBonded
    this.#queue = options.queue
    this.#idlePosition = options.initialSequenceNumber
    if (this.#queue.lines === 0) this.#end = options.initialSequenceNumber
    this.#queue.join()
    this.#acknowledger = new Acknowledger(options)
    this.#lossReporter = new LossReporter({ ...options, buffer: this })
    this.#decryption = options.decryption
    this.#rate = new RateMeter(options.nowUs)
  }

  /** First sequence number that is missing, and that the sender may still send. */
  get next(): number {
    const { next } = this.#queue.buffer
    if (this.#sentFrom === undefined) return next
    return sequenceDistance(next, this.#sentFrom) > 0 ? this.#sentFrom : next
  }

  /** Highest sequence number that arrived, plus one. */
  get end(): number {
    const { end } = this.#queue.buffer
    // An end beyond that of the queue is from before a jump of the sequence numbers, which another line brought.
    const isOutdated = this.#end === undefined || sequenceDistance(end, this.#end) > 0
    return isOutdated ? this.next : this.#end!
  }

  /** Whether `next` is missing although a later packet has arrived on this line. */
  get hasGap(): boolean {
    return sequenceDistance(this.next, this.end) > 0
  }

  /** @returns missing ranges from `from` to before `to`, in order, at most `maxRanges` */
  missing(from: number, to: number, maxRanges: number): LossRange[] {
    const { next } = this
    return this.#queue.buffer.missing(sequenceDistance(from, next) > 0 ? next : from, to, maxRanges)
  }

  /** Position in ACKs: the first sequence number not delivered, but none that was not sent over this line. */
  get #position(): number {
    if (this.#end === undefined) return this.#idlePosition
    const { next } = this.#queue.buffer
    return sequenceDistance(this.#end, next) > 0 ? this.#end : next
  }

  /** Whether a tick is due every 10 ms: a packet is missing, or the peer has not confirmed the latest position. */
  get busy(): boolean {
    return this.#queue.buffer.hasGap || !this.#acknowledger.isConfirmed(this.#position)
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
    if (isRetransmitted(datagram)) counters.retransmitted++

    const queue = this.#queue
    const { buffer } = queue
    const sequence = sequenceNumber(datagram)
    const deliveryUs = queue.clock.deliveryUs(timestampUs(datagram), nowUs)
    if (sequence === buffer.next && sequence === this.#end && !buffer.hasGap) {
      this.#end = addToSequence(sequence, 1)
      queue.pushNext(datagram.subarray(HEADER_BYTES))
    } else {
      this.#handleUnordered(datagram, sequence, deliveryUs, nowUs)
      this.#lossReporter.reportFresh(nowUs)
    }
    this.#acknowledger.countPacket(this.#position, nowUs)
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
    const queue = this.#queue
    if (!queue.admits(sequence, nowUs)) return
    const isKnown = queue.has(sequence)
    const ahead = this.#distanceFromEnd(sequence)
    if (ahead < 0) {
      const isReordered = !isKnown && !isRetransmitted(datagram) && this.#marksRetransmissions
      if (isReordered) this.#lossReporter.handleReordered(sequence)
    } else {
      this.#counters.lost += ahead
      if (sequenceDistance(this.end, sequence) > 0) this.#lossReporter.handleGap(nowUs)
      this.#end = addToSequence(sequence, 1)
    }
    if (isKnown) queue.countRepeated(sequence, ahead < 0)
    else queue.push(sequence, datagram.subarray(HEADER_BYTES), deliveryUs)
  }

  /** Distance of a packet from the one due on this line. */
  #distanceFromEnd(sequence: number): number {
    if (this.#end === undefined) return 0
    // On the only line, the queue may have followed a jump of the sequence numbers.
    const { next } = this.#queue.buffer
    const hasJumped = this.#queue.lines === 1 && sequenceDistance(this.#end, next) > 0
    return sequenceDistance(hasJumped ? next : this.#end, sequence)
  }

  /** The sender sends nothing over this line for now: the next packet may follow many that were sent over others. */
  handleKeepalive(): void {
    if (this.#queue.lines === 1 || this.hasGap) return
    this.#idlePosition = this.#position
    this.#end = undefined
  }

  /** The sender has not the packets from `first` to `last`: drops those missing at `next` that no other line may bring. */
  handleDropRequest({ first, last }: LossRange): void {
    const { next } = this
    const coversNext = sequenceDistance(first, next) >= 0 && sequenceDistance(next, last) >= 0
    // Requests for later gaps are ignored: the next NAK reports such a gap again, and the sender repeats its request.
    if (!this.hasGap || !coversNext) return
    const beyond = addToSequence(last, 1)
    if (this.#queue.lines === 1) this.#queue.dropMissing(beyond)
    else this.#sentFrom = sequenceDistance(beyond, this.end) > 0 ? beyond : this.end
  }

  handleAckAck(ackNumber: number, nowUs: number): void {
    this.#acknowledger.handleAckAck(ackNumber, nowUs)
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.#counters, nowUs)
    this.#queue.tick(nowUs)
    if (this.#stopped) return
    if (this.next === this.#queue.buffer.next) this.#sentFrom = undefined
    this.#acknowledger.tick(this.#position, this.#queue.buffer.hasGap, this.#rate, nowUs)
    this.#lossReporter.tick(this.#rate.bytesPerSec, nowUs)
  }

  /** Delivers all held packets and drops the gaps between them, unless other lines may bring what is missing. */
  flush(): void {
    if (this.#queue.lines === 1) this.#queue.flush()
  }

  /** Discards the held packets of the only line, and stops calling the sink. May be called from within the sink. */
  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#queue.leave()
  }

  /** Packets of this line; what it shares with others is in the statistics of the queue. */
  stats() {
    const counters = this.#counters
    const shared = this.#queue.stats()
    return {
      ...shared,
      pktRecvTotal: counters.packets,
      byteRecvTotal: counters.bytes,
      // Over several lines, most packets that are missing when a later one arrives are on their way.
      pktRcvLossTotal: this.#isBonded ? this.#lossReporter.reportedPackets : shared.pktRcvLossTotal,
      pktRcvRetransTotal: counters.retransmitted,
      pktRcvUndecryptTotal: counters.undecryptable,
      pktRcvFilterExtraTotal: counters.filter,
      pktReorderTolerance: this.#lossReporter.tolerancePackets,
      pktSentACKTotal: this.#acknowledger.sentAcks,
      pktSentNAKTotal: this.#lossReporter.sentReports,
      pktNAKWithheldTotal: this.#lossReporter.withheldReports,
      mbpsRecvRate: (this.#rate.bytesPerSec * 8) / 1e6,
    } satisfies Partial<SrtStats>
  }

  /** See `LineStats`. */
  lineStats() {
    const { packets, bytes, lost, retransmitted } = this.#counters
    const { bytesPerSec, packetsPerSec } = this.#rate
    return {
      mbpsRecvRate: ((bytesPerSec + packetsPerSec * HEADER_BYTES) * 8) / 1e6,
      byteRecvTotal: bytes + packets * HEADER_BYTES,
      pktRecvTotal: packets,
      pktRcvRetransTotal: retransmitted,
      pktRcvLossTotal: lost,
    } satisfies Partial<LineStats>
  }
}
