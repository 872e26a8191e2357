/**
 * Continuity counters of the outgoing stream. All PIDs are numbered anew, so inserted PSI, dropped packets and losses
 * leave no gap, and counters continue from segment to segment (RFC 8216bis 3).
 *
 * @module
 */
import { HAS_PAYLOAD, PACKET_BYTES, PID_COUNT, readPid } from '../packet.ts'

export class ContinuityCounters {
  /** Last counter of each PID: 8 KiB, allocated with the first packets. */
  #last: Uint8Array | undefined

  /**
   * Renumbers packets in place (ISO/IEC 13818-1 2.4.3.3): the counter increments with each packet that has payload, and
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
