/**
 * AC-3 and Enhanced AC-3 frame headers (ETSI TS 102 366 4.3, E.1.2). Both begin with syncword 0B77 and have `bsid` at
 * the same offset; the value of `bsid` distinguishes them.
 *
 *   AC-3    | 0B77 16 | crc1 16 | fscod 2 | frmsizecod 6 | bsid 5 | bsmod 3 | acmod 3 | … | lfeon 1 |
 *   E-AC-3  | 0B77 16 | strmtyp 2 | substreamid 3 | frmsiz 11 | fscod 2 | numblkscod 2 | acmod 3 | lfeon 1 | bsid 5 |
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import type { AudioFrameHeader } from './audio-frame.ts'

/** Bytes required to decode a header: one more than its fields use, which end in the seventh. */
const HEADER_BYTES = 8

/** Values of `bsid`: up to 8 for AC-3 (4.4.2.1), 11 to 16 for E-AC-3 (E.1.3.1.6). */
const MAX_BSID_AC3 = 8
const MIN_BSID_EAC3 = 11
const MAX_BSID_EAC3 = 16

/** Sample rates by `fscod`; in E-AC-3, `fscod` 3 selects half of a rate by `fscod2`. */
const SAMPLE_RATES = [48_000, 44_100, 32_000] as const

/** Bit rates in kbit/s by `frmsizecod` / 2 (Table 4.13). */
const BIT_RATES = [
  32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
] as const

/** Number of full bandwidth channels by `acmod` (Table 4.3); 0 is dual mono. */
const CHANNELS = [2, 1, 2, 3, 3, 4, 4, 5] as const

/** Fields of a syncframe header. */
export interface Ac3Syncframe {
  readonly codec: 'ac3' | 'eac3'
  /** Size of the syncframe, in 16-bit words. */
  readonly words: number
  /** Hertz. */
  readonly sampleRate: number
  /** `fscod`. */
  readonly sampleRateCode: number
  /** `bsid`. */
  readonly bitstreamId: number
  /** `bsmod`; 0, a main audio service, in E-AC-3, where optional metadata contains it. */
  readonly bitstreamMode: number
  /** `acmod`. */
  readonly audioCodingMode: number
  /** Whether there is a low frequency effects channel: `lfeon`. */
  readonly lowFrequencyEffects: boolean
  /** AC-3: `frmsizecod` / 2, rounded down. */
  readonly bitRateCode: number
  /** Number of audio blocks of 256 samples. */
  readonly blocks: number
  /** Whether an E-AC-3 syncframe adds channels to the independent substream before it: `strmtyp` 1. */
  readonly dependent: boolean
  /** E-AC-3: `substreamid`. */
  readonly substreamId: number
}

/** Number of audio blocks of an E-AC-3 syncframe by `numblkscod` (E.1.3.1.5). */
const EAC3_BLOCKS = [1, 2, 3, 6] as const

export function decodeAc3Header(bytes: Buffer, at: number): AudioFrameHeader | undefined {
  const frame = decodeAc3Syncframe(bytes, at)
  if (frame === undefined) return undefined
  const { codec, words, sampleRate, blocks, dependent, substreamId } = frame
  const samples = dependent || substreamId > 0 ? 0 : blocks * 256
  const codecString = codec === 'ac3' ? 'ac-3' : 'ec-3'
  const parameters = { codecString, sampleRate, channels: countAc3Channels(frame) }
  return { codec, sizeBytes: words * 2, samples, parameters }
}

/** @returns number of channels, low frequency effects included */
export function countAc3Channels(frame: Ac3Syncframe): number {
  return CHANNELS[frame.audioCodingMode]! + (frame.lowFrequencyEffects ? 1 : 0)
}

