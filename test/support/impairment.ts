/**
 * Impairments of one direction of a link, decided datagram by datagram from a seed. No IO and no
 * clock: the fate of the n-th datagram depends on the seed, on n, and on whether it is a handshake.
 *
 * @module
 */
import { createRandom } from './random.ts'

/** All default to a perfect link. Probabilities are in [0, 1]. */
export interface LinkOptions {
  /** Probability that a datagram is lost, each for itself. */
  readonly loss?: number
  /**
   * Losses in bursts (Gilbert-Elliott): the link turns bad with probability `enter` before a datagram and good
   * again with `leave`; a bad link loses with probability `loss` (default 1). The mean burst is 1 / `leave` datagrams.
   */
  readonly burst?: { readonly enter: number; readonly leave: number; readonly loss?: number }
  readonly delayMs?: number
  /** Max random addition to the delay, uniform; keeps the order, as a queue does. */
  readonly jitterMs?: number
  /** Probability that a datagram is held back by `reorderMs` (default 10) while later ones overtake it. */
  readonly reorder?: number
  readonly reorderMs?: number
  /** Probability that a datagram arrives twice. */
  readonly duplicate?: number
  /** Probability that one bit of a datagram is flipped. */
  readonly corrupt?: number
  /** SRT handshakes of this direction that never arrive; 1 is the first. */
  readonly dropHandshakes?: readonly number[]
  /** Whether SRT handshakes are never lost, so that the link turns bad once connected. */
  readonly sparesHandshakes?: boolean
}

/** Datagrams by fate; `received` = `forwarded` - `duplicated` + the losses. */
export interface LinkCounters {
  received: number
  forwarded: number
  lost: number
  lostInBurst: number
  handshakesDropped: number
  duplicated: number
  corrupted: number
  reordered: number
}

/** One copy to deliver, `delayMs` from now. Copies with `ordered` keep their order among each other. */
export interface Delivery {
  readonly delayMs: number
  readonly ordered: boolean
  readonly datagram: Buffer
}

/** `push(datagram)` answers with the copies to deliver: none, one or two. `counters` count the impairments. */
export class Impairment {
  readonly counters: LinkCounters = {
    received: 0,
    forwarded: 0,
    lost: 0,
    lostInBurst: 0,
    handshakesDropped: 0,
    duplicated: 0,
    corrupted: 0,
    reordered: 0,
  }
  readonly #options: LinkOptions
  readonly #random
  #bad = false
  #handshakes = 0

  constructor(seed: number, options: LinkOptions = {}) {
    this.#options = options
    this.#random = createRandom(seed)
  }

  push(datagram: Buffer): Delivery[] {
    const { loss = 0, burst, delayMs = 0, jitterMs = 0, reorderMs = 10 } = this.#options
    const { reorder = 0, duplicate = 0, corrupt = 0 } = this.#options
    const { dropHandshakes = [], sparesHandshakes = false } = this.#options
    const counters = this.counters
    counters.received++

    // Every datagram draws the same numbers in the same order, so that one fate never shifts the next.
    const turns = this.#random.chance((this.#bad ? burst?.leave : burst?.enter) ?? 0)
    if (turns) this.#bad = !this.#bad
    const burstLost = this.#random.chance(burst?.loss ?? 1) && this.#bad
    const lost = this.#random.chance(loss)
    const reordered = this.#random.chance(reorder)
    const duplicated = this.#random.chance(duplicate)
    const corrupted = this.#random.chance(corrupt)
    const flippedBit = this.#random.below(Math.max(datagram.length * 8, 1))
    const delay = delayMs + this.#random.next() * jitterMs

    const handshake = isHandshake(datagram)
    if (handshake && dropHandshakes.includes(++this.#handshakes)) {
      counters.handshakesDropped++
      return []
    }
    if ((burstLost || lost) && !(handshake && sparesHandshakes)) {
      counters[burstLost ? 'lostInBurst' : 'lost']++
      return []
    }
    const delivered = corrupted ? withFlippedBit(datagram, flippedBit) : datagram
    if (corrupted) counters.corrupted++
    if (reordered) counters.reordered++
    if (duplicated) counters.duplicated++
    const delivery: Delivery = {
      delayMs: reordered ? delay + reorderMs : delay,
      ordered: !reordered,
      datagram: delivered,
    }
    const deliveries = duplicated ? [delivery, delivery] : [delivery]
    counters.forwarded += deliveries.length
    return deliveries
  }
}

/** A control packet of type 0 (draft-sharabayko-srt 3.2.1). */
function isHandshake(datagram: Buffer): boolean {
  return datagram.length >= 16 && datagram.readUInt16BE(0) === 0x8000
}

function withFlippedBit(datagram: Buffer, bit: number): Buffer {
  const copy = Buffer.from(datagram)
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7))
  return copy
}
