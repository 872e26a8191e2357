/**
 * Payloads that arrived ahead of a missing packet, in a ring indexed by sequence number, and the receiver's position in
 * the sequence. 2^31 is a multiple of every ring size, so an index needs no special case when sequence numbers wrap.
 *
 *          delivered         missing      held    missing    held
 *   ───────────────────────┬───────────┬────────┬─────────┬────────┬─────►  sequence numbers
 *                         next     firstHeld                      end
 *
 * The owner limits the distance from `next` to `end` to its receive window; the ring grows with that distance.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import type { LossRange } from '../wire/loss-list.ts'

const INITIAL_CAPACITY = 1024

/**
 * Slots per block of the ring. A search skips empty blocks: slot by slot, a peer that skips a whole window with each
 * packet would cost 180 us per packet.
 */
const BLOCK_SLOTS = 256

export class ReceiveBuffer {
  #payloads: (Buffer | undefined)[] = []
  #deliveryUs = new Float64Array(0)
  /** Number of packets held in each block of the ring. */
  #heldInBlock = new Uint16Array(0)
  #mask = -1
  #next: number
  #firstHeld: number
  #end: number
  #heldPackets = 0

  constructor(initialSequenceNumber: number) {
    this.#next = this.#firstHeld = this.#end = initialSequenceNumber
  }

  /** First sequence number not delivered: the position that ACKs carry. */
  get next(): number {
    return this.#next
  }

  /** Sequence number of the first packet held; meaningful only while `hasGap`. */
  get firstHeld(): number {
    return this.#firstHeld
  }

  /** Highest sequence number that arrived, plus one. */
  get end(): number {
    return this.#end
  }

  /** Whether `next` is missing and a later packet is held. */
  get hasGap(): boolean {
    return this.#next !== this.#end
  }

  get heldPackets(): number {
    return this.#heldPackets
  }

  /** Delivery time of the first packet held. */
  get firstHeldDueUs(): number {
    return this.#deliveryUs[this.#firstHeld & this.#mask]!
  }

  /** @param sequence  from `next` to before `end` */
  has(sequence: number): boolean {
    return this.#payloads[sequence & this.#mask] !== undefined
  }

  /** Counts the packet `next` as delivered; it never enters the ring. */
  advance(): void {
    const isAtEnd = this.#next === this.#end
    this.#next = addToSequence(this.#next, 1)
    if (isAtEnd) this.#end = this.#next
  }

  /** Holds a packet after `next` that is not held yet. */
  hold(sequence: number, payload: Buffer, deliveryUs: number): void {
    const isFirst = !this.hasGap || sequenceDistance(sequence, this.#firstHeld) > 0
    if (isFirst) this.#firstHeld = sequence
    if (sequenceDistance(this.#end, sequence) >= 0) this.#end = addToSequence(sequence, 1)
    this.#reserve(sequenceDistance(this.#next, this.#end))
    this.#payloads[sequence & this.#mask] = payload
    this.#deliveryUs[sequence & this.#mask] = deliveryUs
    this.#heldInBlock[this.#blockOf(sequence)]!++
    this.#heldPackets++
  }

  /**
   * Removes the packet `next` from the ring and advances `next`.
   *
   * @returns its payload; undefined if that packet is missing: `firstHeld` is then up to date
   */
  takeNext(): Buffer | undefined {
    const payload = this.hasGap ? this.#payloads[this.#next & this.#mask] : undefined
    if (payload === undefined) {
      this.#findFirstHeld()
      return undefined
    }
    this.#payloads[this.#next & this.#mask] = undefined
    this.#heldInBlock[this.#blockOf(this.#next)]!--
    this.#heldPackets--
    this.#next = addToSequence(this.#next, 1)
    return payload
  }

  #findFirstHeld(): void {
    if (!this.hasGap || sequenceDistance(this.#next, this.#firstHeld) >= 0) return
    this.#firstHeld = this.#findHeld(this.#next, this.#end)
  }

  /** @returns sequence number of the first packet held from `from` on; `to` if there is none before `to` */
  #findHeld(from: number, to: number): number {
    let sequence = from
    while (sequence !== to && !this.has(sequence)) {
      const isEmpty = this.#heldInBlock[this.#blockOf(sequence)] === 0
      const steps = isEmpty ? BLOCK_SLOTS - (sequence % BLOCK_SLOTS) : 1
      sequence = sequenceDistance(sequence, to) > steps ? addToSequence(sequence, steps) : to
    }
    return sequence
  }

  #blockOf(sequence: number): number {
    return Math.trunc((sequence & this.#mask) / BLOCK_SLOTS)
  }

  /** Moves `next` to `sequence`, which may lie beyond `end`; no packet before it may be held. */
  skipTo(sequence: number): void {
    this.#next = sequence
    if (sequenceDistance(this.#end, sequence) > 0) this.#end = sequence
  }

  /** @returns missing ranges from `from` to before `to`, in order, at most `maxRanges` */
  missing(from: number, to: number, maxRanges: number): LossRange[] {
    const ranges: LossRange[] = []
    let sequence = sequenceDistance(from, this.#next) > 0 ? this.#next : from
    while (sequenceDistance(sequence, to) > 0 && ranges.length < maxRanges) {
      const first = sequence
      sequence = this.#findHeld(first, to)
      if (sequence !== first) ranges.push({ first, last: addToSequence(sequence, -1) })
      while (sequence !== to && this.has(sequence)) sequence = addToSequence(sequence, 1)
    }
    return ranges
  }

  /** Grows the ring to hold `span` consecutive packets from `next` on. */
  #reserve(span: number): void {
    const capacity = this.#payloads.length
    if (span <= capacity) return
    let size = Math.max(capacity, INITIAL_CAPACITY)
    while (size < span) size *= 2
    const payloads = Array.from<Buffer | undefined>({ length: size })
    const deliveryUs = new Float64Array(size)
    const heldInBlock = new Uint16Array(size / BLOCK_SLOTS)
    for (let i = 0; i < capacity; i++) {
      const from = (this.#next + i) & this.#mask
      const to = (this.#next + i) & (size - 1)
      payloads[to] = this.#payloads[from]
      deliveryUs[to] = this.#deliveryUs[from]!
      if (payloads[to] !== undefined) heldInBlock[Math.trunc(to / BLOCK_SLOTS)]!++
    }
    this.#payloads = payloads
    this.#deliveryUs = deliveryUs
    this.#heldInBlock = heldInBlock
    this.#mask = size - 1
  }

  /** Discards everything and releases the memory. */
  clear(): void {
    this.#next = this.#end
    this.#heldPackets = 0
    this.#payloads = []
    this.#deliveryUs = new Float64Array(0)
    this.#heldInBlock = new Uint16Array(0)
    this.#mask = -1
  }
}
