/**
 * Transport streams with a fault in them.
 *
 * @module
 */
const PACKET_BYTES = 188

/** @returns a copy, each packet edited in place */
function editPackets(bytes: Buffer, edit: (packet: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = 0; at < copy.length; at += PACKET_BYTES) edit(copy.subarray(at, at + PACKET_BYTES))
  return copy
}

/** @returns the stream with a jump by one in the continuity counters of its first PES packet's PID */
export function withCounterJump(bytes: Buffer): Buffer {
  let pid: number | undefined
  return editPackets(bytes, (packet) => {
    if (pid === undefined && beginsPes(packet)) pid = readPid(packet)
    else if (readPid(packet) === pid) packet[3] = (packet[3]! & 0xf0) | ((packet[3]! + 1) & 0x0f)
  })
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
    if (!beginsPes(packet)) return
    const pes = payloadStart(packet)
    const flags = packet[pes + 7]!
    if ((flags & 0x80) !== 0) shiftTimestamp(packet, pes + 9, ticks)
    if ((flags & 0x40) !== 0) shiftTimestamp(packet, pes + 14, ticks)
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

function beginsPes(packet: Buffer): boolean {
  const start = payloadStart(packet)
  const begins = (packet[1]! & 0x40) !== 0 && start + 9 < PACKET_BYTES
  return begins && packet.readUIntBE(start, 3) === 1
}
