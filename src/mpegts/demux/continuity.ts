/**
 * Continuity counters (ISO/IEC 13818-1 2.4.3.3): what one PID lost, and what it was sent twice.
 *
 * @module
 */
import { PACKET_BYTES, announcesDiscontinuity, readContinuityCounter } from '../packet.ts'

/** What a packet is to the one before it: its successor, the successor of one that was lost, or its repetition. */
export type Verdict = 'continuous' | 'lost' | 'duplicate'

/** The counter of one PID. It goes up with payload only, so packets without any are not shown to it. */
export class Continuity {
  /** Packet before: its counter, and where it lies; -1 before the first. */
  #counter = -1
  #bytes: Buffer | undefined
  #payloadAt = 0
  #end = 0

  /**
   * @param at  offset of the packet in `bytes`, which is kept until the next packet
   * @param payloadAt  offset of its payload
   */
  check(bytes: Buffer, at: number, payloadAt: number): Verdict {
    const counter = readContinuityCounter(bytes, at)
    const previous = this.#counter
    let verdict: Verdict = 'continuous'
    if (counter !== ((previous + 1) & 0x0f) && previous !== -1) {
      if (counter === previous && this.#repeats(bytes, at, payloadAt)) return 'duplicate'
      if (!announcesDiscontinuity(bytes, at)) verdict = 'lost'
    }
    this.#counter = counter
    this.#bytes = bytes
    this.#payloadAt = payloadAt
    this.#end = at + PACKET_BYTES
    return verdict
  }

  /** A duplicate repeats the payload; its adaptation field may carry another PCR. */
  #repeats(bytes: Buffer, at: number, payloadAt: number): boolean {
    return (
      this.#bytes !== undefined &&
      this.#bytes.compare(bytes, payloadAt, at + PACKET_BYTES, this.#payloadAt, this.#end) === 0
    )
  }
}
