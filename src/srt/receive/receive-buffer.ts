/**
 * Where a receiver stands in the sequence, and the payloads that arrived ahead of a missing one: a ring indexed by
 * sequence number. Since 2^31 is a multiple of every ring size, the wrap of the sequence number needs no care.
 *
 *          handed on         missing      held    missing    held
 *   ───────────────────────┬───────────┬────────┬─────────┬────────┬─────►  sequence numbers
 *                         next     firstHeld                      end
 *
 * The owner keeps `end` within its window of `next`; the ring grows to what is used of that.
 *
 * @module
 */
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'
import type { LossRange } from '../wire/loss-list.ts'

const INITIAL_CAPACITY = 1024

/**
 * Slots whose packets are counted together. Where a block is empty a search skips it: packet by packet, a peer that leaves
 * out a whole window each time would cost 180 us a packet.
 */
const BLOCK_SLOTS = 256

export class ReceiveBuffer {
  #payloads: (Buffer | undefined)[] = []
  #deliveryUs = new Float64Array(0)
  /** Packets held, by block of the ring. */
  #heldInBlock = new Uint16Array(0)
  #mask = -1
  #next: number
  #firstHeld: number
  #end: number
  #heldPackets = 0

  constructor(initialSequenceNumber: number) {
    this.#next = this.#firstHeld = this.#end = initialSequenceNumber
  }

  /** The first packet that is not handed on: the position that ACKs tell. */
  get next(): number {
    return this.#next
  }

  /** The first packet that waits here; has a meaning where something is missing. */
  get firstHeld(): number {
    return this.#firstHeld
  }

  /** One beyond the highest that arrived. */
  get end(): number {
    return this.#end
  }

  /** `next` is missing, and something after it is held. */
  get hasGap(): boolean {
    return this.#next !== this.#end
  }

  get heldPackets(): number {
    return this.#heldPackets
  }

  /** When the first packet held is due. */
  get firstHeldDueUs(): number {
    return this.#deliveryUs[this.#firstHeld & this.#mask]!
  }

  /** Of a packet between `next` and `end`. */
  has(sequence: number): boolean {
    return this.#payloads[sequence & this.#mask] !== undefined
  }

  /** The packet `next` arrived and is handed on, past the ring. */
  pass(): void {
    const last = this.#next === this.#end
    this.#next = addToSequence(this.#next, 1)
    if (last) this.#end = this.#next
  }

  /** Keeps a packet that lies after `next` and is not held yet. */
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

  /** @returns the payload of `next`, which moves on; undefined where that is missing, or nothing is left */
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

  /** @returns the first packet held from `from` on, or `to` */
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

  /** Waits no longer for what lies before `sequence`, where nothing up to there is held; that may lie beyond `end`. */
  skipTo(sequence: number): void {
    this.#next = sequence
    if (sequenceDistance(this.#end, sequence) > 0) this.#end = sequence
  }

  /** @returns what is missing from `from` to before `to`, in order; the first ranges where there are more */
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

  /** Makes room for so many consecutive packets from `next` on; what is held stays. */
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

  /** Forgets everything, and gives the memory back. */
  clear(): void {
    this.#next = this.#end
    this.#heldPackets = 0
    this.#payloads = []
    this.#deliveryUs = new Float64Array(0)
    this.#heldInBlock = new Uint16Array(0)
    this.#mask = -1
  }
}
