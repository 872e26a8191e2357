/**
 * Sample entries of audio (ISO/IEC 14496-12 12.2.3): `mp4a` with `esds` (14496-14 6.7.2), `ac-3` with `dac3` and `ec-3`
 * with `dec3` (ETSI TS 102 366 Annex F), `Opus` with `dOps` (Encapsulation of Opus in ISOBMFF 4.3).
 *
 *   mp4a | ac-3 | ec-3 | Opus
 *     esds | dac3 | dec3 | dOps
 *
 * @module
 */
import { encodeAudioSpecificConfig } from '../codec/audio-specific-config.ts'
import type {
  AacFormat,
  Ac3Format,
  AudioFormat,
  Eac3Format,
  Eac3Substream,
  MpegAudioFormat,
  OpusFormat,
} from './audio-format.ts'
import { box, fullBox, u16, u24, u32, u8 } from './box.ts'

const TYPES = {
  aac: 'mp4a',
  mp3: 'mp4a',
  mp2: 'mp4a',
  ac3: 'ac-3',
  eac3: 'ec-3',
  opus: 'Opus',
} as const

/** Tags of descriptors (14496-1 Table 1). */
const Tag = { STREAM: 3, CONFIG: 4, SPECIFIC: 5, SYNC_LAYER: 6 } as const

/** `objectTypeIndication` (14496-1 Table 5): MPEG-4 audio; MPEG audio layers with the rates of MPEG-2 and of MPEG-1. */
const ObjectType = { AAC: 0x40, MPEG_2: 0x69, MPEG_1: 0x6b } as const

/** `streamType` 5 (audio), upStream 0 and a reserved bit. */
const AUDIO_STREAM = 0x15

/** Lowest sample rate of MPEG-1 audio. */
const MIN_MPEG_1_RATE = 32_000

export function encodeAudioSampleEntry(format: AudioFormat): Buffer {
  const { channels = 2, sampleRate } = format.parameters
  return box(
    TYPES[format.codec],
    u16(0, 0, 0, 1), // reserved 48, data_reference_index
    u32(0, 0),
    u16(channels, 16, 0, 0),
    u16(sampleRate > 0xffff ? 0 : sampleRate, 0), // 16.16; above its range, only the configuration tells
    encodeConfiguration(format),
  )
}

function encodeConfiguration(format: AudioFormat): Buffer {
  switch (format.codec) {
    case 'ac3':
      return encodeAc3(format)
    case 'eac3':
      return encodeEac3(format)
    case 'opus':
      return encodeOpus(format)
    default:
      return encodeStreamDescriptor(format)
  }
}

/**
 * ESDBox: an ES_Descriptor with its DecoderConfigDescriptor, whose DecoderSpecificInfo is the AudioSpecificConfig, and
 * its SLConfigDescriptor (14496-1 7.2.6.5 to 7.2.6.8). Buffer size and bit rates are 0: unknown.
 */
function encodeStreamDescriptor(format: AacFormat | MpegAudioFormat): Buffer {
  const isAac = format.codec === 'aac'
  const mpegAudio =
    format.parameters.sampleRate < MIN_MPEG_1_RATE ? ObjectType.MPEG_2 : ObjectType.MPEG_1
  const config = descriptor(
    Tag.CONFIG,
    u8(isAac ? ObjectType.AAC : mpegAudio, AUDIO_STREAM),
    u24(0),
    u32(0, 0),
    ...(isAac ? [descriptor(Tag.SPECIFIC, encodeAudioSpecificConfig(format.config))] : []),
  )
  // ES_ID 0 and no flags; SLConfigDescriptor 2: for MP4 files.
  const stream = descriptor(Tag.STREAM, u16(0), u8(0), config, descriptor(Tag.SYNC_LAYER, u8(2)))
  return fullBox('esds', 0, 0, stream)
}

/** Descriptor of up to 127 bytes. */
function descriptor(tag: number, ...payload: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(payload)
  return Buffer.concat([u8(tag, bytes.length), bytes])
}

/**
 * AC3SpecificBox (F.4):
 *
 *   | fscod 2 | bsid 5 | bsmod 3 | acmod 3 | lfeon 1 | bit_rate_code 5 | 0 5 |
 */
function encodeAc3({ syncframe }: Ac3Format): Buffer {
  const { sampleRateCode, bitstreamId, bitstreamMode, audioCodingMode } = syncframe
  const bits =
    (sampleRateCode << 22) |
    (bitstreamId << 17) |
    (bitstreamMode << 14) |
    (audioCodingMode << 11) |
    (syncframe.lowFrequencyEffects ? 1 << 10 : 0) |
    (syncframe.bitRateCode << 5)
  return box('dac3', u24(bits))
}

/**
 * EC3SpecificBox (F.6):
 *
 *   | data_rate 13 | num_ind_sub 3 |
 *   | fscod 2 | bsid 5 | 0 1 | asvc 1 | bsmod 3 | acmod 3 | lfeon 1 | 0 3 | num_dep_sub 4 | chan_loc 9 or 0 1 | repeated
 */
function encodeEac3({ dataRate, substreams }: Eac3Format): Buffer {
  return box(
    'dec3',
    u16((Math.min(dataRate, 0x1fff) << 3) | (substreams.length - 1)),
    ...substreams.flatMap(encodeSubstream),
  )
}

function encodeSubstream({ syncframe, dependents, channelMap }: Eac3Substream): readonly Buffer[] {
  const { sampleRateCode, bitstreamId, bitstreamMode, audioCodingMode } = syncframe
  const head =
    (sampleRateCode << 14) |
    (bitstreamId << 9) |
    (bitstreamMode << 4) |
    (audioCodingMode << 1) |
    (syncframe.lowFrequencyEffects ? 1 : 0)
  const locations = channelLocations(channelMap)
  if (dependents === 0) return [u16(head), u8(0)]
  return [u16(head), u16((dependents << 9) | locations)]
}

/** Converts `chanmap` (E.1.3.1.8), left first, to `chan_loc` (Table F.6.1): Lc/Rc to Cvh, and the second LFE. */
function channelLocations(channelMap: number): number {
  let locations = 0
  for (let bit = 0; bit < 8; bit++) {
    if ((channelMap & (0x8000 >> (5 + bit))) !== 0) locations |= 1 << bit
  }
  return (channelMap & 0x0002) !== 0 ? locations | 0x100 : locations
}

/**
 * OpusSpecificBox: as the identification header of RFC 7845 5.1, without its magic, in big endian, version 0.
 *
 *   | version 8 | channels 8 | pre-skip 16 | input sample rate 32 | output gain 16 | mapping family 8 | table … |
 */
function encodeOpus({ parameters, preSkip, inputSampleRate, mapping }: OpusFormat): Buffer {
  const { family = 0, streams = 0, coupledStreams = 0, channels = [] } = mapping ?? {}
  return box(
    'dOps',
    u8(0, parameters.channels ?? 2),
    u16(preSkip),
    u32(inputSampleRate),
    u16(0),
    u8(family),
    ...(family === 0 ? [] : [u8(streams, coupledStreams, ...channels)]),
  )
}
