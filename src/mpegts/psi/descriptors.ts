/**
 * Descriptors of elementary streams (ISO/IEC 13818-1 2.6).
 *
 *   | tag 8 | length 8 | data … | repeated
 *
 * @module
 */

export const DescriptorTag = {
  REGISTRATION: 0x05,
  ISO_639_LANGUAGE: 0x0a,
  METADATA_POINTER: 0x25,
  METADATA: 0x26,
  // ETSI EN 300 468 Table 12, Annexes D and G.
  VBI_TELETEXT: 0x46,
  TELETEXT: 0x56,
  SUBTITLING: 0x59,
  AC3: 0x6a,
  ENHANCED_AC3: 0x7a,
  DTS: 0x7b,
  EXTENSION: 0x7f,
} as const

interface Descriptor {
  readonly tag: number
  /** The whole descriptor, tag and length included. */
  readonly bytes: Buffer
  readonly data: Buffer
}

/** @returns views into `descriptors`, up to the first truncated descriptor */
export function listDescriptors(descriptors: Buffer): Descriptor[] {
  const list: Descriptor[] = []
  for (let at = 0; at + 2 <= descriptors.length;) {
    const end = at + 2 + descriptors[at + 1]!
    if (end > descriptors.length) break
    const bytes = descriptors.subarray(at, end)
    list.push({ tag: bytes[0]!, bytes, data: bytes.subarray(2) })
    at = end
  }
  return list
}

/** @returns view of the data of the first descriptor with this tag; undefined when there is none */
export function findDescriptor(descriptors: Buffer, tag: number): Buffer | undefined {
  return listDescriptors(descriptors).find((descriptor) => descriptor.tag === tag)?.data
}

/** @returns format_identifier of the registration descriptor (2.6.8), for example `AC-3` */
export function findRegistration(descriptors: Buffer): string | undefined {
  return findDescriptor(descriptors, DescriptorTag.REGISTRATION)?.toString('latin1', 0, 4)
}

/** `descriptor_tag_extension` of the Opus descriptor (ETSI TS 103 491 4.3). */
const OPUS_EXTENSION = 0x80

/** @returns `channel_config_code` of the Opus descriptor; undefined without one */
export function findOpusConfigCode(descriptors: Buffer): number | undefined {
  return listDescriptors(descriptors).find(
    ({ tag, data }) => tag === DescriptorTag.EXTENSION && data[0] === OPUS_EXTENSION,
  )?.data[1]
}

/** @returns first code of the ISO 639 language descriptor (2.6.18) in lower case, for example `eng` */
export function findLanguage(descriptors: Buffer): string | undefined {
  const code = findDescriptor(descriptors, DescriptorTag.ISO_639_LANGUAGE)?.toString('latin1', 0, 3)
  return code !== undefined && /^[a-z]{3}$/i.test(code) ? code.toLowerCase() : undefined
}

/** @param format  format_identifier: four characters */
export function encodeRegistration(format: string): Buffer {
  return Buffer.concat([
    Buffer.from([DescriptorTag.REGISTRATION, format.length]),
    Buffer.from(format, 'latin1'),
  ])
}
