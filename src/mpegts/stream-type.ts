/**
 * Which codec a stream type stands for (ISO/IEC 13818-1 Table 2-34, ATSC A/53 Part 3, ETSI TS 101 154).
 *
 * @module
 */
import { DescriptorTag, findDescriptor, findLanguage, findRegistration } from './descriptors.ts'
import type { StreamEntry } from './pmt.ts'
import type { Codec, Track } from './track.ts'

const PRIVATE_PES = 0x06

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

/** Carried in sections, not in PES packets: private sections, DSM-CC, metadata, SCTE-35. */
const SECTION_TYPES = new Set([0x05, 0x0a, 0x0b, 0x0c, 0x0d, 0x14, 0x16, 0x86])

/** What the program map says of a track; its bitstream has not been seen. */
export function describeTrack({ pid, streamType, descriptors }: StreamEntry): Track {
  const video = VIDEO[streamType]
  const audio =
    AUDIO[streamType] ?? (streamType === PRIVATE_PES ? privateAudio(descriptors) : undefined)
  const kind = video !== undefined ? 'video' : audio !== undefined ? 'audio' : 'data'
  const language = findLanguage(descriptors)
  return {
    pid,
    streamType,
    kind,
    codec: video ?? audio ?? 'unknown',
    descriptors,
    ...(language === undefined ? {} : { language }),
  }
}

export function isCarriedInPes(streamType: number): boolean {
  return !SECTION_TYPES.has(streamType)
}

/** DVB carries AC-3 as private data and tells it by a descriptor of its own; others register the format. */
function privateAudio(descriptors: Buffer): Codec | undefined {
  if (findDescriptor(descriptors, DescriptorTag.AC3) !== undefined) return 'ac3'
  if (findDescriptor(descriptors, DescriptorTag.ENHANCED_AC3) !== undefined) return 'eac3'
  const registration = findRegistration(descriptors)
  return registration === 'AC-3' ? 'ac3' : registration === 'EAC3' ? 'eac3' : undefined
}
