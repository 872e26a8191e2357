/**
 * Reordering of packets on the path: libsrt's `SRTO_LOSSMAXTTL`, measured instead of configured. A reordered packet that is
 * reported as lost is retransmitted needlessly; on bonded and mobile links, much of the stream would be.
 *
 * @module
 */

/** Longest tolerance: 20 ms at 64 Mbit/s. */
const MAX_PACKETS = 128

/** Interval at which the tolerance decays by an eighth, down to the longest distance observed within it. */
const DECAY_US = 1_000_000

export class ReorderTolerance {
  #packets = 0
  /** Longest distance observed since `#decayedUs`. */
  #observedPackets = 0
  #decayedUs: number

  constructor(nowUs: number) {
    this.#decayedUs = nowUs
  }

  /** Packets that may follow a missing one before it counts as lost. */
  get packets(): number {
    return this.#packets
  }

  /** @param packets  distance by which a packet came later than the newest one */
  push(packets: number): void {
    this.#observedPackets = Math.min(Math.max(this.#observedPackets, packets), MAX_PACKETS)
    this.#packets = Math.max(this.#packets, this.#observedPackets)
  }

  tick(nowUs: number): void {
    if (nowUs - this.#decayedUs < DECAY_US) return
    this.#packets = Math.max(Math.floor((this.#packets * 7) / 8), this.#observedPackets)
    this.#observedPackets = 0
    this.#decayedUs = nowUs
  }
}
