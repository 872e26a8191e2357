/**
 * Names of track formats other than the audio and video codecs of `Codec`, for warnings.
 *
 * @module
 */
import { DescriptorTag, findDescriptor, findRegistration } from './descriptors.ts'
import { StreamType } from './stream-type.ts'

const BY_STREAM_TYPE: Readonly<Record<number, string>> = {
  [StreamType.MPEG1_VIDEO]: 'MPEG-1 video',
  [StreamType.MPEG2_VIDEO]: 'MPEG-2 video',
  [StreamType.MPEG4_VIDEO]: 'MPEG-4 Part 2 video',
  [StreamType.JPEG_2000]: 'JPEG 2000 video',
  [StreamType.JPEG_XS]: 'JPEG XS video',
  [StreamType.H266]: 'H.266 video',
  [StreamType.SCTE_35]: 'SCTE-35',
  [StreamType.VC1]: 'VC-1 video',
}

/** Names by the format in a registration descriptor (2.6.8) or a metadata descriptor (2.6.60). */
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

/** Names by DVB descriptor of private data (ETSI EN 300 468 Table 12). */
const BY_DESCRIPTOR = [
  [DescriptorTag.VBI_TELETEXT, 'teletext'],
  [DescriptorTag.TELETEXT, 'teletext'],
  [DescriptorTag.SUBTITLING, 'DVB subtitles'],
  [DescriptorTag.DTS, 'DTS audio'],
] as const

/** @returns undefined when neither the stream type nor a descriptor names the format */
export function labelTrack(streamType: number, descriptors: Buffer): string | undefined {
  const registered = BY_FORMAT[findRegistration(descriptors) ?? '']
  const metadata = findDescriptor(descriptors, DescriptorTag.METADATA)
  const named = Object.keys(BY_FORMAT).find((format) => metadata?.includes(format))
  const described = BY_DESCRIPTOR.find(([tag]) => findDescriptor(descriptors, tag) !== undefined)
  return BY_STREAM_TYPE[streamType] ?? registered ?? (named && BY_FORMAT[named]) ?? described?.[1]
}
