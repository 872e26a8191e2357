/**
 * Builds transport streams that no muxer at hand writes: the packets, sections and PES packets of a test case.
 *
 * @module
 */
import { crc32Mpeg2 } from '../../src/binary/crc32.ts'

const PACKET_BYTES = 188

export interface PacketFields {
  readonly pid: number
  /** Default 0. */
  readonly counter?: number
  /** Payload of at most 184 bytes, filled up by an adaptation field; undefined: adaptation field only. */
  readonly payload?: Uint8Array
  readonly unitStart?: boolean
  readonly transportError?: boolean
  readonly scrambling?: number
  readonly discontinuity?: boolean
  /** Further flags of the adaptation field, for example 0x10: a PCR. */
  readonly adaptationFlags?: number
  /** Bytes of the adaptation field behind its flags, for example a PCR. */
  readonly adaptation?: Uint8Array
}

/** @returns one transport packet */
export function tsPacket(fields: PacketFields): Buffer {
  const { pid, counter = 0, payload = new Uint8Array(0), adaptation = new Uint8Array(0) } = fields
  const bytes = Buffer.alloc(PACKET_BYTES, 0xff)
  bytes[0] = 0x47
  bytes[1] =
    (fields.transportError === true ? 0x80 : 0) |
    (fields.unitStart === true ? 0x40 : 0) |
    (pid >> 8)
  bytes[2] = pid & 0xff
  const hasField = payload.length < 184 || fields.discontinuity === true || adaptation.length > 0
  bytes[3] =
    ((fields.scrambling ?? 0) << 6) |
    (hasField ? 0x20 : 0) |
    (payload.length > 0 ? 0x10 : 0) |
    (counter & 0x0f)
  const payloadAt = PACKET_BYTES - payload.length
  if (hasField) {
    bytes[4] = payloadAt - 5
    const flags = (fields.discontinuity === true ? 0x80 : 0) | (fields.adaptationFlags ?? 0)
    if (payloadAt > 5) bytes[5] = flags
    bytes.set(adaptation, 6)
  }
  bytes.set(payload, payloadAt)
  return bytes
}

export interface SectionOptions {
  readonly version?: number
  readonly current?: boolean
  readonly sectionNumber?: number
  /** Default: the section's own number. */
  readonly lastSectionNumber?: number
}

/** @returns a section in the long syntax with its CRC_32 */
export function psiSection(
  tableId: number,
  extension: number,
  body: Uint8Array,
  options: SectionOptions = {},
): Buffer {
  const { version = 0, current = true, sectionNumber = 0 } = options
  const head = Buffer.alloc(8)
  head[0] = tableId
  head.writeUInt16BE(0xb000 | (5 + body.length + 4), 1)
  head.writeUInt16BE(extension, 3)
  head[5] = 0xc0 | (version << 1) | (current ? 1 : 0)
  head[6] = sectionNumber
  head[7] = options.lastSectionNumber ?? sectionNumber
  const section = Buffer.concat([head, body, Buffer.alloc(4)])
  section.writeUInt32BE(crc32Mpeg2(section.subarray(0, -4)), section.length - 4)
  return section
}

/** @param programs  [program number, PID of its map] */
export function patSection(
  programs: readonly (readonly [number, number])[],
  options?: SectionOptions,
): Buffer {
  const body = Buffer.alloc(programs.length * 4)
  for (const [index, [programNumber, pid]] of programs.entries()) {
    body.writeUInt16BE(programNumber, index * 4)
    body.writeUInt16BE(0xe000 | pid, index * 4 + 2)
  }
  return psiSection(0x00, 1, body, options)
}

export interface PmtStream {
  readonly pid: number
  readonly streamType: number
  readonly descriptors?: Uint8Array
}

export function pmtSection(
  programNumber: number,
  pcrPid: number,
  streams: readonly PmtStream[],
  options?: SectionOptions,
): Buffer {
  const entries = streams.map(({ pid, streamType, descriptors = new Uint8Array(0) }) => {
    const head = Buffer.alloc(5)
    head[0] = streamType
    head.writeUInt16BE(0xe000 | pid, 1)
    head.writeUInt16BE(0xf000 | descriptors.length, 3)
    return Buffer.concat([head, descriptors])
  })
  const head = Buffer.alloc(4)
  head.writeUInt16BE(0xe000 | pcrPid, 0)
  head.writeUInt16BE(0xf000, 2)
  return psiSection(0x02, programNumber, Buffer.concat([head, ...entries]), options)
}

