/**
 * Packetizes changed PES packets into transport packets (ISO/IEC 13818-1 2.4.3).
 *
 * @module
 */
import {
  adaptationFields,
  HAS_ADAPTATION_FIELD,
  HAS_PAYLOAD,
  PACKET_BYTES,
  payloadOffset,
  SYNC_BYTE,
  UNIT_START,
} from '../packet.ts'
import {
  decodePesHeader,
  encodePesHeader,
  FIXED_HEADER_BYTES,
  MAX_PES_LENGTH,
  PES_PREFIX_BYTES,
  pesBytes,
  writeTimestamp,
} from '../pes.ts'
import type { Times } from '../timestamps.ts'

const HEADER_BYTES = 4
const MAX_PAYLOAD_BYTES = PACKET_BYTES - HEADER_BYTES

/**
 * @param first  first original transport packet: all new packets get its PID and priority, and the first new packet
 *   also its adaptation field, with any PCR
 * @param pes  the whole PES packet, or the start of it
 * @returns whole transport packets with arbitrary continuity counters
 */
export function packetizePes(first: Buffer, pes: Buffer): Buffer {
  const fields = adaptationFields(first)
  const fieldBytes = fields.length === 0 ? 0 : 1 + fields.length
  const count = Math.ceil((fieldBytes + pes.length) / MAX_PAYLOAD_BYTES)
  const packets = Buffer.alloc(count * PACKET_BYTES, 0xff)
  let taken = 0
  for (let at = 0; at < packets.length; at += PACKET_BYTES) {
    const room = MAX_PAYLOAD_BYTES - (at === 0 ? fieldBytes : 0)
    const payloadBytes = Math.min(pes.length - taken, room)
    const packet = packets.subarray(at, at + PACKET_BYTES)
    first.copy(packet, 0, 0, HEADER_BYTES)
    if (at > 0) packet[1]! &= ~UNIT_START
    packet[3] = HAS_PAYLOAD
    if (payloadBytes < MAX_PAYLOAD_BYTES) {
      packet[3] |= HAS_ADAPTATION_FIELD
      packet[4] = MAX_PAYLOAD_BYTES - 1 - payloadBytes
      if (packet[4] > 0) packet[5] = 0
      if (at === 0) fields.copy(packet, HEADER_BYTES + 1)
    }
    pes.copy(packet, PACKET_BYTES - payloadBytes, taken, taken + payloadBytes)
    taken += payloadBytes
  }
  return packets
}

/**
 * Makes a PES packet that begins with a frame.
 *
 * @param streamId  stream_id of its header
 * @returns whole transport packets with arbitrary continuity counters
 */
export function encodePes(
  pid: number,
  streamId: number,
  { ptsTicks, dtsTicks }: Times,
  payload: Buffer,
): Buffer {
  const first = Buffer.alloc(PACKET_BYTES)
  first[0] = SYNC_BYTE
  first.writeUInt16BE((UNIT_START << 8) | pid, 1)
  first[3] = HAS_PAYLOAD
  const header = encodePesHeader(streamId, ptsTicks, payload.length, dtsTicks)
  return packetizePes(first, Buffer.concat([header, payload]))
}

/**
 * Inserts bytes into a PES packet. Transport packets up to the insertion are replaced by new ones; later transport
 * packets remain views into `chunks`.
 *
 * @param chunks  the PES packet as whole transport packets
 * @param at  offset of the insertion in the PES packet
 */
export function insertIntoPes(chunks: readonly Buffer[], at: number, inserted: Buffer): Buffer[] {
  return replaceStart(chunks, at, (start) => insertInto(start, at, inserted))
}

/** Largest PES_header_data_length: of the optional fields, and the stuffing behind them. */
const MAX_HEADER_DATA_BYTES = 255

/**
 * Writes a PTS into the header of a PES packet that has none, unless its stuffing leaves no room. Transport packets up to it are replaced by new ones; later
 * transport packets remain views into `chunks`.
 *
 * @param ptsTicks  90 kHz, unwrapped
 */
export function insertPts(chunks: readonly Buffer[], ptsTicks: number): Buffer[] {
  const pts = Buffer.from([0x20, 0, 0, 0, 0])
  writeTimestamp(pts, 0, ptsTicks)
  return replaceStart(chunks, FIXED_HEADER_BYTES, (start) => {
    if (start[8]! + pts.length > MAX_HEADER_DATA_BYTES) return start
    const pes = insertInto(start, FIXED_HEADER_BYTES, pts)
    pes[7] = (pes[7]! & 0x3f) | 0x80 // PTS_DTS_flags
    pes[8]! += pts.length // PES_header_data_length
    return pes
  })
}

function insertInto(pes: Buffer, at: number, inserted: Buffer): Buffer {
  const grown = Buffer.concat([pes.subarray(0, at), inserted, pes.subarray(at)])
  growPes(grown, inserted.length)
  return grown
}

/** @param edit  gets the first bytes of the PES packet, at least as many as given, and returns those in their place */
function replaceStart(
  chunks: readonly Buffer[],
  sizeBytes: number,
  edit: (start: Buffer) => Buffer,
): Buffer[] {
  const payloads: Buffer[] = []
  let lengthBytes = 0
  for (const [index, chunk] of chunks.entries()) {
    for (let offset = 0; offset < chunk.length; offset += PACKET_BYTES) {
      const end = offset + PACKET_BYTES
      const payload = chunk.subarray(payloadOffset(chunk, offset) ?? end, end)
      payloads.push(payload)
      lengthBytes += payload.length
      if (lengthBytes < sizeBytes) continue
      const rest = chunk.subarray(end)
      const made = packetizePes(chunks[0]!, edit(Buffer.concat(payloads)))
      return [made, ...(rest.length > 0 ? [rest] : []), ...chunks.slice(index + 1)]
    }
  }
  return [...chunks]
}

/**
 * @param times  those that its header is to have, as far as it has any; default: as they are
 * @returns transport packets of a PES packet with the same header and another payload
 */
export function replacePesPayload(
  chunks: readonly Buffer[],
  headerBytes: number,
  payload: Buffer,
  times?: Times,
): Buffer {
  const before = pesBytes(chunks)
  const pes = Buffer.concat([before.subarray(0, headerBytes), payload])
  growPes(pes, pes.length - before.length)
  if (times !== undefined) writeTimes(pes, times)
  return packetizePes(chunks[0]!, pes)
}

/** Offsets of PTS and DTS in a PES packet that has them (ISO/IEC 13818-1 2.4.3.6). */
const PTS_AT = FIXED_HEADER_BYTES
const DTS_AT = PTS_AT + 5

/** Writes the times of a PES packet in place, as far as its header has any. */
export function writeTimes(pes: Buffer, { ptsTicks, dtsTicks }: Times): void {
  const sent = decodePesHeader(pes)
  if (sent?.ptsTicks !== undefined) writeTimestamp(pes, PTS_AT, ptsTicks)
  if (sent?.dtsTicks !== undefined) writeTimestamp(pes, DTS_AT, dtsTicks)
}

/**
 * Adds to PES_packet_length in place. An unbounded PES packet stays unbounded; a PES packet whose length exceeds the
 * field becomes unbounded.
 *
 * @param addedBytes  negative for a PES packet that became shorter
 */
function growPes(pes: Buffer, addedBytes: number): void {
  const at = PES_PREFIX_BYTES - 2
  const length = pes.readUInt16BE(at)
  if (length === 0) return
  const grown = length + addedBytes
  pes.writeUInt16BE(grown > MAX_PES_LENGTH ? 0 : grown, at)
}
