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

export function decodeAc3Header(bytes: Buffer, at: number): AudioFrameHeader | undefined {
  if (at + HEADER_BYTES > bytes.length) return undefined
  if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return undefined
  const bsid = bytes[at + 5]! >> 3
  const reader = new BitReader(bytes.subarray(at + 2, at + HEADER_BYTES))
  if (bsid <= MAX_BSID_AC3) return decodeAc3(reader)
  return bsid >= MIN_BSID_EAC3 && bsid <= MAX_BSID_EAC3 ? decodeEac3(reader) : undefined
}

function decodeAc3(reader: BitReader): AudioFrameHeader | undefined {
  reader.skipBits(16) // crc1
  const sampleRate = SAMPLE_RATES[reader.readBits(2)]
  const sizeCode = reader.readBits(6)
  const kbps = BIT_RATES[sizeCode >> 1]
  if (sampleRate === undefined || kbps === undefined) return undefined
  reader.skipBits(8) // bsid, bsmod
  const mode = reader.readBits(3)
  if ((mode & 1) !== 0 && mode !== 1) reader.skipBits(2) // cmixlev: three front channels
  if ((mode & 4) !== 0) reader.skipBits(2) // surmixlev: surround channels
  if (mode === 2) reader.skipBits(2) // dsurmod: stereo
  // 1536 samples per frame, sizes in 16-bit words; at 44.1 kHz odd codes have one more word (Table 4.13).
  const words =
    Math.floor((kbps * 96_000) / sampleRate) + (sampleRate === 44_100 ? sizeCode & 1 : 0)
  return frameHeader('ac3', words, sampleRate, CHANNELS[mode]! + reader.readBits(1))
}

function decodeEac3(reader: BitReader): AudioFrameHeader | undefined {
  reader.skipBits(5) // strmtyp, substreamid
  const words = reader.readBits(11) + 1
  const rateCode = reader.readBits(2)
  const low = reader.readBits(2) // fscod2, or numblkscod
  const rate = SAMPLE_RATES[rateCode === 3 ? low : rateCode]
  if (rate === undefined) return undefined
  const sampleRate = rateCode === 3 ? rate / 2 : rate
  const mode = reader.readBits(3)
  return frameHeader('eac3', words, sampleRate, CHANNELS[mode]! + reader.readBits(1))
}

function frameHeader(
  codec: 'ac3' | 'eac3',
  words: number,
  sampleRate: number,
  channels: number,
): AudioFrameHeader {
  const codecString = codec === 'ac3' ? 'ac-3' : 'ec-3'
  return { codec, sizeBytes: words * 2, parameters: { codecString, sampleRate, channels } }
}
