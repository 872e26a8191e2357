/**
 * Descriptors of a track, as they stood in the source's PMT (ISO/IEC 13818-1 2.6).
 *
 *   | descriptor_tag (8) | descriptor_length (8) | data … | repeated
 *
 * @module
 */

export interface Descriptor {
  readonly tag: number
  /** With tag and length. */
  readonly bytes: Buffer
  readonly data: Buffer
}

/** @returns views; one that is not all there ends the list */
export function listDescriptors(bytes: Buffer): Descriptor[] {
  const list: Descriptor[] = []
  for (let offset = 0; offset + 2 <= bytes.length;) {
    const end = offset + 2 + bytes[offset + 1]!
    if (end > bytes.length) break
    const descriptor = bytes.subarray(offset, end)
    list.push({ tag: bytes[offset]!, bytes: descriptor, data: descriptor.subarray(2) })
    offset = end
  }
  return list
}
