/**
 * What to call a track whose codec has no part in HLS, so that a warning can name it.
 *
 * @module
 */
import { DescriptorTag, findDescriptor, findRegistration } from './descriptors.ts'

/** Stream types of one meaning (ISO/IEC 13818-1 Table 2-34; SCTE 35; SMPTE RP 227). */
const BY_STREAM_TYPE: Readonly<Record<number, string>> = {
  0x01: 'MPEG-1 video',
  0x02: 'MPEG-2 video',
  0x10: 'MPEG-4 Part 2 video',
  0x21: 'JPEG 2000 video',
  0x32: 'JPEG XS video',
  0x33: 'H.266 video',
  0x86: 'SCTE-35',
  0xea: 'VC-1 video',
}

/** Formats of private data, by what they register (2.6.8) or name in a metadata descriptor (2.6.60). */
const BY_FORMAT: Readonly<Record<string, string>> = {
  AV01: 'AV1 video',
  BSSD: 'SMPTE 302M audio',
  CUEI: 'SCTE-35',
  DTS1: 'DTS audio',
  DTS2: 'DTS audio',
  DTS3: 'DTS audio',
  'ID3 ': 'ID3 metadata',
  KLVA: 'KLV metadata',
}

/** Formats of private data, by the descriptor that DVB gives them (ETSI EN 300 468 Table 12). */
const BY_DESCRIPTOR = [
  [DescriptorTag.VBI_TELETEXT, 'teletext'],
  [DescriptorTag.TELETEXT, 'teletext'],
  [DescriptorTag.SUBTITLING, 'DVB subtitles'],
  [DescriptorTag.DTS, 'DTS audio'],
] as const

/** @returns undefined where nothing tells; the stream type is all one has then */
export function labelTrack(streamType: number, descriptors: Buffer): string | undefined {
  const registered = BY_FORMAT[findRegistration(descriptors) ?? '']
  const metadata = findDescriptor(descriptors, DescriptorTag.METADATA)
  const named = Object.keys(BY_FORMAT).find((format) => metadata?.includes(format))
  const described = BY_DESCRIPTOR.find(([tag]) => findDescriptor(descriptors, tag) !== undefined)
  return BY_STREAM_TYPE[streamType] ?? registered ?? (named && BY_FORMAT[named]) ?? described?.[1]
}
