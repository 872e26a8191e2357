/**
 * Joins clips as one encoder would send them, with continuity counters that continue across the clips.
 *
 * @module
 */
import { PACKET_BYTES, payloadOffset, readPid } from '../../../src/mpegts/packet.ts'

/** @returns a copy with counters renumbered from 0 (ISO/IEC 13818-1 2.4.3.3) */
export function splice(...clips: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(clips)
  const counters = new Map<number, number>()
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
    const pid = readPid(bytes, at)
    const hasPayload = payloadOffset(bytes, at) !== at + PACKET_BYTES
    const counter = ((counters.get(pid) ?? -1) + (hasPayload ? 1 : 0)) & 0x0f
    counters.set(pid, counter)
    bytes[at + 3] = (bytes[at + 3]! & 0xf0) | counter
  }
  return bytes
}
