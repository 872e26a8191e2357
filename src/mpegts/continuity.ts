/**
 * Continuity counters (ISO/IEC 13818-1 2.4.3.3): the check of those received, which finds lost and repeated packets, and
 * the numbering of those sent.
 *
 * @module
 */
import {
  announcesDiscontinuity,
  HAS_PAYLOAD,
  PACKET_BYTES,
  PID_COUNT,
  readContinuityCounter,
  readPid,
} from './packet.ts'

/** Result for a packet: no loss before it, first packet after a loss, or repetition of the packet before. */
type Verdict = 'continuous' | 'lost' | 'duplicate'

/** Received counter of one PID: `check` every packet with payload. Packets without payload do not increment the counter. */
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

/**
 * Counters of the outgoing stream. All PIDs are numbered anew, so inserted PSI, dropped packets and losses leave no gap,
 * and counters continue from segment to segment (RFC 8216bis 3).
 */
export class ContinuityCounters {
  /** Last counter of each PID: 8 KiB, allocated with the first packets. */
  #last: Uint8Array | undefined

  /**
   * Renumbers packets in place: the counter increments with each packet that has payload, and
   * stays the same in a packet without payload.
   *
   * @param from  offset of the first packet
   * @param to  end of the last packet
   */
  renumber(bytes: Buffer, from: number, to: number): void {
    const last = (this.#last ??= new Uint8Array(PID_COUNT).fill(0x0f))
    for (let offset = from; offset < to; offset += PACKET_BYTES) {
      const pid = readPid(bytes, offset)
      const flags = bytes[offset + 3]!
      const counter = (flags & HAS_PAYLOAD) === 0 ? last[pid]! : (last[pid]! + 1) & 0x0f
      last[pid] = counter
      bytes[offset + 3] = (flags & 0xf0) | counter
    }
  }
}
