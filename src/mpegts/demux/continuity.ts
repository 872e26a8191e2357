/**
 * Continuity counter check (ISO/IEC 13818-1 2.4.3.3), which finds lost and repeated packets of one PID.
 *
 * @module
 */
import { PACKET_BYTES, announcesDiscontinuity, readContinuityCounter } from '../packet.ts'

/** Result for a packet: no loss before it, first packet after a loss, or repetition of the packet before. */
export type Verdict = 'continuous' | 'lost' | 'duplicate'

/** Counter of one PID: `check` every packet with payload. Packets without payload do not increment the counter. */
export class Continuity {
  /** Counter of the previous packet; -1 before the first. */
  #counter = -1
  /** Buffer with the payload of the previous packet, from `#payloadAt` to `#end`. */
  #bytes: Buffer | undefined
  #payloadAt = 0
  #end = 0

  /**
   * @param at  offset of the packet in `bytes`, which is retained until the next packet
   * @param payloadAt  offset of the payload in `bytes`
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

  /** Whether the payload equals the previous one. Adaptation fields are ignored: the PCR may differ (2.4.3.3). */
  #repeats(bytes: Buffer, at: number, payloadAt: number): boolean {
    return (
      this.#bytes !== undefined &&
      this.#bytes.compare(bytes, payloadAt, at + PACKET_BYTES, this.#payloadAt, this.#end) === 0
    )
  }
}
