/**
 * Sample entries of `stsd`: the codec of a track with its configuration (ISO/IEC 14496-12 8.5.2, 14496-15, 14496-14;
 * ETSI TS 102 366 Annex F; the AV1, VP9 and Opus bindings).
 *
 * @module
 */
import { BitReader } from '../../binary/bit-reader.ts'
import { readAudioSpecificConfig } from '../../codec/audio-specific-config.ts'
import { decodeH264Sps } from '../../codec/h264-sps.ts'
import { decodeH265Sps } from '../../codec/h265-sps.ts'
import type { VideoParameters } from '../../codec/video-parameters.ts'
import { FieldReader, findBox, readBoxes, type Box } from './box-reader.ts'
import type { Faults } from './faults.ts'
import type { InspectedTrack } from './inspected-media.ts'

/** Format of a track as its sample entry describes it. */
export type TrackFormat = Pick<
  InspectedTrack,
  | 'codec'
  | 'sampleEntry'
  | 'width'
  | 'height'
  | 'frameRate'
  | 'videoRange'
  | 'sampleRate'
  | 'channels'
> & { readonly nalUnits?: NalFormat }

/** Form of samples that consist of NAL units (14496-15 5.3.3.1, 8.3.3.1). */
export interface NalFormat {
  readonly codec: 'h264' | 'h265'
  /** Size of the length before each NAL unit, 1 to 4. */
  readonly lengthBytes: number
  /** Whether the sample entry has a sequence parameter set; else the samples have to. */
  readonly hasSequence: boolean
}

/** Sizes of the fields before the boxes of a video and an audio sample entry. */
const VIDEO_ENTRY_BYTES = 78
const AUDIO_ENTRY_BYTES = 28

/** Extra fields of QuickTime audio sample entries by version. */
const QUICKTIME_BYTES: Readonly<Record<number, number>> = { 1: 16, 2: 36 }

const NAL_SPS_H265 = 33

/** @param entry  first box of `stsd`; encrypted entries are described by their original format */
export function readSampleEntry(
  bytes: Buffer,
  entry: Box,
  kind: InspectedTrack['kind'],
  faults: Faults,
): TrackFormat {
  if (kind === 'data') return { codec: entry.type, sampleEntry: entry.type }
  const isVideo = kind === 'video'
  const fields = new FieldReader(bytes, { start: entry.start + 8, end: entry.end })
  const version = isVideo ? 0 : fields.unsigned(2)
  const entryBytes = isVideo ? VIDEO_ENTRY_BYTES : AUDIO_ENTRY_BYTES
  const start = entry.start + entryBytes + (QUICKTIME_BYTES[version] ?? 0)
  const boxes = start < entry.end ? readBoxes(bytes, { start, end: entry.end }, faults) : []
  const protection = findBox(boxes, 'sinf')
  const original = protection && findBox(readBoxes(bytes, protection, faults), 'frma')
  const type =
    original === undefined
      ? entry.type
      : bytes.toString('latin1', original.start, original.start + 4)
  const config = (name: string) => {
    const box = findBox(boxes, name)
    return box === undefined ? undefined : bytes.subarray(box.start, box.end)
  }
  fields.skip(isVideo ? 16 : 6)
  if (isVideo) {
    const [width, height] = [fields.unsigned(2), fields.unsigned(2)]
    return { sampleEntry: type, width, height, ...readVideo(type, config) }
  }
  const channels = fields.unsigned(2)
  fields.skip(6)
  const sampleRate = fields.unsigned(2)
  return { sampleEntry: type, channels, sampleRate, ...readAudio(type, config) }
}

type FindConfig = (box: string) => Buffer | undefined

function readVideo(type: string, config: FindConfig): TrackFormat {
  const dolby = config('dvcC') ?? config('dvvC')
  switch (type) {
    case 'avc1':
    case 'avc3':
      return readAvc(type, config('avcC') ?? NOTHING)
    case 'hvc1':
    case 'hev1':
      return readHevc(type, config('hvcC') ?? NOTHING)
    case 'dvh1':
    case 'dvhe':
    case 'dva1':
    case 'dvav':
      return dolby === undefined ? { codec: undefined } : { codec: dolbyVision(type, dolby) }
    case 'av01':
      return { codec: av1(config('av1C') ?? NOTHING) }
    case 'vp09':
      return { codec: vp9(config('vpcC') ?? NOTHING) }
    default:
      return { codec: undefined }
  }
}

const NOTHING = Buffer.alloc(0)

/** AVCDecoderConfigurationRecord (14496-15 5.3.3.1). */
function readAvc(type: 'avc1' | 'avc3', record: Buffer): TrackFormat {
  const fields = new FieldReader(record, { start: 1, end: record.length })
  const profile = fields.take(3).toString('hex')
  const lengthBytes = (fields.unsigned(1) & 3) + 1
  const sets = fields.unsigned(1) & 0x1f
  const nal = sets > 0 ? fields.take(fields.unsigned(2)) : NOTHING
  if (profile === '') return { codec: undefined }
  const parameters = nal.length > 0 ? decodeH264Sps(nal) : undefined
  return {
    codec: `${type}.${profile}`,
    nalUnits: { codec: 'h264', lengthBytes, hasSequence: parameters !== undefined },
    ...(parameters !== undefined && withoutCodec(parameters)),
  }
}

