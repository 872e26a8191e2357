import type { Datagram } from '../../src/srt/transmitter.ts'

/** Copy of a datagram in one buffer, as it arrives. */
export function wholeDatagram(datagram: Datagram): Buffer {
  return Buffer.concat([datagram].flat())
}
