/**
 * Data packets from the moment they are handed in until they are acknowledged or given up: whole datagrams in a ring
 * indexed by sequence number.
 *
 *    acknowledged     given up, maybe missed     sent, may be asked for again     waits for its turn
 *   ──────────────┬──────────────────────────┬────────────────────────────────┬──────────────────────┬────►  sequence
 *             acknowledged                 first                            unsent                  end
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'
import type { LossRange } from '../wire/loss-list.ts'

export class SendBuffer {
  readonly #datagrams: (Buffer | undefined)[]
  readonly #queuedUs: Float64Array
  /** When the packet was last sent again; -Infinity where it never was. */
  readonly #resentUs: Float64Array
  /** 1 where the packet is to be sent again. */
  readonly #requested: Uint8Array
  readonly #mask: number
  #requestedPackets = 0
  /** None is to be sent again before this one. */
  #requestedFrom: number
  #acknowledged: number
  #first: number
  #unsent: number
  #end: number

  /** @param capacityPackets  rounded up to a power of two */
  constructor(initialSequenceNumber: number, capacityPackets: number) {
    const capacity = 2 ** Math.ceil(Math.log2(capacityPackets))
    this.#datagrams = Array.from<Buffer | undefined>({ length: capacity })
    this.#queuedUs = new Float64Array(capacity)
    this.#resentUs = new Float64Array(capacity)
    this.#requested = new Uint8Array(capacity)
    this.#mask = capacity - 1
    this.#acknowledged = this.#requestedFrom = initialSequenceNumber
    this.#first = this.#unsent = this.#end = initialSequenceNumber
  }

  /** The peer has everything before this one. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  get first(): number {
    return this.#first
  }

  get unsent(): number {
    return this.#unsent
  }

  /** Sequence number of the next packet to be handed in. */
  get end(): number {
    return this.#end
  }

  get isFull(): boolean {
    return sequenceDistance(this.#first, this.#end) > this.#mask
  }

  get isEmpty(): boolean {
    return this.#first === this.#end
  }

  /** Packets sent and neither acknowledged nor given up. */
  get flightPackets(): number {
    return sequenceDistance(this.#first, this.#unsent)
  }

  /** Packets that wait for their first turn. */
  get waitingPackets(): number {
    return sequenceDistance(this.#unsent, this.#end)
  }

  /** Packets of the flight that are to be sent again. */
  get requestedPackets(): number {
    return this.#requestedPackets
  }

  /** From the first packet that is here to the last. */
  get spanUs(): number {
    if (this.isEmpty) return 0
    const last = addToSequence(this.#end, -1)
    return this.#queuedUs[last & this.#mask]! - this.#queuedUs[this.#first & this.#mask]!
  }

  /** Takes the packet with sequence number `end`; not to be called when full. */
  push(datagram: Buffer, nowUs: number): void {
    const slot = this.#end & this.#mask
    this.#datagrams[slot] = datagram
    this.#queuedUs[slot] = nowUs
    this.#resentUs[slot] = -Infinity
    this.#end = addToSequence(this.#end, 1)
  }

  /** @returns the packet whose turn it is; from now on it counts as sent */
  takeUnsent(): Buffer {
    const datagram = this.#datagrams[this.#unsent & this.#mask]!
    this.#unsent = addToSequence(this.#unsent, 1)
    return datagram
  }

  /** @returns what of the range was sent and is still here */
  findInFlight(range: LossRange): LossRange | undefined {
    return overlap(range, this.#first, this.#unsent)
  }

  /** @returns what of the range was given up without being acknowledged */
  findGivenUp(range: LossRange): LossRange | undefined {
    return overlap(range, this.#acknowledged, this.#first)
  }

  /** When a packet in flight was last sent again; -Infinity where it never was. */
  resentUs(sequence: number): number {
    return this.#resentUs[sequence & this.#mask]!
  }

  /**
   * A packet in flight is to be sent again.
   *
   * @returns whether that is new
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

  /** @returns the oldest packet that is to be sent again, of at least one; from now on it was */
  takeRequested(nowUs: number): Buffer {
    while (this.#requested[this.#requestedFrom & this.#mask] === 0) {
      this.#requestedFrom = addToSequence(this.#requestedFrom, 1)
    }
    const slot = this.#requestedFrom & this.#mask
    this.#withdraw(slot)
    this.#resentUs[slot] = nowUs
    return this.#datagrams[slot]!
  }

  #withdraw(slot: number): void {
    this.#requestedPackets -= this.#requested[slot]!
    this.#requested[slot] = 0
  }

  /**
   * Forgets everything before `sequence`, which is at most `unsent`: the peer has it.
   *
   * @returns how many packets were let go
   */
  acknowledge(sequence: number): number {
    if (sequenceDistance(this.#acknowledged, sequence) > 0) this.#acknowledged = sequence
    return this.#releaseUntil(sequence)
  }

  /**
   * Gives up what was handed in at `untilUs` or before.
   *
   * @returns how many packets that were
   */
  giveUp(untilUs: number): number {
    let sequence = this.#first
    while (sequence !== this.#end && this.#queuedUs[sequence & this.#mask]! <= untilUs) {
      sequence = addToSequence(sequence, 1)
    }
    const packets = this.#releaseUntil(sequence)
    // A peer may never acknowledge; what is further back than the ring is long, nobody asks for.
    const oldest = addToSequence(this.#first, -this.#mask)
    if (sequenceDistance(this.#acknowledged, oldest) > 0) this.#acknowledged = oldest
    return packets
  }

  #releaseUntil(sequence: number): number {
    const packets = Math.max(0, sequenceDistance(this.#first, sequence))
    for (let i = 0; i < packets; i++) {
      const slot = this.#first & this.#mask
      this.#datagrams[slot] = undefined
      this.#withdraw(slot)
      if (this.#first === this.#unsent) this.#unsent = addToSequence(this.#unsent, 1)
      this.#first = addToSequence(this.#first, 1)
    }
    if (sequenceDistance(this.#requestedFrom, this.#first) > 0) this.#requestedFrom = this.#first
    return packets
  }
}

/** What a range has in common with the sequence numbers from `from` to before `to`. */
function overlap({ first, last }: LossRange, from: number, to: number): LossRange | undefined {
  const begin = Math.max(sequenceDistance(from, first), 0)
  const end = Math.min(sequenceDistance(from, last), sequenceDistance(from, to) - 1)
  if (begin > end) return undefined
  return { first: addToSequence(from, begin), last: addToSequence(from, end) }
}