/** HEVCDecoderConfigurationRecord (14496-15 8.3.3.1). */
function readHevc(type: 'hvc1' | 'hev1', record: Buffer): TrackFormat {
  const fields = new FieldReader(record, { start: 21, end: record.length })
  const lengthBytes = (fields.unsigned(1) & 3) + 1
  const arrays = fields.unsigned(1)
  for (let array = 0; array < arrays && !fields.overrun; array++) {
    const nalType = fields.unsigned(1) & 0x3f
    const count = fields.unsigned(2)
    for (let index = 0; index < count && !fields.overrun; index++) {
      const nal = fields.take(fields.unsigned(2))
      const parameters = nalType === NAL_SPS_H265 ? decodeH265Sps(nal) : undefined
      if (parameters === undefined) continue
      const codec = parameters.codecString.replace('hvc1', type)
      const nalUnits = { codec: 'h265', lengthBytes, hasSequence: true } as const
      return { codec, nalUnits, ...withoutCodec(parameters) }
    }
  }
  return { codec: undefined, nalUnits: { codec: 'h265', lengthBytes, hasSequence: false } }
}

/** Parameters other than the CODECS value. */
function withoutCodec({ width, height, frameRate, videoRange }: VideoParameters) {
  return { width, height, videoRange, ...(frameRate !== undefined && { frameRate }) }
}

/** DOVIDecoderConfigurationRecord: profile 7, level 6 bits behind the version. */
function dolbyVision(type: string, record: Buffer): string {
  const fields = new FieldReader(record, { start: 2, end: record.length })
  const bits = fields.unsigned(2)
  return `${type}.${twoDigits(bits >> 9)}.${twoDigits((bits >> 3) & 0x3f)}`
}

/** AV1CodecConfigurationRecord (AV1-ISOBMFF 2.3.3). */
function av1(record: Buffer): string | undefined {
  if (record.length < 4) return undefined
  const [, profileAndLevel, flags] = record as unknown as readonly [number, number, number]
  const bits = (flags & 0x40) === 0 ? 8 : (flags & 0x20) === 0 ? 10 : 12
  const tier = (flags & 0x80) === 0 ? 'M' : 'H'
  const level = `${twoDigits(profileAndLevel & 0x1f)}${tier}`
  return `av01.${profileAndLevel >> 5}.${level}.${twoDigits(bits)}`
}

/** VPCodecConfigurationRecord behind version and flags. */
function vp9(record: Buffer): string | undefined {
  if (record.length < 7) return undefined
  return `vp09.${twoDigits(record[4]!)}.${twoDigits(record[5]!)}.${twoDigits(record[6]! >> 4)}`
}

function readAudio(type: string, config: FindConfig): TrackFormat {
  switch (type) {
    case 'mp4a':
      return readEsds(config('esds') ?? NOTHING)
    case 'ac-3':
    case 'ec-3':
    case 'ac-4':
    case 'fLaC':
    case 'alac':
      return { codec: type }
    case 'Opus':
      return { codec: 'opus' }
    default:
      return { codec: undefined }
  }
}

/** Tags of descriptors (14496-1 7.2.2.1). */
const Tag = { STREAM: 3, CONFIG: 4, SPECIFIC: 5 } as const

/** objectTypeIndication of MPEG-4 and MPEG-1/2 audio (14496-1 Table 5). */
const MPEG4_AUDIO = 0x40
const MPEG_AUDIO = new Set([0x69, 0x6b])

/** ES_Descriptor with its DecoderConfigDescriptor (14496-1 7.2.6.5, 7.2.6.6). */
function readEsds(box: Buffer): TrackFormat {
  const fields = new FieldReader(box, { start: 4, end: box.length })
  if (readTag(fields) !== Tag.STREAM) return { codec: undefined }
  fields.skip(2)
  const flags = fields.unsigned(1)
  if ((flags & 0x80) !== 0) fields.skip(2) // dependsOn_ES_ID
  if ((flags & 0x40) !== 0) fields.skip(fields.unsigned(1)) // URL
  if ((flags & 0x20) !== 0) fields.skip(2) // OCR_ES_Id
  if (readTag(fields) !== Tag.CONFIG) return { codec: undefined }
  const objectType = fields.unsigned(1)
  if (MPEG_AUDIO.has(objectType)) return { codec: 'mp4a.40.34' }
  fields.skip(12)
  if (objectType !== MPEG4_AUDIO || readTag(fields) !== Tag.SPECIFIC) return { codec: undefined }
  const specific = fields.take(Math.max(0, fields.left))
  const reader = new BitReader(specific)
  const short = reader.readBits(5)
  const audioObjectType = short === 31 ? 32 + reader.readBits(6) : short
  const parameters = readAudioSpecificConfig(new BitReader(specific))?.parameters
  const { sampleRate, channels } = parameters ?? {}
  return {
    codec: `mp4a.40.${audioObjectType}`,
    ...(sampleRate !== undefined && { sampleRate }),
    ...(channels !== undefined && { channels }),
  }
}

/** @returns tag of a descriptor, whose length of up to four bytes is skipped */
function readTag(fields: FieldReader): number {
  const tag = fields.unsigned(1)
  for (let count = 0; count < 4 && (fields.unsigned(1) & 0x80) !== 0; count++);
  return tag
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}