export function decodeAc3Syncframe(bytes: Buffer, at: number): Ac3Syncframe | undefined {
  if (at + HEADER_BYTES > bytes.length) return undefined
  if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return undefined
  const bsid = bytes[at + 5]! >> 3
  const reader = new BitReader(bytes.subarray(at + 2, at + HEADER_BYTES))
  if (bsid <= MAX_BSID_AC3) return decodeAc3(reader)
  return bsid >= MIN_BSID_EAC3 && bsid <= MAX_BSID_EAC3 ? decodeEac3(reader) : undefined
}

function decodeAc3(reader: BitReader): Ac3Syncframe | undefined {
  reader.skipBits(16) // crc1
  const sampleRateCode = reader.readBits(2)
  const sampleRate = SAMPLE_RATES[sampleRateCode]
  const sizeCode = reader.readBits(6)
  const kbps = BIT_RATES[sizeCode >> 1]
  if (sampleRate === undefined || kbps === undefined) return undefined
  const bitstreamId = reader.readBits(5)
  const bitstreamMode = reader.readBits(3)
  const mode = reader.readBits(3)
  if ((mode & 1) !== 0 && mode !== 1) reader.skipBits(2) // cmixlev: three front channels
  if ((mode & 4) !== 0) reader.skipBits(2) // surmixlev: surround channels
  if (mode === 2) reader.skipBits(2) // dsurmod: stereo
  // 1536 samples per frame, sizes in 16-bit words; at 44.1 kHz odd codes have one more word (Table 4.13).
  const words =
    Math.floor((kbps * 96_000) / sampleRate) + (sampleRate === 44_100 ? sizeCode & 1 : 0)
  return {
    codec: 'ac3',
    words,
    sampleRate,
    sampleRateCode,
    bitstreamId,
    bitstreamMode,
    audioCodingMode: mode,
    lowFrequencyEffects: reader.readFlag(),
    bitRateCode: sizeCode >> 1,
    blocks: 6,
    dependent: false,
    substreamId: 0,
  }
}

function decodeEac3(reader: BitReader): Ac3Syncframe | undefined {
  const dependent = reader.readBits(2) === 1
  const substreamId = reader.readBits(3)
  const words = reader.readBits(11) + 1
  const rateCode = reader.readBits(2)
  const low = reader.readBits(2) // fscod2, or numblkscod
  const rate = SAMPLE_RATES[rateCode === 3 ? low : rateCode]
  if (rate === undefined) return undefined
  const sampleRate = rateCode === 3 ? rate / 2 : rate
  const audioCodingMode = reader.readBits(3)
  const lowFrequencyEffects = reader.readFlag()
  return {
    codec: 'eac3',
    words,
    sampleRate,
    sampleRateCode: rateCode,
    audioCodingMode,
    lowFrequencyEffects,
    bitstreamId: reader.readBits(5),
    bitstreamMode: 0,
    bitRateCode: 0,
    // At half a sample rate there are always six blocks.
    blocks: rateCode === 3 ? 6 : EAC3_BLOCKS[low]!,
    dependent,
    substreamId,
  }
}

/**
 * Reads `chanmap` of a dependent E-AC-3 syncframe (E.1.3.1.8): locations of its channels, the most significant of 16
 * bits for left.
 *
 *   | header 45 | dialnorm 5 | compre 1 | compr 8 if compre | the last three again if acmod is 0 | chanmape 1 | chanmap 16 |
 *
 * @returns undefined without a channel map
 */
export function readEac3ChannelMap(bytes: Buffer, at: number): number | undefined {
  const frame = decodeAc3Syncframe(bytes, at)
  if (frame?.dependent !== true) return undefined
  const reader = new BitReader(bytes.subarray(at))
  reader.skipBits(45)
  for (let program = frame.audioCodingMode === 0 ? 2 : 1; program > 0; program--) {
    reader.skipBits(5)
    if (reader.readFlag()) reader.skipBits(8)
  }
  const channelMap = reader.readFlag() ? reader.readBits(16) : undefined
  return reader.overrun ? undefined : channelMap
}
