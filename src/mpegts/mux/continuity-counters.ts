/**
 * Continuity counters of the outgoing stream, our own on every PID: inserted PSI, dropped PIDs and loss on the way in
 * leave no mark, and the counters run on from segment to segment, as RFC 8216bis 3 asks.
 *
 * @module
 */
import { HAS_PAYLOAD, PACKET_BYTES, PID_COUNT, readPid } from '../packet.ts'

export class ContinuityCounters {
  /** Counter of the last packet with payload of each PID; 8 KiB that a stream without media does not take. */
  #last: Uint8Array | undefined

  /**
   * Renumbers packets in place (ISO/IEC 13818-1 2.4.3.3): one up for each packet with payload, repeated where there
   * is only an adaptation field.
   *
   *   0                   1                   2                   3
   *  | sync byte 0x47    |E|S|P|        PID (13)          |TSC|AFC| counter |
   *
   * @param from  offset of a packet in `bytes`
   * @param to  offset behind the last packet
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
