/**
 * Tracks as program maps describe them: the codec of each stream type and of private data with a registration or a
 * DVB descriptor (ISO/IEC 13818-1 Table 2-34, ATSC A/53 Part 3, ETSI TS 101 154).
 *
 * @module
 */
import {
  DescriptorTag,
  encodeRegistration,
  findDescriptor,
  findLanguage,
  findRegistration,
} from './descriptors.ts'
import type { StreamEntry } from './pmt.ts'
import { StreamType } from './stream-type.ts'
import { labelTrack } from './track-label.ts'
import type { Codec, Track } from '../track.ts'

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
  }
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
