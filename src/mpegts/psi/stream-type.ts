/**
 * Which codec a stream type stands for (ISO/IEC 13818-1 Table 2-34, ATSC A/53 Part 3, ETSI TS 101 154).
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
import { labelTrack } from './track-label.ts'
import type { Codec, Track } from '../track.ts'

export const PRIVATE_PES = 0x06

const VIDEO: Readonly<Record<number, Codec>> = { 0x1b: 'h264', 0x24: 'h265' }

const AUDIO: Readonly<Record<number, Codec>> = {
  // MPEG-1 and MPEG-2 audio of any layer: 'mp2' until the bitstream says 'mp3'.
  0x03: 'mp2',
  0x04: 'mp2',
  0x0f: 'aac',
  0x11: 'aac-latm',
  0x81: 'ac3',
  0x87: 'eac3',
}

/** Private data by its registration. */
const REGISTERED_AUDIO: Readonly<Record<string, Codec>> = {
  'AC-3': 'ac3',
  EAC3: 'eac3',
  Opus: 'opus',
}

/** Private data that has a stream type and a registration of its own in ATSC, the only form that players of HLS know. */
const ATSC_FORMS: Readonly<Partial<Record<Codec, { streamType: number; format: string }>>> = {
  ac3: { streamType: 0x81, format: 'AC-3' },
  eac3: { streamType: 0x87, format: 'EAC3' },
}

/** Carried in sections, not in PES packets: private sections, DSM-CC, metadata, SCTE-35. */
const SECTION_TYPES = new Set([0x05, 0x0a, 0x0b, 0x0c, 0x0d, 0x14, 0x16, 0x86])

/**
 * What the program map says of a track; its bitstream has not been seen. AC-3 and E-AC-3 of DVB are described as ATSC
 * has them: the PES packets are the same.
 */
export function describeTrack({ pid, streamType, descriptors }: StreamEntry): Track {
  const isPrivate = streamType === PRIVATE_PES
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

export function isCarriedInPes(streamType: number): boolean {
  return !SECTION_TYPES.has(streamType)
}

/** DVB carries AC-3 as private data and tells it by a descriptor of its own; others register the format. */
function privateAudio(descriptors: Buffer): Codec | undefined {
  if (findDescriptor(descriptors, DescriptorTag.AC3) !== undefined) return 'ac3'
  if (findDescriptor(descriptors, DescriptorTag.ENHANCED_AC3) !== undefined) return 'eac3'
  return REGISTERED_AUDIO[findRegistration(descriptors) ?? '']
}

function register(format: string, descriptors: Buffer): Buffer {
  if (findRegistration(descriptors) === format) return descriptors
  return Buffer.concat([encodeRegistration(format), descriptors])
}
