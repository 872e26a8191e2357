/**
 * How far packets overtake each other on their way (libsrt's `SRTO_LOSSMAXTTL`, learned instead of set). A packet that is
 * merely late need not be asked for: on bonded and mobile links that would send much of the stream twice.
 *
 * @module
 */

/** 20 ms at 64 Mbit/s. A loss is never kept back for longer than a part of the round trip, whatever was learned. */
const MAX_PACKETS = 128

/** What was learned fades by an eighth in this time, unless it is seen again. */
const MEMORY_US = 1_000_000

export class ReorderTolerance {
  #packets = 0
  /** The largest distance since `#sinceUs`. */
  #seenPackets = 0
  #sinceUs: number

  constructor(nowUs: number) {
    this.#sinceUs = nowUs
  }

  /** So many packets may follow a missing one before it counts as lost. */
  get packets(): number {
    return this.#packets
  }

  /** A packet that was sent only once came so many behind the newest. */
  learn(packets: number): void {
    this.#seenPackets = Math.min(Math.max(this.#seenPackets, packets), MAX_PACKETS)
    this.#packets = Math.max(this.#packets, this.#seenPackets)
  }

  tick(nowUs: number): void {
    if (nowUs - this.#sinceUs < MEMORY_US) return
    this.#packets = Math.max(Math.floor((this.#packets * 7) / 8), this.#seenPackets)
    this.#seenPackets = 0
    this.#sinceUs = nowUs
  }
}
