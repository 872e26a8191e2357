/**
 * ADTS headers of AAC (ISO/IEC 13818-7 6.2, ISO/IEC 14496-3 1.A.2.2).
 *
 *   | syncword FFF 12 | ID 1 | layer 00 2 | protection_absent 1 | profile 2 | sampling frequency index 4 | private 1 |
 *   | channels 3 | original 1 | home 1 | copyright 2 | frame length 13 | buffer fullness 11 | blocks 2 |
 *
 * @module
 */
import type { AudioFrameHeader } from './audio-frame.ts'
import { AAC_SAMPLE_RATES, type AudioSpecificConfig } from './audio-specific-config.ts'

export const ADTS_HEADER_BYTES = 7

/** Largest frame length. */
export const MAX_FRAME_BYTES = 0x1fff

/** By profile. */
const CODEC_STRINGS = ['mp4a.40.1', 'mp4a.40.2', 'mp4a.40.3', 'mp4a.40.4']

/** Size of the CRC that follows the header unless `protection_absent` is set. */
const CRC_BYTES = 2

/** Samples of a raw_data_block of AAC (ISO/IEC 14496-3 4.5.1.1). */
export const AAC_FRAME_SAMPLES = 1024

/** Silent raw_data_block (ISO/IEC 14496-3 4.4.2.1), by channel configuration: of one channel and of two. */
export const SILENT_BLOCKS: Readonly<Partial<Record<number, Buffer>>> = {
  1: Buffer.from('01182007', 'hex'),
  2: Buffer.from('211004608c1c', 'hex'),
}

/** Header fields that describe the payload of a frame. */
interface AdtsPayload {
  readonly config: AudioSpecificConfig
  /** Offset of the raw_data_block in the frame. */
  readonly headerBytes: number
}

/**
 * Describes the payload of a frame whose header `decodeAdtsHeader` accepts.
 *
 * @returns undefined when no sample can be made of it: it has several raw data blocks, no channel configuration (Chromium refuses
 *   an AudioSpecificConfig without one), or the frame is too short
 */
export function describeAdtsPayload(bytes: Buffer, at: number): AdtsPayload | undefined {
  const header = decodeAdtsHeader(bytes, at)
  if (header?.parameters.channels === undefined || (bytes[at + 6]! & 3) !== 0) return undefined
  const headerBytes = ADTS_HEADER_BYTES + ((bytes[at + 1]! & 1) === 0 ? CRC_BYTES : 0)
  if (header.sizeBytes <= headerBytes) return undefined
  const config = {
    objectType: (bytes[at + 2]! >> 6) + 1,
    parameters: header.parameters,
    sampleRateIndex: (bytes[at + 2]! >> 2) & 0x0f,
    channelConfiguration: ((bytes[at + 2]! & 1) << 2) | (bytes[at + 3]! >> 6),
  }
  return { config, headerBytes }
}

/** @returns size of the frame, including its header; undefined when none begins at `at` or its header is truncated */
export function adtsFrameBytes(bytes: Buffer, at: number): number | undefined {
  if (at + ADTS_HEADER_BYTES > bytes.length) return undefined
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xf6) !== 0xf0) return undefined
  const sizeBytes = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5)
  return sizeBytes > ADTS_HEADER_BYTES ? sizeBytes : undefined
}

/**
 * Decodes an ADTS header. HE-AAC with implicit SBR signaling has the header of AAC-LC at half the sample rate. It is
 * reported as AAC-LC at that rate, since only the payload differs.
 */
export function decodeAdtsHeader(bytes: Buffer, at: number): AudioFrameHeader | undefined {
  const sizeBytes = adtsFrameBytes(bytes, at)
  if (sizeBytes === undefined) return undefined
  const codecString = CODEC_STRINGS[bytes[at + 2]! >> 6]!
  const sampleRate = AAC_SAMPLE_RATES[(bytes[at + 2]! >> 2) & 0x0f]
  const channelConfiguration = ((bytes[at + 2]! & 1) << 2) | (bytes[at + 3]! >> 6)
  if (sampleRate === undefined) return undefined

  const samples = AAC_FRAME_SAMPLES * ((bytes[at + 6]! & 3) + 1)
  const channels = channelConfiguration === 7 ? 8 : channelConfiguration
  // 0: the channels are in a program_config_element of the payload.
  const parameters =
    channels === 0 ? { codecString, sampleRate } : { codecString, sampleRate, channels }
  return { codec: 'aac', sizeBytes, samples, parameters }
}

/** Writes the frame length into a header. */
export function writeFrameBytes(header: Buffer, sizeBytes: number): void {
  header[3] = (header[3]! & 0xfc) | (sizeBytes >> 11)
  header[4] = (sizeBytes >> 3) & 0xff
  header[5] = ((sizeBytes & 7) << 5) | (header[5]! & 0x1f)
}

/**
 * @param payloadBytes  size of the raw_data_block, at most 8184
 * @returns header of an AAC-LC frame without CRC; adts_buffer_fullness 7FF means variable bit rate
 */
export function encodeAdtsHeader(
  config: Pick<AudioSpecificConfig, 'sampleRateIndex' | 'channelConfiguration'>,
  payloadBytes: number,
): Buffer {
  const { sampleRateIndex, channelConfiguration } = config
  const sizeBytes = ADTS_HEADER_BYTES + payloadBytes
  return Buffer.from([
    0xff,
    0xf1,
    0x40 | (sampleRateIndex << 2) | (channelConfiguration >> 2),
    ((channelConfiguration & 3) << 6) | (sizeBytes >> 11),
    (sizeBytes >> 3) & 0xff,
    ((sizeBytes & 7) << 5) | 0x1f,
    0xfc,
  ])
}
