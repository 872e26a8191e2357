/**
 * Tracks as program maps describe them: the codec, or the name of another format, of each stream type and of private data
 * with a registration or a DVB descriptor (ISO/IEC 13818-1 Table 2-34, ATSC A/53 Part 3, ETSI TS 101 154).
 *
 * @module
 */
import {
  DescriptorTag,
  encodeRegistration,
  findDescriptor,
  findLanguage,
  findOpusConfigCode,
  findRegistration,
} from './descriptors.ts'
import type { StreamEntry } from './pmt.ts'
import { StreamType } from './stream-type.ts'
import type { Codec, Track, TrackParameters } from '../track.ts'

const VIDEO: Readonly<Record<number, Codec>> = {
  [StreamType.H264]: 'h264',
  [StreamType.H265]: 'h265',
}

const AUDIO: Readonly<Record<number, Codec>> = {
  // Both stream types stand for all three layers: 'mp2' until a frame header has layer III.
  [StreamType.MPEG1_AUDIO]: 'mp2',
  [StreamType.MPEG2_AUDIO]: 'mp2',
  [StreamType.AAC_ADTS]: 'aac',
  [StreamType.AAC_LATM]: 'aac-latm',
  [StreamType.AC3]: 'ac3',
  [StreamType.EAC3]: 'eac3',
}

/** Codecs of private data by format_identifier of the registration descriptor. */
const REGISTERED_AUDIO: Readonly<Record<string, Codec>> = {
  'AC-3': 'ac3',
  EAC3: 'eac3',
  Opus: 'opus',
}

/** ATSC signaling of codecs that DVB carries as private data; HLS players know only the ATSC form. */
const ATSC_FORMS: Readonly<Partial<Record<Codec, { streamType: number; format: string }>>> = {
  ac3: { streamType: StreamType.AC3, format: 'AC-3' },
  eac3: { streamType: StreamType.EAC3, format: 'EAC3' },
}

/** Names of other formats by stream type, for warnings. */
const NAME_BY_STREAM_TYPE: Readonly<Record<number, string>> = {
  [StreamType.MPEG1_VIDEO]: 'MPEG-1 video',
  [StreamType.MPEG2_VIDEO]: 'MPEG-2 video',
  [StreamType.MPEG4_VIDEO]: 'MPEG-4 Part 2 video',
  [StreamType.JPEG_2000]: 'JPEG 2000 video',
  [StreamType.JPEG_XS]: 'JPEG XS video',
  [StreamType.H266]: 'H.266 video',
  [StreamType.SCTE_35]: 'SCTE-35',
  [StreamType.VC1]: 'VC-1 video',
}

/** Names of other formats by the format in a registration descriptor (2.6.8) or a metadata descriptor (2.6.60). */
const NAME_BY_FORMAT: Readonly<Record<string, string>> = {
  AV01: 'AV1 video',
  BSSD: 'SMPTE 302M audio',
  CUEI: 'SCTE-35',
  DTS1: 'DTS audio',
  DTS2: 'DTS audio',
  DTS3: 'DTS audio',
  'ID3 ': 'ID3 metadata',
  KLVA: 'KLV metadata',
}

/** Names of other formats by DVB descriptor of private data (ETSI EN 300 468 Table 12). */
const NAME_BY_DESCRIPTOR = [
  [DescriptorTag.VBI_TELETEXT, 'teletext'],
  [DescriptorTag.TELETEXT, 'teletext'],
  [DescriptorTag.SUBTITLING, 'DVB subtitles'],
  [DescriptorTag.DTS, 'DTS audio'],
] as const

/**
 * Describes a track by its entry in the program map alone. AC-3 and E-AC-3 in DVB signaling are described in ATSC
 * signaling: the PES packets are the same.
 */
export function describeTrack({ pid, streamType, descriptors }: StreamEntry): Track {
  const isPrivate = streamType === StreamType.PRIVATE_PES
  const video = VIDEO[streamType]
  const audio = isPrivate ? privateAudio(descriptors) : AUDIO[streamType]
  const codec = video ?? audio ?? 'unknown'
  const kind = video !== undefined ? 'video' : audio !== undefined ? 'audio' : 'data'
  const language = findLanguage(descriptors)
  const label = kind === 'data' ? labelTrack(streamType, descriptors) : undefined
  const atsc = isPrivate ? ATSC_FORMS[codec] : undefined
  return {
    pid,
    streamType: atsc?.streamType ?? streamType,
    kind,
    codec,
    descriptors: atsc === undefined ? descriptors : register(atsc.format, descriptors),
    ...(language === undefined ? {} : { language }),
    ...(label === undefined ? {} : { label }),
    ...(codec === 'opus' && { parameters: opusParameters(descriptors) }),
  }
}

/** Number of channels where no descriptor tells it: a decoder of two decodes one as well. */
const USUAL_OPUS_CHANNELS = 2

/** Greatest `channel_config_code` that is the number of channels, in the order of Vorbis. */
const MAX_OPUS_CHANNELS = 8

/** Opus decodes to 48 kHz whatever the source (RFC 6716 2). `channels` is absent in any other layout. */
function opusParameters(descriptors: Buffer): TrackParameters {
  const code = findOpusConfigCode(descriptors) ?? USUAL_OPUS_CHANNELS
  const channels = code >= 1 && code <= MAX_OPUS_CHANNELS ? { channels: code } : {}
  return { codecString: 'opus', sampleRate: 48_000, ...channels }
}

/** DVB marks AC-3 in private data with a descriptor (ETSI EN 300 468 Annex D); other systems register the format. */
function privateAudio(descriptors: Buffer): Codec | undefined {
  if (findDescriptor(descriptors, DescriptorTag.AC3) !== undefined) return 'ac3'
  if (findDescriptor(descriptors, DescriptorTag.ENHANCED_AC3) !== undefined) return 'eac3'
  return REGISTERED_AUDIO[findRegistration(descriptors) ?? '']
}

function register(format: string, descriptors: Buffer): Buffer {
  if (findRegistration(descriptors) === format) return descriptors
  return Buffer.concat([encodeRegistration(format), descriptors])
}

/** @returns undefined when neither the stream type nor a descriptor names the format */
function labelTrack(streamType: number, descriptors: Buffer): string | undefined {
  const registered = NAME_BY_FORMAT[findRegistration(descriptors) ?? '']
  const metadata = findDescriptor(descriptors, DescriptorTag.METADATA)
  const named = Object.keys(NAME_BY_FORMAT).find((format) => metadata?.includes(format))
  const described = NAME_BY_DESCRIPTOR.find(
    ([tag]) => findDescriptor(descriptors, tag) !== undefined,
  )
  return (
    NAME_BY_STREAM_TYPE[streamType] ??
    registered ??
    (named && NAME_BY_FORMAT[named]) ??
    described?.[1]
  )
}
