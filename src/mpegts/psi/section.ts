/**
 * Sections, which carry tables such as PAT and PMT (ISO/IEC 13818-1 2.4.4).
 *
 *   | table id 8 | syntax 1 | 0 1 | reserved 2 | section length 12 |
 *   | table id extension 16 | reserved 2 | version 5 | current 1 | section number 8 | last section number 8 |
 *   | body … | CRC 32 |
 *
 * The payload of a packet with `payload_unit_start_indicator` begins with a pointer_field: the number of bytes that
 * belong to the previous section. A packet may hold several sections, and a section may span packets; FF bytes fill the
 * rest of a packet.
 *
 * @module
 */

/** Maximum sizes: sections of PAT and PMT (2.4.4.5, 2.4.4.9), and private sections (2.4.4.11). */
const MAX_PSI_BYTES = 1024
export const MAX_PRIVATE_BYTES = 4096

/** Size of the header up to and including `section_length`. */
const LENGTH_HEADER_BYTES = 3
const HEADER_BYTES = 8
const CRC_BYTES = 4

/** Value in place of a table_id when stuffing fills the rest of the packet. */
const STUFFING = 0xff

/** Inputs: `push` the payload of every packet of one PID, `reset` after a loss. */
export class SectionAssembler {
  readonly #section: Buffer
  /** Number of bytes in the open section; undefined while none is open. */
  #length: number | undefined

  /** @param maxBytes  maximum size of a section, by default that of PAT and PMT; longer sections are dropped */
  constructor(maxBytes = MAX_PSI_BYTES) {
    this.#section = Buffer.allocUnsafe(maxBytes)
  }

  /** @returns copies of the completed sections, CRC_32 not verified */
  push(payload: Buffer, unitStart: boolean): Buffer[] {
    const sections: Buffer[] = []
    if (!unitStart) {
      this.#append(payload, sections)
      return sections
    }
    const begin = 1 + (payload[0] ?? 0)
    this.#append(payload.subarray(1, begin), sections)
    for (let at = begin; at < payload.length && payload[at] !== STUFFING;) {
      this.#length = 0
      at += this.#append(payload.subarray(at), sections)
    }
    return sections
  }

  reset(): void {
    this.#length = undefined
  }

  /** @returns number of bytes that belong to the open section; the size of `bytes` when the section is too long */
  #append(bytes: Buffer, sections: Buffer[]): number {
    let taken = 0
    while (this.#length !== undefined && taken < bytes.length) {
      const wanted = this.#sectionBytes(this.#length)
      if (wanted > this.#section.length) {
        this.#length = undefined
        return bytes.length
      }
      const count = Math.min(wanted - this.#length, bytes.length - taken)
      bytes.copy(this.#section, this.#length, taken, taken + count)
      taken += count
      this.#length += count
      if (
        this.#length >= LENGTH_HEADER_BYTES &&
        this.#length === this.#sectionBytes(this.#length)
      ) {
        sections.push(Buffer.from(this.#section.subarray(0, this.#length)))
        this.#length = undefined
      }
    }
    return taken
  }

  /** Size of the open section; until section_length has arrived, size of the header including that field. */
  #sectionBytes(length: number): number {
    if (length < LENGTH_HEADER_BYTES) return LENGTH_HEADER_BYTES
    return LENGTH_HEADER_BYTES + (this.#section.readUInt16BE(1) & 0x0fff)
  }
}

/** Header fields of a section in the long syntax, and its body. */
export interface SectionFields {
  readonly tableId: number
  /** `transport_stream_id` of a PAT, `program_number` of a PMT. */
  readonly extension: number
  readonly version: number
  /** `current_next_indicator`; false for a table that is not valid yet. */
  readonly current: boolean
  readonly sectionNumber: number
  readonly lastSectionNumber: number
  /** View of the bytes between header and CRC_32. */
  readonly body: Buffer
}

/** @returns undefined for a section that is truncated or in the short syntax */
export function decodeSection(section: Buffer): SectionFields | undefined {
  const longSyntax = ((section[1] ?? 0) & 0x80) !== 0
  if (!longSyntax || section.length < HEADER_BYTES + CRC_BYTES) return undefined
  return {
    tableId: section[0]!,
    extension: section.readUInt16BE(3),
    version: (section[5]! >> 1) & 0x1f,
    current: (section[5]! & 1) !== 0,
    sectionNumber: section[6]!,
    lastSectionNumber: section[7]!,
    body: section.subarray(HEADER_BYTES, section.length - CRC_BYTES),
  }
}
