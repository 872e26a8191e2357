/**
 * AudioSpecificConfig of AAC (ISO/IEC 14496-3 1.6.2.1, 4.4.1), limited to configurations that ADTS can express.
 *
 *   | object type 5 | sampling frequency index 4 | channels 4 | … | frame length 1 | core coder 1 | extension 1 |
 *
 * With explicit SBR signaling the first object type is 5, or 29 with parametric stereo. The extension's sample rate and
 * the core's object type then follow the channels.
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'
import type { AudioParameters } from './audio-frame.ts'

/** Sample rates by samplingFrequencyIndex (ISO/IEC 14496-3 Table 1.18). */
export const AAC_SAMPLE_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
] as const

/** Audio object types (Table 1.17). */
const AAC_LC = 2
const SBR = 5
const PARAMETRIC_STEREO = 29

/** samplingFrequencyIndex of a sample rate that follows in 24 bits (Table 1.18). */
const EXPLICIT_RATE = 15

export interface AudioSpecificConfig {
  /** Audio object type as signaled: 5 or 29 with explicit SBR, else that of the core. */
  readonly objectType: number
  /** Parameters of the decoded audio: with SBR, the sample rate of the extension. */
  readonly parameters: AudioParameters
  /** Index of the core's sample rate in `AAC_SAMPLE_RATES`. */
  readonly sampleRateIndex: number
  /** channelConfiguration of the core, 1-7. */
  readonly channelConfiguration: number
}

/** @returns undefined unless the core is AAC-LC with frames of 1024 samples and a channelConfiguration of 1-7 */
export function readAudioSpecificConfig(reader: BitReader): AudioSpecificConfig | undefined {
  const objectType = reader.readBits(5)
  const sampleRateIndex = readSampleRateIndex(reader)
  const channelConfiguration = reader.readBits(4)
  const isExtended = objectType === SBR || objectType === PARAMETRIC_STEREO
  const extensionIndex = isExtended ? readSampleRateIndex(reader) : sampleRateIndex
  const coreType = isExtended ? reader.readBits(5) : objectType
  const specialCase = reader.readBits(3) // frameLengthFlag, dependsOnCoreCoder, extensionFlag
  const sampleRate = AAC_SAMPLE_RATES[extensionIndex]
  if (coreType !== AAC_LC || specialCase !== 0 || sampleRate === undefined) return undefined
  if (AAC_SAMPLE_RATES[sampleRateIndex] === undefined) return undefined
  if (channelConfiguration === 0 || channelConfiguration > 7) return undefined

  const channels =
    objectType === PARAMETRIC_STEREO ? 2 : channelConfiguration === 7 ? 8 : channelConfiguration
  const parameters = { codecString: `mp4a.40.${objectType}`, sampleRate, channels }
  return { objectType, parameters, sampleRateIndex, channelConfiguration }
}

/** @returns two bytes, or four with explicit SBR, whose core is AAC-LC */
export function encodeAudioSpecificConfig(config: AudioSpecificConfig): Buffer {
  const { objectType, sampleRateIndex, channelConfiguration, parameters } = config
  const head = (objectType << 11) | (sampleRateIndex << 7) | (channelConfiguration << 3)
  if (objectType !== SBR && objectType !== PARAMETRIC_STEREO)
    return Buffer.from([head >> 8, head & 0xff])
  const extensionIndex = AAC_SAMPLE_RATES.findIndex((rate) => rate === parameters.sampleRate)
  const tail = (extensionIndex << 15) | (AAC_LC << 10)
  return Buffer.from([head >> 8, (head & 0xf8) | (tail >> 16), (tail >> 8) & 0xff, tail & 0xff])
}

/** @returns -1 for a sample rate without an index */
function readSampleRateIndex(reader: BitReader): number {
  const index = reader.readBits(4)
  if (index !== EXPLICIT_RATE) return index
  const rate = reader.readBits(24)
  return AAC_SAMPLE_RATES.findIndex((known) => known === rate)
}