export interface PesFields {
  readonly ptsTicks?: number | undefined
  readonly dtsTicks?: number | undefined
  readonly streamId?: number
  /** PES_packet_length: the true one (default), 0 for an unbounded PES packet, or any number. */
  readonly length?: 'true' | 'none' | number
}

export function pesPacket(payload: Uint8Array, fields: PesFields = {}): Buffer {
  const { ptsTicks, dtsTicks, streamId = 0xe0, length = 'true' } = fields
  const times = Buffer.concat([
    ...(ptsTicks === undefined ? [] : [timestamp(dtsTicks === undefined ? 2 : 3, ptsTicks)]),
    ...(dtsTicks === undefined ? [] : [timestamp(1, dtsTicks)]),
  ])
  const head = Buffer.from([0, 0, 1, streamId, 0, 0, 0x80, 0, times.length])
  head[7] = (ptsTicks === undefined ? 0 : 0x80) | (dtsTicks === undefined ? 0 : 0x40)
  const trueLength = 3 + times.length + payload.length
  head.writeUInt16BE(length === 'true' ? trueLength : length === 'none' ? 0 : length, 4)
  return Buffer.concat([head, times, payload])
}

function timestamp(prefix: number, ticks: number): Buffer {
  const wrapped = ((ticks % 2 ** 33) + 2 ** 33) % 2 ** 33
  const bytes = Buffer.alloc(5)
  bytes[0] = (prefix << 4) | (Math.floor(wrapped / 2 ** 30) << 1) | 1
  bytes.writeUInt16BE(((Math.floor(wrapped / 2 ** 15) & 0x7fff) << 1) | 1, 1)
  bytes.writeUInt16BE(((wrapped & 0x7fff) << 1) | 1, 3)
  return bytes
}

/** Builds a stream packet by packet, with continuity counters. */
export class TsBuilder {
  readonly packets: Buffer[] = []
  readonly #counters = new Map<number, number>()

  /** Adds a unit, a PES packet or a pointer_field with sections, in packets; `fields` apply to the first. */
  unit(pid: number, bytes: Uint8Array, fields: Partial<PacketFields> = {}): this {
    const { adaptation } = fields
    const firstBytes = adaptation === undefined ? 184 : 182 - adaptation.length
    this.packet({ pid, payload: bytes.subarray(0, firstBytes), unitStart: true, ...fields })
    for (let at = firstBytes; at < bytes.length; at += 184) {
      this.packet({ pid, payload: bytes.subarray(at, at + 184), unitStart: false })
    }
    return this
  }

  /** Adds one packet, by default with the next counter of its PID. */
  packet(fields: PacketFields): this {
    const { pid, payload = new Uint8Array(0) } = fields
    const previous = this.#counters.get(pid) ?? 15
    const counter = fields.counter ?? (payload.length > 0 ? previous + 1 : previous) & 0x0f
    this.#counters.set(pid, counter)
    this.packets.push(tsPacket({ ...fields, counter }))
    return this
  }

  /** Adds sections behind a pointer_field, stuffed to whole packets. */
  sections(pid: number, ...sections: Uint8Array[]): this {
    const bytes = Buffer.concat([Buffer.alloc(1), ...sections])
    const stuffing = Buffer.alloc((184 - (bytes.length % 184)) % 184, 0xff)
    return this.unit(pid, Buffer.concat([bytes, stuffing]))
  }

  /** Adds PAT and PMT of one program. */
  program(
    streams: readonly PmtStream[],
    { pcrPid = 0x100, mapPid = 0x1000, number = 1 } = {},
  ): this {
    return this.sections(0, patSection([[number, mapPid]])).sections(
      mapPid,
      pmtSection(number, pcrPid, streams),
    )
  }

  get bytes(): Buffer {
    return Buffer.concat(this.packets)
  }
}
