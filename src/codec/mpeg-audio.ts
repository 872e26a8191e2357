/**
 * MPEG audio frame headers, layers I to III (ISO/IEC 11172-3 2.4.1.3, ISO/IEC 13818-3 2.4.1.3), with the lower sample
 * rates of MPEG 2.5.
 *
 *   | syncword FFE 11 | version 2 | layer 2 | protection 1 | bit rate 4 | sampling frequency 2 | padding 1 |
 *   | private 1 | mode 2 | mode extension 2 | copyright 1 | original 1 | emphasis 2 |
 *
 * @module
 */
import type { AudioFrameHeader } from './audio-frame.ts'

const HEADER_BYTES = 4

/** Values of the version field; 0 is MPEG 2.5, 2 is MPEG 2. */
const MPEG_1 = 3
const RESERVED_VERSION = 1

/** Sample rates of MPEG 1 by sampling_frequency. MPEG 2 has half of each rate, MPEG 2.5 a quarter. */
const SAMPLE_RATES = [44_100, 48_000, 32_000] as const
/** Divisors of the sample rate by version field. */
const RATE_DIVISORS = [4, 1, 2, 1] as const

/** Bit rates in kbit/s by layer and bitrate_index - 1. Index 0 is free format, whose frame size is unknown. */
const BIT_RATES_MPEG_1 = {
  1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
} as const
const BIT_RATES_MPEG_2 = {
  1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  2: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  3: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const

/** Value of `mode` for one channel; all other values stand for two channels. */
const SINGLE_CHANNEL = 3

export function decodeMpegAudioHeader(bytes: Buffer, at: number): AudioFrameHeader | undefined {
  if (at + HEADER_BYTES > bytes.length) return undefined
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xe0) !== 0xe0) return undefined
  const version = (bytes[at + 1]! >> 3) & 3
  const layerBits = (bytes[at + 1]! >> 1) & 3
  const baseRate = SAMPLE_RATES[(bytes[at + 2]! >> 2) & 3]
  if (version === RESERVED_VERSION || layerBits === 0 || baseRate === undefined) return undefined

  const layer = (4 - layerBits) as 1 | 2 | 3
  const bitRates = version === MPEG_1 ? BIT_RATES_MPEG_1 : BIT_RATES_MPEG_2
  const kbps = bitRates[layer][(bytes[at + 2]! >> 4) - 1]
  if (kbps === undefined) return undefined

  const sampleRate = baseRate / RATE_DIVISORS[version]!
  const padding = (bytes[at + 2]! >> 1) & 1
  const samples = frameSamples(layer, version === MPEG_1)
  return {
    codec: layer === 3 ? 'mp3' : 'mp2',
    sizeBytes: frameBytes(layer, samples, (kbps * 1000) / sampleRate, padding),
    samples,
    parameters: {
      codecString: `mp4a.40.${31 + layer}`, // object types 32 to 34 (ISO/IEC 14496-3 Table 1.17)
      sampleRate,
      channels: bytes[at + 3]! >> 6 === SINGLE_CHANNEL ? 1 : 2,
    },
  }
}

/** Samples of a frame (11172-3 2.4.2.1): layer III has half of them at the lower sample rates. */
function frameSamples(layer: 1 | 2 | 3, mpeg1: boolean): number {
  if (layer === 1) return 384
  return layer === 3 && !mpeg1 ? 576 : 1152
}

/** Frame size (11172-3 2.4.3.1): layer I has slots of 4 bytes. */
function frameBytes(layer: 1 | 2 | 3, samples: number, bitsPerSample: number, padding: number) {
  if (layer === 1) return (Math.floor(12 * bitsPerSample) + padding) * 4
  return Math.floor((samples / 8) * bitsPerSample) + padding
}
