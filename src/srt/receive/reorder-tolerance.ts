/**
 * Reorder tolerance: libsrt's `SRTO_LOSSMAXTTL`, measured instead of configured. A reordered packet that is reported as
 * lost is retransmitted needlessly; on bonded and mobile links, many packets are reordered.
 *
 * @module
 */

/** Max tolerance, in packets: 20 ms at 64 Mbit/s; of bonded lines, 1 s at 10 Mbit/s. */
const MAX_PACKETS = 128
const MAX_BONDED_PACKETS = 1024

/** Interval at which the tolerance decays by an eighth, but not below the longest distance observed meanwhile. */
const DECAY_US = 1_000_000

export class ReorderTolerance {
  readonly #maxPackets: number
  #packets = 0
  /** Longest distance observed since `#decayedUs`. */
  #observedPackets = 0
  #decayedUs: number

  constructor(nowUs: number, isBonded: boolean) {
    this.#maxPackets = isBonded ? MAX_BONDED_PACKETS : MAX_PACKETS
    this.#decayedUs = nowUs
  }

  /** Number of packets that may arrive after a missing packet before the missing packet counts as lost. */
  get packets(): number {
    return this.#packets
  }

  /** @param packets  distance of a reordered packet from the newest one, in sequence numbers */
  push(packets: number): void {
    this.#observedPackets = Math.min(Math.max(this.#observedPackets, packets), this.#maxPackets)
    this.#packets = Math.max(this.#packets, this.#observedPackets)
  }

  tick(nowUs: number): void {
    if (nowUs - this.#decayedUs < DECAY_US) return
    this.#packets = Math.max(Math.floor((this.#packets * 7) / 8), this.#observedPackets)
    this.#observedPackets = 0
    this.#decayedUs = nowUs
  }
}
