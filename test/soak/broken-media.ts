/**
 * Transport streams with a fault in them.
 *
 * @module
 */
const PACKET_BYTES = 188

type Edit = (packet: Buffer, index: number) => Buffer | undefined

/** @returns the packets as edited; those without a result are left out */
export function editPackets(bytes: Buffer, edit: Edit): Buffer {
  const packets = Array.from({ length: bytes.length / PACKET_BYTES }, (_, index) =>
    edit(Buffer.from(bytes.subarray(index * PACKET_BYTES, (index + 1) * PACKET_BYTES)), index),
  )
  return Buffer.concat(packets.filter((packet) => packet !== undefined))
}

/** PID of the first PES packet of a kind; undefined without one. */
export function pidOf(bytes: Buffer, kind: 'video' | 'audio'): number | undefined {
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
    const packet = bytes.subarray(at, at + PACKET_BYTES)
    if (streamIdOf(packet) !== undefined && isKind(streamIdOf(packet)!, kind))
      return readPid(packet)
  }
  return undefined
}

export function withoutTrack(bytes: Buffer, kind: 'video' | 'audio'): Buffer {
  const pid = pidOf(bytes, kind)
  return editPackets(bytes, (packet) => (readPid(packet) === pid ? undefined : packet))
}

/** @returns the stream with video packets whose continuity counter jumps by one in the middle */
export function withCounterJump(bytes: Buffer): Buffer {
  const pid = pidOf(bytes, 'video') ?? pidOf(bytes, 'audio')
  let count = 0
  return editPackets(bytes, (packet) => {
    if (readPid(packet) !== pid || ++count < 2) return packet
    packet[3] = (packet[3]! & 0xf0) | ((packet[3]! + 1) & 0x0f)
    return packet
  })
}

/** @returns the stream without its last packets */
export function cutShort(bytes: Buffer, packets: number): Buffer {
  return bytes.subarray(0, -packets * PACKET_BYTES)
}

/** @returns the stream with all PTS, DTS and PCR moved */
export function withShiftedTimestamps(bytes: Buffer, ticks: number): Buffer {
  return editPackets(bytes, (packet) => {
    const hasField = (packet[3]! & 0x20) !== 0
    if (hasField && packet[4]! >= 7 && (packet[5]! & 0x10) !== 0) {
      const base = packet.readUInt32BE(6) * 2 + (packet[10]! >> 7)
      const moved = (base + ticks) % 2 ** 33
      packet.writeUInt32BE(Math.floor(moved / 2), 6)
      packet[10] = ((moved % 2) << 7) | (packet[10]! & 0x7f)
    }
    if (streamIdOf(packet) === undefined) return packet
    const pes = payloadStart(packet)
    const flags = packet[pes + 7]!
    if ((flags & 0x80) !== 0) shiftTimestamp(packet, pes + 9, ticks)
    if ((flags & 0x40) !== 0) shiftTimestamp(packet, pes + 14, ticks)
    return packet
  })
}

function shiftTimestamp(packet: Buffer, at: number, ticks: number): void {
  const value =
    ((packet[at]! >> 1) & 7) * 2 ** 30 +
    (packet.readUInt16BE(at + 1) >> 1) * 2 ** 15 +
    (packet.readUInt16BE(at + 3) >> 1)
  const moved = (value + ticks) % 2 ** 33
  packet[at] = (packet[at]! & 0xf0) | (Math.floor(moved / 2 ** 30) << 1) | 1
  packet.writeUInt16BE(((Math.floor(moved / 2 ** 15) & 0x7fff) << 1) | 1, at + 1)
  packet.writeUInt16BE(((moved & 0x7fff) << 1) | 1, at + 3)
}

function readPid(packet: Buffer): number {
  return packet.readUInt16BE(1) & 0x1fff
}

function payloadStart(packet: Buffer): number {
  return (packet[3]! & 0x20) === 0 ? 4 : 5 + packet[4]!
}

/** stream_id of a PES packet that begins here. */
function streamIdOf(packet: Buffer): number | undefined {
  const start = payloadStart(packet)
  const begins = (packet[1]! & 0x40) !== 0 && start + 9 < PACKET_BYTES
  return begins && packet.readUIntBE(start, 3) === 1 ? packet[start + 3] : undefined
}

function isKind(streamId: number, kind: 'video' | 'audio'): boolean {
  return kind === 'video' ? (streamId & 0xf0) === 0xe0 : (streamId & 0xe0) === 0xc0
}
