/**
 * Reader of transport streams that shares no code with src, so that tests do not repeat its errors.
 *
 * @module
 */

const PACKET_BYTES = 188

export interface TsPacket {
  readonly pid: number
  readonly unitStart: boolean
  readonly counter: number
  readonly hasPayload: boolean
  /** Payload behind header and adaptation field. */
  readonly payload: Buffer
}

/** @throws when a packet lacks the sync byte or the length is no multiple of 188 */
export function readPackets(bytes: Buffer): TsPacket[] {
  if (bytes.length % PACKET_BYTES !== 0) throw new Error(`${bytes.length} bytes are not n x 188`)
  return Array.from({ length: bytes.length / PACKET_BYTES }, (_, index) =>
    readPacket(bytes.subarray(index * PACKET_BYTES, (index + 1) * PACKET_BYTES)),
  )
}

/** @returns PTS of each PES packet of a PID, 33 bits */
export function readPtsTicks(packets: readonly TsPacket[], pid: number): number[] {
  return packets
    .filter((packet) => packet.pid === pid && packet.unitStart)
    .map(({ payload }) => readTimestamp(payload.subarray(9, 14)))
}

export interface PesPacket {
  readonly streamId: number
  /** PTS, 33 bits; undefined without one. */
  readonly ptsTicks: number | undefined
  readonly dtsTicks: number | undefined
  /** Elementary stream bytes. */
  readonly payload: Buffer
}

/** @returns PES packets of a PID, from the first unit start */
export function readPesPackets(packets: readonly TsPacket[], pid: number): PesPacket[] {
  const pieces: Buffer[][] = []
  for (const packet of packets.filter((packet) => packet.pid === pid && packet.hasPayload)) {
    if (packet.unitStart) pieces.push([])
    pieces.at(-1)?.push(packet.payload)
  }
  return pieces.map((chunks) => {
    const bytes = Buffer.concat(chunks)
    const flags = bytes[7]!
    return {
      streamId: bytes[3]!,
      ptsTicks: (flags & 0x80) === 0 ? undefined : readTimestamp(bytes.subarray(9, 14)),
      dtsTicks: (flags & 0x40) === 0 ? undefined : readTimestamp(bytes.subarray(14, 19)),
      payload: bytes.subarray(9 + bytes[8]!),
    }
  })
}

/** @returns errors of the continuity counters in all packets */
export function continuityFaults(packets: readonly TsPacket[]): string[] {
  const last = new Map<number, number>()
  return packets.flatMap(({ pid, counter, hasPayload }, index) => {
    const before = last.get(pid)
    last.set(pid, counter)
    if (before === undefined) return []
    const expected = hasPayload ? (before + 1) & 15 : before
    return counter === expected ? [] : [`packet ${index}, PID ${pid}: ${counter}, not ${expected}`]
  })
}

/** @returns section in a packet that contains all of it, CRC_32 included */
export function readSection({ payload }: TsPacket): Buffer {
  const start = 1 + payload[0]!
  return payload.subarray(start, start + 3 + (payload.readUInt16BE(start + 1) & 0x0fff))
}

export interface ProgramAssociation {
  readonly programNumber: number
  readonly pmtPid: number
}

export function readPat(packet: TsPacket): ProgramAssociation[] {
  const entries = readSection(packet).subarray(8, -4)
  return Array.from({ length: entries.length / 4 }, (_, index) => ({
    programNumber: entries.readUInt16BE(index * 4),
    pmtPid: entries.readUInt16BE(index * 4 + 2) & 0x1fff,
  }))
}

export interface ProgramMap {
  readonly version: number
  readonly pcrPid: number
  readonly streams: { streamType: number; pid: number; descriptors: string }[]
}

export function readPmt(packet: TsPacket): ProgramMap {
  const section = readSection(packet)
  const streams: ProgramMap['streams'] = []
  for (let at = 12 + (section.readUInt16BE(10) & 0x0fff); at < section.length - 4;) {
    const end = at + 5 + (section.readUInt16BE(at + 3) & 0x0fff)
    streams.push({
      streamType: section[at]!,
      pid: section.readUInt16BE(at + 1) & 0x1fff,
      descriptors: section.toString('hex', at + 5, end),
    })
    at = end
  }
  return {
    version: (section[5]! >> 1) & 31,
    pcrPid: section.readUInt16BE(8) & 0x1fff,
    streams,
  }
}

function readPacket(bytes: Buffer): TsPacket {
  if (bytes[0] !== 0x47) throw new Error(`a packet begins with ${bytes[0]}, not with the sync byte`)
  const control = bytes[3]! & 0x30
  const start = (control & 0x20) === 0 ? 4 : 5 + bytes[4]!
  return {
    pid: bytes.readUInt16BE(1) & 0x1fff,
    unitStart: (bytes[1]! & 0x40) !== 0,
    counter: bytes[3]! & 15,
    hasPayload: (control & 0x10) !== 0,
    payload: bytes.subarray((control & 0x10) === 0 ? PACKET_BYTES : start),
  }
}

function readTimestamp(bytes: Buffer): number {
  const high = (bytes[0]! >> 1) & 7
  const middle = bytes.readUInt16BE(1) >> 1
  const low = bytes.readUInt16BE(3) >> 1
  return high * 2 ** 30 + middle * 2 ** 15 + low
}
