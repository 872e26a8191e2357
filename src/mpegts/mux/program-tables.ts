/**
 * PAT and PMT of the outgoing stream. Players accept far less than ISO/IEC 13818-1 2.4.4 permits, so there is exactly
 * one program and one packet for each table, and the PMT lists only carried tracks, with the descriptors that
 * players use.
 *
 * @module
 */
import { crc32Mpeg2 } from '../../binary/crc32.ts'
import { freePid, HAS_PAYLOAD, PACKET_BYTES, PAT_PID, SYNC_BYTE, UNIT_START } from '../packet.ts'
import { DescriptorTag, listDescriptors } from '../psi/descriptors.ts'
import { PAT_TABLE_ID } from '../psi/pat.ts'
import { PMT_TABLE_ID } from '../psi/pmt.ts'
import type { Program, Track } from '../track.ts'

export const PSI_BYTES = 2 * PACKET_BYTES

const USUAL_PMT_PID = 0x1000
const TRANSPORT_STREAM_ID = 1

/** Tags of descriptors that players use (2.6.8, 2.6.18, 2.6.60). */
const KEPT_DESCRIPTORS: ReadonlySet<number> = new Set([
  DescriptorTag.REGISTRATION,
  DescriptorTag.ISO_639_LANGUAGE,
  DescriptorTag.METADATA,
])

/**
 * Maximum size of program descriptors and track entries in a PMT of one packet. Packet header and pointer_field take 5
 * bytes, the other fields of the section 16.
 */
const MAX_LOOP_BYTES = PACKET_BYTES - 4 - 1 - 16
const TRACK_ENTRY_BYTES = 5

/** PAT and PMT of one outgoing stream. A change of the content increments version_number. */
export class ProgramTables {
  #bytes: Buffer = Buffer.alloc(0)
  #version = 0

  /** PAT packet and PMT packet, with continuity counters still to be set. */
  get bytes(): Buffer {
    return this.#bytes
  }

  update(program: Program): void {
    if (encodePsi(program, this.#version).equals(this.#bytes)) return
    this.#version = (this.#version + 1) & 31
    this.#bytes = encodePsi(program, this.#version)
  }
}

/**
 * @param version  version_number, 0-31
 * @returns a PAT packet and a PMT packet, with continuity counters still to be set
 */
export function encodePsi(program: Program, version: number): Buffer {
  const { programNumber, pcrPid, tracks } = program
  const pmtPid = freePid(USUAL_PMT_PID, [pcrPid, ...tracks.map(({ pid }) => pid)])
  return Buffer.concat([
    packetize(PAT_PID, encodePat(programNumber, pmtPid, version)),
    packetize(pmtPid, encodePmt(program, version)),
  ])
}

/**
 *  | program_number (16) | 111 | program_map_PID (13) |
 */
function encodePat(programNumber: number, pmtPid: number, version: number): Buffer {
  const body = Buffer.alloc(4)
  body.writeUInt16BE(programNumber, 0)
  body.writeUInt16BE(0xe000 | pmtPid, 2)
  return encodeSection(PAT_TABLE_ID, TRANSPORT_STREAM_ID, version, body)
}

/**
 *  | 111 | PCR_PID (13) | 1111 | program_info_length (12) | descriptors |
 *  { stream_type (8) | 111 | elementary_PID (13) | 1111 | ES_info_length (12) | descriptors } for each track
 */
function encodePmt({ programNumber, pcrPid, tracks }: Program, version: number): Buffer {
  let spareBytes = MAX_LOOP_BYTES - tracks.length * TRACK_ENTRY_BYTES
  const pointers = tracks.flatMap((track) => metadataPointers(track, programNumber))
  const pointer = pointers.find(({ length }) => length <= spareBytes) ?? Buffer.alloc(0)
  spareBytes -= pointer.length
  const head = Buffer.alloc(4)
  head.writeUInt16BE(0xe000 | pcrPid, 0)
  head.writeUInt16BE(0xf000 | pointer.length, 2)
  const loop = tracks.flatMap((track) => {
    const kept = keptDescriptors(track)
    const descriptors = kept.length <= spareBytes ? kept : Buffer.alloc(0)
    spareBytes -= descriptors.length
    const entry = Buffer.alloc(TRACK_ENTRY_BYTES)
    entry.writeUInt8(track.streamType, 0)
    entry.writeUInt16BE(0xe000 | track.pid, 1)
    entry.writeUInt16BE(0xf000 | descriptors.length, 3)
    return [entry, descriptors]
  })
  return encodeSection(
    PMT_TABLE_ID,
    programNumber,
    version,
    Buffer.concat([head, pointer, ...loop]),
  )
}

/**
 *  | table_id (8) | 1011 | section_length (12) | table_id_extension (16) |
 *  | 11 | version_number (5) | current_next 1 | section_number (8) | last_section_number (8) | body | CRC_32 |
 */
function encodeSection(tableId: number, extension: number, version: number, body: Buffer): Buffer {
  const section = Buffer.alloc(8 + body.length + 4)
  section.writeUInt8(tableId, 0)
  section.writeUInt16BE(0xb000 | (section.length - 3), 1)
  section.writeUInt16BE(extension, 3)
  section.writeUInt8(0xc1 | (version << 1), 5)
  body.copy(section, 8)
  section.writeUInt32BE(crc32Mpeg2(section.subarray(0, -4)), section.length - 4)
  return section
}

/** @returns one packet: header with payload_unit_start_indicator, pointer_field 0, the section, stuffing */
function packetize(pid: number, section: Buffer): Buffer {
  const packet = Buffer.alloc(PACKET_BYTES, 0xff)
  packet.writeUInt8(SYNC_BYTE, 0)
  packet.writeUInt16BE((UNIT_START << 8) | pid, 1)
  packet.writeUInt8(HAS_PAYLOAD, 3)
  packet.writeUInt8(0, 4)
  section.copy(packet, 5)
  return packet
}

function keptDescriptors({ descriptors }: Track): Buffer {
  const kept = listDescriptors(descriptors).filter(({ tag }) => KEPT_DESCRIPTORS.has(tag))
  return Buffer.concat(kept.map(({ bytes }) => bytes))
}

/**
 * Creates the metadata_pointer_descriptors that announce the metadata of a track to Apple's players (Timed Metadata for
 * HTTP Live Streaming, section 2). Each repeats the start of the track's metadata_descriptor,
 *
 *  | application_format (16) | identifier (32) if FFFF | format (8) | identifier (32) if FF | service_id (8) |
 *
 * followed by (ISO/IEC 13818-1 2.6.58)
 *
 *  | locator_record_flag 0 | MPEG_carriage_flags 00 | 11111 | program_number (16) |
 */
function metadataPointers({ descriptors }: Track, programNumber: number): Buffer[] {
  return listDescriptors(descriptors).flatMap(({ tag, data }) => {
    const formatAt = data.length > 1 && data.readUInt16BE(0) === 0xffff ? 6 : 2
    const serviceAt = formatAt + (data[formatAt] === 0xff ? 5 : 1)
    if (tag !== DescriptorTag.METADATA || serviceAt >= data.length) return []
    const place = Buffer.from([0x1f, programNumber >> 8, programNumber & 0xff])
    const body = Buffer.concat([data.subarray(0, serviceAt + 1), place])
    return Buffer.concat([Buffer.from([DescriptorTag.METADATA_POINTER, body.length]), body])
  })
}
