/**
 * Sections, the pieces that tables such as PAT and PMT are sent in (ISO/IEC 13818-1 2.4.4).
 *
 *   | table id 8 | syntax 1 | 0 1 | reserved 2 | section length 12 |
 *   | table id extension 16 | reserved 2 | version 5 | current 1 | section number 8 | last section number 8 |
 *   | body … | CRC 32 |
 *
 * A packet with the unit start indicator begins with a pointer field: how many bytes of it still belong to the section
 * before. Several sections may share a packet, and one may span several; behind the last stands FF.
 *
 * @module
 */

/** Of sections, header included: those of PAT and PMT (2.4.4.5, 2.4.4.9), and private ones (2.4.4.11). */
const MAX_PSI_BYTES = 1024
export const MAX_PRIVATE_BYTES = 4096

/** Up to and including `section_length`. */
const LENGTH_HEADER_BYTES = 3
const HEADER_BYTES = 8
const CRC_BYTES = 4

/** Where a table id would stand, it says that the rest of the packet is stuffing. */
const STUFFING = 0xff

/** `push` the payload of each packet of a PID, `reset` where packets were lost. */
export class SectionAssembler {
  readonly #section: Buffer
  /** Bytes gathered; undefined while no section is open. */
  #length: number | undefined

  /** @param maxBytes  a longer section is dropped */
  constructor(maxBytes = MAX_PSI_BYTES) {
    this.#section = Buffer.allocUnsafe(maxBytes)
  }

  /** @returns copies of the sections completed, their checksums not verified */
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

  /** @returns how many of `bytes` belonged to the open section; all of them where it cannot be followed */
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

  /** Bytes of the open section, or of its length header as long as that is not complete. */
  #sectionBytes(length: number): number {
    if (length < LENGTH_HEADER_BYTES) return LENGTH_HEADER_BYTES
    return LENGTH_HEADER_BYTES + (this.#section.readUInt16BE(1) & 0x0fff)
  }
}

/** Fields that PAT and PMT share. */
export interface SectionFields {
  readonly tableId: number
  /** `transport_stream_id` of a PAT, `program_number` of a PMT. */
  readonly extension: number
  readonly version: number
  /** False: announced for later, not valid yet. */
  readonly current: boolean
  readonly sectionNumber: number
  readonly lastSectionNumber: number
  /** View: what stands between header and checksum. */
  readonly body: Buffer
}

/** @returns undefined for sections in the short syntax, or too short for the long one */
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
