/**
 * Data packets from the moment they are handed in until they are acknowledged or given up: whole datagrams in a ring
 * indexed by sequence number.
 *
 *          acknowledged       sent, may be asked for again       waits for its turn
 *   ──────────────────────┬────────────────────────────────┬───────────────────────┬──────►  sequence numbers
 *                       first                           unsent                    end
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../binary/sequence-number.ts'

export class SendBuffer {
  readonly #datagrams: (Buffer | undefined)[]
  readonly #queuedUs: Float64Array
  /** When the packet was last sent again; -Infinity where it never was. */
  readonly #resentUs: Float64Array
  readonly #mask: number
  #first: number
  #unsent: number
  #end: number

  /** @param capacityPackets  rounded up to a power of two */
  constructor(initialSequenceNumber: number, capacityPackets: number) {
    const capacity = 2 ** Math.ceil(Math.log2(capacityPackets))
    this.#datagrams = Array.from<Buffer | undefined>({ length: capacity })
    this.#queuedUs = new Float64Array(capacity)
    this.#resentUs = new Float64Array(capacity)
    this.#mask = capacity - 1
    this.#first = this.#unsent = this.#end = initialSequenceNumber
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

  /** Whether it was sent and is still here. */
  isInFlight(sequence: number): boolean {
    return (
      sequenceDistance(this.#first, sequence) >= 0 && sequenceDistance(sequence, this.#unsent) > 0
    )
  }

  /** A packet in flight. */
  get(sequence: number): Buffer {
    return this.#datagrams[sequence & this.#mask]!
  }

  resentUs(sequence: number): number {
    return this.#resentUs[sequence & this.#mask]!
  }

  markResent(sequence: number, nowUs: number): void {
    this.#resentUs[sequence & this.#mask] = nowUs
  }

  /** Forgets everything before `sequence`, which lies within [first, end]. */
  releaseUntil(sequence: number): void {
    while (this.#first !== sequence) {
      this.#datagrams[this.#first & this.#mask] = undefined
      if (this.#first === this.#unsent) this.#unsent = addToSequence(this.#unsent, 1)
      this.#first = addToSequence(this.#first, 1)
    }
  }

  /** @returns the first packet that was handed in later than `untilUs`, or `end` */
  firstQueuedAfter(untilUs: number): number {
    let sequence = this.#first
    while (sequence !== this.#end && this.#queuedUs[sequence & this.#mask]! <= untilUs) {
      sequence = addToSequence(sequence, 1)
    }
    return sequence
  }
}
