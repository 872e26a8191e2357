/**
 * Packets on their way from the lines of a peer to the sink, in sequence and each once. A connection has one line; the
 * members of a socket group are lines of one peer, share its sequence numbers, and any of them may bring a packet that is
 * missing on another.
 *
 * Payloads in order are delivered at once. A missing packet is dropped when a later packet is due for delivery
 * (draft-sharabayko-srt 4.6).
 *
 * @module
 */
import { RateMeter } from '../rate-meter.ts'
import type { SrtStats } from '../stats.ts'
import type { PayloadSink } from '../types.ts'
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import type { LossRange } from '../wire/loss-list.ts'
import { DeliveryClock, type DeliveryClockOptions } from './delivery-clock.ts'
import { ReceiveBuffer } from './receive-buffer.ts'

/** Number of latest dropped ranges that are stored to distinguish belated packets from duplicates. */
const MAX_DROPPED_RANGES = 16

export interface ReceiveQueueOptions {
  readonly initialSequenceNumber: number
  readonly delivery: DeliveryClockOptions
  /** Receive window: number of sequence numbers accepted, from the first missing packet on. */
  readonly windowPackets: number
  readonly sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly nowUs: number
}

/** Calling order: `join` for each line; `admits`, then `push`, for a packet; `leave` for each line: the last one stops it. */
export class ReceiveQueue {
  readonly buffer: ReceiveBuffer
  readonly clock: DeliveryClock
  readonly #windowPackets: number
  readonly #sink: Pick<PayloadSink, 'push' | 'gap'>
  readonly #rate: RateMeter
  /** Packets received, each once. */
  readonly #received = { packets: 0, bytes: 0 }
  readonly #counters = { lost: 0, dropped: 0, belated: 0, duplicate: 0, overflow: 0, resync: 0 }
  readonly #droppedRanges: LossRange[] = []
  /** Sequence number of the latest packet beyond the window; undefined once a packet in order has arrived. */
  #beyondWindow: number | undefined
  #lines = 0
  #stopped = false

  constructor(options: ReceiveQueueOptions) {
    this.buffer = new ReceiveBuffer(options.initialSequenceNumber)
    this.clock = new DeliveryClock(options.delivery)
    this.#windowPackets = options.windowPackets
    this.#sink = options.sink
    this.#rate = new RateMeter(options.nowUs)
  }

  /** Number of lines that may bring packets. */
  get lines(): number {
    return this.#lines
  }

  join(): void {
    this.#lines++
  }

  /** Stops calling the sink and discards the held packets when the last line leaves. May be called from within the sink. */
  leave(): void {
    if (--this.#lines > 0) return
    this.#stopped = true
    this.buffer.clear()
  }

  /** Delivers the packet `next`, while no packet is missing. */
  pushNext(payload: Buffer): void {
    this.#beyondWindow = undefined
    this.#count(payload)
    this.buffer.advance()
    this.#sink.push(payload)
  }

  /**
   * Makes room for a packet beyond the window: drops what is too late, or follows a jump of the sender's sequence numbers.
   *
   * @returns false for a packet that is to be discarded
   */
  admits(sequence: number, nowUs: number): boolean {
    if (sequenceDistance(this.buffer.next, sequence) < this.#windowPackets) return true
    this.#dropTooLate(nowUs)
    // The sink may have closed the connection while held packets were delivered.
    return !this.#stopped && this.#followJump(sequence)
  }

  /** Whether the packet has arrived, or was dropped. */
  has(sequence: number): boolean {
    const { next, end } = this.buffer
    if (sequenceDistance(next, sequence) < 0) return true
    return sequenceDistance(sequence, end) > 0 && this.buffer.has(sequence)
  }

  /**
   * Counts a packet that the queue has.
   *
   * @param isRepeated  whether its line has brought it, or a later one, before
   */
  countRepeated(sequence: number, isRepeated: boolean): void {
    const dropped = this.#droppedRanges.some(
      ({ first, last }) =>
        sequenceDistance(first, sequence) >= 0 && sequenceDistance(sequence, last) >= 0,
    )
    if (dropped) this.#counters.belated++
    else if (isRepeated) this.#counters.duplicate++
  }

  /** Takes a packet that it has not, and delivers what is in order. */
  push(sequence: number, payload: Buffer, deliveryUs: number): void {
    const { buffer } = this
    this.#count(payload)
    const ahead = sequenceDistance(buffer.end, sequence)
    if (ahead > 0) this.#counters.lost += ahead
    if (sequence !== buffer.next) {
      buffer.hold(sequence, payload, deliveryUs)
      return
    }
    buffer.advance()
    if (!this.#stopped) this.#sink.push(payload)
    this.#deliverHeld()
  }

  #count(payload: Buffer): void {
    this.#received.packets++
    this.#received.bytes += payload.length
  }

  /**
   * Moves the window if the sender's sequence numbers have jumped.
   *
   * @returns whether the packet is within the window now, and the queue not stopped
   */
  #followJump(sequence: number): boolean {
    const { next, hasGap } = this.buffer
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

  /** Delivers held packets up to the next gap. */
  #deliverHeld(): void {
    for (;;) {
      const payload = this.buffer.takeNext()
      if (payload === undefined) return
      this.#sink.push(payload)
    }
  }

  tick(nowUs: number): void {
    this.#rate.tick(this.#received, nowUs)
    this.#dropTooLate(nowUs)
  }

  /** Too-late packet drop (4.6): drops a gap when the first packet after it is due. */
  #dropTooLate(nowUs: number): void {
    while (this.buffer.hasGap && this.buffer.firstHeldDueUs <= nowUs) {
      this.#dropTo(this.buffer.firstHeld)
    }
  }

  /** Drops the packets missing before `beyond`. */
  dropMissing(beyond: number): void {
    const { firstHeld } = this.buffer
    this.#dropTo(sequenceDistance(beyond, firstHeld) > 0 ? beyond : firstHeld)
  }

  /** Drops the missing packets before `sequence`, and delivers the packets held from there to the next gap. */
  #dropTo(sequence: number): void {
    const { next } = this.buffer
    const lostPackets = sequenceDistance(next, sequence)
    this.#counters.dropped += lostPackets
    this.#droppedRanges.push({ first: next, last: addToSequence(sequence, -1) })
    if (this.#droppedRanges.length > MAX_DROPPED_RANGES) this.#droppedRanges.shift()
    this.buffer.skipTo(sequence)
    this.#sink.gap(lostPackets)
    this.#deliverHeld()
  }

  /** Delivers all held packets and drops the gaps between them. */
  flush(): void {
    while (this.buffer.hasGap) this.#dropTo(this.buffer.firstHeld)
  }

  /** Statistics of all lines together: a packet that several lines bring counts once. */
  stats() {
    const { packets, bytes } = this.#received
    const counters = this.#counters
    return {
      pktRecvTotal: packets,
      byteRecvTotal: bytes,
      mbpsRecvRate: (this.#rate.bytesPerSec * 8) / 1e6,
      pktRcvLossTotal: counters.lost,
      pktRcvDropTotal: counters.dropped,
      pktRcvBelatedTotal: counters.belated,
      pktRcvDuplicateTotal: counters.duplicate,
      pktRcvOverflowTotal: counters.overflow,
      pktRcvResyncTotal: counters.resync,
      pktRcvBuf: this.buffer.heldPackets,
      msDrift: this.clock.driftUs / 1000,
    } satisfies Partial<SrtStats>
  }
}
