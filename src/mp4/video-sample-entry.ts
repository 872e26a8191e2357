/**
 * Sample entries of video: `avc1` and `hvc1`, or `avc3` and `hev1` for parameter sets in samples, with their decoder
 * configuration (ISO/IEC 14496-12 12.1.3, 14496-15 5.4.2, 8.4.1), colors and pixel aspect ratio (14496-12 12.1.4, 12.1.5).
 *
 *   avc1 | avc3 | hvc1 | hev1
 *     avcC | hvcC
 *     colr            if the VUI describes colors
 *     pasp            if the VUI has a sample aspect ratio
 *
 * @module
 */
import { unescapeNal } from '../codec/annex-b.ts'
import type { ParameterSetKind } from '../codec/parameter-sets.ts'
import { ascii, box, u16, u32, u8 } from './box.ts'
import type { VideoFormat } from './video-format.ts'

/** Profiles of H.264 whose record ends before the sample format: Baseline, Main, Extended (14496-15 5.3.3.1.2). */
const PROFILES_8_BIT_420 = new Set([66, 77, 88])

/** `NAL_unit_type` of the arrays in `hvcC` (H.265 Table 7-1). */
const H265_ARRAYS = { vps: 32, sps: 33, pps: 34 } as const

/** Horizontal and vertical resolution: 72 dots per inch, 16.16. */
const RESOLUTION = 0x0048_0000

const DEPTH_COLOR = 0x18

/** Types of sample entries, for parameter sets in the sample entry alone or in samples, too. */
const TYPES = {
  h264: { outOfBand: 'avc1', inBand: 'avc3' },
  h265: { outOfBand: 'hvc1', inBand: 'hev1' },
} as const

const CONFIGURATIONS = { h264: encodeAvcConfiguration, h265: encodeHevcConfiguration } as const

/** @returns CODECS value, which begins with the type of the sample entry (RFC 6381 3.3) */
export function videoCodecString(format: VideoFormat): string {
  const { codecString } = format.sequence.video
  return codecString.replace(TYPES[format.codec].outOfBand, typeOf(format))
}

export function encodeVideoSampleEntry(format: VideoFormat): Buffer {
  const { video, signal } = format.sequence
  return box(
    typeOf(format),
    u16(0, 0, 0, 1), // reserved 48, data_reference_index
    Buffer.alloc(16),
    u16(video.width, video.height),
    u32(RESOLUTION, RESOLUTION, 0),
    u16(1), // frame_count
    Buffer.alloc(32), // compressorname
    u16(DEPTH_COLOR, 0xffff),
    CONFIGURATIONS[format.codec](format),
    ...(signal.color === undefined ? [] : [encodeColors(signal.color)]),
    ...(signal.sampleAspectRatio === undefined
      ? []
      : [box('pasp', u32(signal.sampleAspectRatio.width, signal.sampleAspectRatio.height))]),
  )
}

/**
 * AVCDecoderConfigurationRecord (14496-15 5.3.3.1):
 *
 *   | version 8 | profile, compatibility, level 24 | 111111 6 | length size - 1 2 | 111 3 | SPS count 5 | SPS … |
 *   | PPS count 8 | PPS … | 111111 6 | chroma format 2 | 11111 5 | luma depth - 8 3 | 11111 5 | chroma depth - 8 3 |
 *   | SPS extension count 8 |
 *
 * Each set has a length of 16 bits.
 */
function encodeAvcConfiguration(format: VideoFormat): Buffer {
  const { chromaFormat, lumaBitDepth, chromaBitDepth } = format.sequence
  const spsSets = nalsOf(format, 'sps').slice(0, 31)
  const ppsSets = nalsOf(format, 'pps').slice(0, 255)
  const profile = spsSets[0]!.subarray(1, 4)
  const sampleFormat = PROFILES_8_BIT_420.has(profile[0]!)
    ? []
    : [u8(0xfc | chromaFormat, 0xf8 | (lumaBitDepth - 8), 0xf8 | (chromaBitDepth - 8), 0)]
  return box(
    'avcC',
    u8(1),
    profile,
    u8(0xff, 0xe0 | spsSets.length),
    ...spsSets.flatMap(withLength),
    u8(ppsSets.length),
    ...ppsSets.flatMap(withLength),
    ...sampleFormat,
  )
}

/**
 * HEVCDecoderConfigurationRecord (14496-15 8.3.3.1):
 *
 *   | version 8 | profile_tier_level without sub-layers 96 | 1111 4 | min spatial segmentation 12 | 111111 6 |
 *   | parallelism 2 | 111111 6 | chroma format 2 | 11111 5 | luma depth - 8 3 | 11111 5 | chroma depth - 8 3 |
 *   | average frame rate 16 | constant frame rate 2 | temporal layers 3 | nested 1 | length size - 1 2 | arrays 8 |
 *   | complete 1 | 0 1 | NAL unit type 6 | count 16 | (length 16 | set …) | for each array
 *
 * Spatial segmentation, parallelism and frame rate are 0: unknown.
 */
function encodeHevcConfiguration(format: VideoFormat): Buffer {
  const { chromaFormat, lumaBitDepth, chromaBitDepth } = format.sequence
  // Behind the NAL header: VPS id 4, sub-layers - 1 3, nested 1, profile_tier_level.
  const sps = unescapeNal(nalsOf(format, 'sps')[0]!)
  const temporalLayers = ((sps[2]! >> 1) & 7) + 1
  const kinds = ['vps', 'sps', 'pps'] as const
  // `array_completeness`: whether samples have no such set.
  const complete = format.inBandSets ? 0 : 0x80
  return box(
    'hvcC',
    u8(1),
    sps.subarray(3, 15),
    u16(0xf000),
    u8(0xfc, 0xfc | chromaFormat, 0xf8 | (lumaBitDepth - 8), 0xf8 | (chromaBitDepth - 8)),
    u16(0),
    u8((temporalLayers << 3) | ((sps[2]! & 1) << 2) | 3, kinds.length),
    ...kinds.flatMap((kind) => {
      const nals = nalsOf(format, kind)
      return [u8(complete | H265_ARRAYS[kind]), u16(nals.length), ...nals.flatMap(withLength)]
    }),
  )
}

function typeOf({ codec, inBandSets }: VideoFormat): string {
  return TYPES[codec][inBandSets ? 'inBand' : 'outOfBand']
}

/** ColourInformationBox (14496-12 12.1.5). */
function encodeColors({
  primaries,
  transfer,
  matrix,
  fullRange,
}: NonNullable<VideoFormat['sequence']['signal']['color']>): Buffer {
  return box('colr', ascii('nclx'), u16(primaries, transfer, matrix), u8(fullRange ? 0x80 : 0))
}

function nalsOf({ parameterSets }: VideoFormat, wanted: ParameterSetKind): readonly Buffer[] {
  return parameterSets.filter(({ kind }) => kind === wanted).map(({ nal }) => nal)
}

function withLength(nal: Buffer): readonly Buffer[] {
  return [u16(nal.length), nal]
}
