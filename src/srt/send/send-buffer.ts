/**
 * Data packets until they are acknowledged or dropped, in a ring indexed by sequence number.
 *
 *    acknowledged     dropped, not acknowledged           in flight             not sent yet
 *   ──────────────┬─────────────────────────────┬─────────────────────────┬────────────────────┬────►  sequence numbers
 *             acknowledged                    first                     unsent                end
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import type { LossRange } from '../wire/loss-list.ts'

export class SendBuffer<Packet> {
  readonly #packets: (Packet | undefined)[]
  /** Time at which each packet was pushed. */
  readonly #queuedUs: Float64Array
  /** Time of each packet's latest retransmission; -Infinity before the first. */
  readonly #retransmittedUs: Float64Array
  /** 1 for packets whose retransmission is requested. */
  readonly #requested: Uint8Array
  readonly #mask: number
  #requestedPackets = 0
  /** Sequence number at or before the oldest requested packet. */
  #requestedFrom: number
  #acknowledged: number
  #first: number
  #unsent: number
  #end: number

  /** @param capacityPackets  rounded up to a power of two */
  constructor(initialSequenceNumber: number, capacityPackets: number) {
    const capacity = 2 ** Math.ceil(Math.log2(capacityPackets))
    this.#packets = Array.from<Packet | undefined>({ length: capacity })
    this.#queuedUs = new Float64Array(capacity)
    this.#retransmittedUs = new Float64Array(capacity)
    this.#requested = new Uint8Array(capacity)
    this.#mask = capacity - 1
    this.#acknowledged = this.#requestedFrom = initialSequenceNumber
    this.#first = this.#unsent = this.#end = initialSequenceNumber
  }

  /** First sequence number that the peer has not acknowledged; less than one ring length before `first`. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  /** Sequence number of the oldest packet in the buffer. */
  get first(): number {
    return this.#first
  }

  /** Sequence number of the first packet not sent yet. */
  get unsent(): number {
    return this.#unsent
  }

  /** Sequence number of the next packet to push. */
  get end(): number {
    return this.#end
  }

  get isFull(): boolean {
    return sequenceDistance(this.#first, this.#end) > this.#mask
  }

  get isEmpty(): boolean {
    return this.#first === this.#end
  }

  /** Number of packets in flight: sent, neither acknowledged nor dropped. */
  get flightPackets(): number {
    return sequenceDistance(this.#first, this.#unsent)
  }

  /** Number of packets not sent yet. */
  get waitingPackets(): number {
    return sequenceDistance(this.#unsent, this.#end)
  }

  /** Number of packets in flight whose retransmission is requested. */
  get requestedPackets(): number {
    return this.#requestedPackets
  }

  /** Time between the pushes of the first and the last packet in the buffer. */
  get spanUs(): number {
    if (this.isEmpty) return 0
    const last = addToSequence(this.#end, -1)
    return this.#queuedUs[last & this.#mask]! - this.#queuedUs[this.#first & this.#mask]!
  }

  /** @param packet  with sequence number `end`; the buffer must not be full */
  push(packet: Packet, nowUs: number): void {
    const slot = this.#end & this.#mask
    this.#packets[slot] = packet
    this.#queuedUs[slot] = nowUs
    this.#retransmittedUs[slot] = -Infinity
    this.#end = addToSequence(this.#end, 1)
  }

  /** @returns packet with sequence number `unsent`, in flight from now on; there must be one */
  takeUnsent(): Packet {
    const packet = this.#packets[this.#unsent & this.#mask]!
    this.#unsent = addToSequence(this.#unsent, 1)
    return packet
  }

  /** @returns part of the range that is in flight; undefined if none is */
  findInFlight(range: LossRange): LossRange | undefined {
    return overlap(range, this.#first, this.#unsent)
  }

  /** @returns part of the range that was dropped and not acknowledged; undefined if none was */
  findDropped(range: LossRange): LossRange | undefined {
    return overlap(range, this.#acknowledged, this.#first)
  }

  /** Time of the latest retransmission of a packet in flight; -Infinity before the first. */
  retransmittedUs(sequence: number): number {
    return this.#retransmittedUs[sequence & this.#mask]!
  }

  /**
   * Requests the retransmission of a packet in flight.
   *
   * @returns false if it is requested already
   */
  request(sequence: number): boolean {
    const slot = sequence & this.#mask
    if (this.#requested[slot] === 1) return false
    this.#requested[slot] = 1
    const isFirst =
      this.#requestedPackets === 0 || sequenceDistance(this.#requestedFrom, sequence) < 0
    if (isFirst) this.#requestedFrom = sequence
    this.#requestedPackets++
    return true
  }

  /** @returns the oldest requested packet, recorded as retransmitted now; there must be one */
  takeRequested(nowUs: number): Packet {
    while (this.#requested[this.#requestedFrom & this.#mask] === 0) {
      this.#requestedFrom = addToSequence(this.#requestedFrom, 1)
    }
    const slot = this.#requestedFrom & this.#mask
    this.#withdraw(slot)
    this.#retransmittedUs[slot] = nowUs
    return this.#packets[slot]!
  }

  #withdraw(slot: number): void {
    this.#requestedPackets -= this.#requested[slot]!
    this.#requested[slot] = 0
  }

  /**
   * Releases the packets before `sequence`, which is at most `unsent`.
   *
   * @returns number of packets released
   */
  acknowledge(sequence: number): number {
    if (sequenceDistance(this.#acknowledged, sequence) > 0) this.#acknowledged = sequence
    return this.#releaseUntil(sequence)
  }

  /**
   * Drops the packets pushed at `untilUs` or before.
   *
   * @returns number of packets dropped
   */
  drop(untilUs: number): number {
    let sequence = this.#first
    while (sequence !== this.#end && this.#queuedUs[sequence & this.#mask]! <= untilUs) {
      sequence = addToSequence(sequence, 1)
    }
    const packets = this.#releaseUntil(sequence)
    // Remembers dropped packets for less than one ring length, since the peer may never acknowledge them.
    const oldest = addToSequence(this.#first, -this.#mask)
    if (sequenceDistance(this.#acknowledged, oldest) > 0) this.#acknowledged = oldest
    return packets
  }

  #releaseUntil(sequence: number): number {
    const packets = Math.max(0, sequenceDistance(this.#first, sequence))
    for (let i = 0; i < packets; i++) {
      const slot = this.#first & this.#mask
      this.#packets[slot] = undefined
      this.#withdraw(slot)
      if (this.#first === this.#unsent) this.#unsent = addToSequence(this.#unsent, 1)
      this.#first = addToSequence(this.#first, 1)
    }
    if (sequenceDistance(this.#requestedFrom, this.#first) > 0) this.#requestedFrom = this.#first
    return packets
  }
}

/** @returns part of the range from `from` to before `to`; undefined if none */
function overlap({ first, last }: LossRange, from: number, to: number): LossRange | undefined {
  const begin = Math.max(sequenceDistance(from, first), 0)
  const end = Math.min(sequenceDistance(from, last), sequenceDistance(from, to) - 1)
  if (begin > end) return undefined
  return { first: addToSequence(from, begin), last: addToSequence(from, end) }
}
