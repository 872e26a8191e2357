/**
 * Init segment of fragmented MP4 (ISO/IEC 14496-12 8.2; RFC 8216bis 3.1.2): the tracks, their defaults, and the codec of
 * each sample entry (14496-12 8.5.2, 14496-15, 14496-14; ETSI TS 102 366 Annex F; the AV1, VP9 and Opus bindings).
 *
 * @module
 */
import { FieldReader, findBox, readBoxes, type Box } from './box-reader.ts'
import { Faults, type InspectedTrack } from './media-facts.ts'
import { BitReader } from '../../binary/bit-reader.ts'
import { readAudioSpecificConfig } from '../../codec/audio-specific-config.ts'
import { isParameterSet, nalRole } from '../../codec/nal-unit.ts'
import { readParameterSet, type ParameterSet, type VideoCodec } from '../../codec/parameter-sets.ts'
import { decodeH264Sps } from '../../codec/h264-sps.ts'
import { decodeH265Sps } from '../../codec/h265-parameter-sets.ts'
import type { VideoParameters } from '../../codec/video-parameters.ts'

export interface MovieTrack {
  readonly id: number
  readonly kind: InspectedTrack['kind']
  readonly ticksPerSec: number
  readonly format: TrackFormat
  readonly defaults: SampleDefaults
}

/** Values of samples where `tfhd` and `trun` have none. */
export interface SampleDefaults {
  readonly duration: number
  readonly size: number
  readonly flags: number
}

interface Movie {
  readonly tracks: readonly MovieTrack[]
  readonly faults: Faults
}

const MAX_TRACKS = 16
const NO_DEFAULTS: SampleDefaults = { duration: 0, size: 0, flags: 0 }

const KINDS: Readonly<Record<string, InspectedTrack['kind']>> = { vide: 'video', soun: 'audio' }

/** Movies by their bytes, since every segment of a playlist has the same. */
const known = new WeakMap<Buffer, Movie>()

export function readMovie(init: Buffer): Movie {
  const movie = known.get(init) ?? parseMovie(init)
  known.set(init, movie)
  return movie
}

function parseMovie(bytes: Buffer): Movie {
  const faults = new Faults()
  const children = (box: Pick<Box, 'start' | 'end'>) => readBoxes(bytes, box, faults)
  const moov = findBox(children({ start: 0, end: bytes.length }), 'moov')
  if (moov === undefined) {
    faults.add('box', 'the init segment has no moov box')
    return { tracks: [], faults }
  }
  const boxes = children(moov)
  const defaults = new Map<number, SampleDefaults>()
  const extension = findBox(boxes, 'mvex')
  for (const box of extension === undefined ? [] : children(extension)) {
    if (box.type !== 'trex' || defaults.size === MAX_TRACKS) continue
    const fields = new FieldReader(bytes, box)
    fields.skip(4)
    const id = fields.unsigned(4)
    fields.skip(4)
    const duration = fields.unsigned(4)
    const size = fields.unsigned(4)
    defaults.set(id, { duration, size, flags: fields.unsigned(4) })
  }
  const tracks = boxes
    .filter(({ type }) => type === 'trak')
    .slice(0, MAX_TRACKS)
    .map((trak) => readTrack(bytes, trak, defaults, faults))
  return { tracks: tracks.filter((track) => track !== undefined), faults }
}

function readTrack(
  bytes: Buffer,
  trak: Box,
  defaults: ReadonlyMap<number, SampleDefaults>,
  faults: Faults,
): MovieTrack | undefined {
  const path = (...types: string[]) =>
    types.reduce<Box | undefined>(
      (box, type) => box && findBox(readBoxes(bytes, box, faults), type),
      trak,
    )
  const [tkhd, mdhd, hdlr] = [path('tkhd'), path('mdia', 'mdhd'), path('mdia', 'hdlr')]
  const stsd = path('mdia', 'minf', 'stbl', 'stsd')
  if (tkhd === undefined || mdhd === undefined || hdlr === undefined || stsd === undefined) {
    faults.add('box', 'a track of the init segment lacks tkhd, mdhd, hdlr or stsd')
    return undefined
  }
  const id = readVersioned(bytes, tkhd, 8, 16)
  const ticksPerSec = readVersioned(bytes, mdhd, 8, 16)
  const kind = KINDS[bytes.toString('latin1', hdlr.start + 8, hdlr.start + 12)] ?? 'data'
  const [entry] = readBoxes(
    bytes,
    { start: Math.min(stsd.start + 8, stsd.end), end: stsd.end },
    faults,
  )
  if (ticksPerSec === 0) faults.add('box', `track ${id} has timescale 0`)
  if (entry === undefined) faults.add('box', `track ${id} has no sample entry`)
  if (ticksPerSec === 0 || entry === undefined) return undefined
  const format = readSampleEntry(bytes, entry, kind, faults)
  return { id, kind, ticksPerSec, format, defaults: defaults.get(id) ?? NO_DEFAULTS }
}

/** Reads the 32 bits after creation and modification time, whose size depends on the version. */
function readVersioned(bytes: Buffer, box: Box, short: number, long: number): number {
  const fields = new FieldReader(bytes, box)
  const isLong = fields.unsigned(1) === 1
  fields.skip(3 + (isLong ? long : short))
  return fields.unsigned(4)
}

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
  readonly codec: VideoCodec
  /** Size of the length before each NAL unit, 1 to 4. */
  readonly lengthBytes: number
  /** Parameter sets of the sample entry; without a sequence parameter set, the samples have to have one. */
  readonly sets: readonly ParameterSet[]
}

/** Sizes of the fields before the boxes of a video and an audio sample entry. */
const VIDEO_ENTRY_BYTES = 78
const AUDIO_ENTRY_BYTES = 28

/** Extra fields of QuickTime audio sample entries by version. */
const QUICKTIME_BYTES: Readonly<Record<number, number>> = { 1: 16, 2: 36 }

/** @param entry  first box of `stsd`; encrypted entries are described by their original format */
function readSampleEntry(
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
  const sequences = takeNals(fields, fields.unsigned(1) & 0x1f)
  const pictures = takeNals(fields, fields.unsigned(1))
  if (profile === '') return { codec: undefined }
  const sets = [
    ...sequences.map((nal) => readParameterSet('h264', 'sps', nal)),
    ...pictures.map((nal) => readParameterSet('h264', 'pps', nal)),
  ]
  const parameters = sequences.map((nal) => decodeH264Sps(nal)).find((it) => it !== undefined)
  return {
    codec: `${type}.${profile}`,
    nalUnits: { codec: 'h264', lengthBytes, sets },
    ...(parameters !== undefined && withoutCodec(parameters)),
  }
}

/** HEVCDecoderConfigurationRecord (14496-15 8.3.3.1). */
function readHevc(type: 'hvc1' | 'hev1', record: Buffer): TrackFormat {
  const fields = new FieldReader(record, { start: 21, end: record.length })
  const lengthBytes = (fields.unsigned(1) & 3) + 1
  const arrays = fields.unsigned(1)
  const sets: ParameterSet[] = []
  for (let array = 0; array < arrays && !fields.overrun; array++) {
    const kind = nalRole('h265', fields.unsigned(1) << 1)
    const nals = takeNals(fields, fields.unsigned(2))
    if (!isParameterSet(kind)) continue
    sets.push(...nals.map((nal) => readParameterSet('h265', kind, nal)))
  }
  const parameters = sets
    .map(({ kind, nal }) => (kind === 'sps' ? decodeH265Sps(nal) : undefined))
    .find((it) => it !== undefined)
  return {
    codec: parameters?.codecString.replace('hvc1', type),
    nalUnits: { codec: 'h265', lengthBytes, sets },
    ...(parameters !== undefined && withoutCodec(parameters)),
  }
}

/** @returns NAL units with a length of 16 bits before each, as many as are whole */
function takeNals(fields: FieldReader, count: number): readonly Buffer[] {
  const nals: Buffer[] = []
  for (let index = 0; index < count && !fields.overrun; index++) {
    const nal = fields.take(fields.unsigned(2))
    if (nal.length > 0) nals.push(nal)
  }
  return nals
}

/** Parameters other than the CODECS value. */
function withoutCodec({ width, height, frameRate, videoRange }: VideoParameters) {
  return { width, height, videoRange, ...(frameRate !== undefined && { frameRate }) }
}

/** DOVIDecoderConfigurationRecord: after the version, profile (7 bits) and level (6 bits). */
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

/** VPCodecConfigurationRecord, after version and flags. */
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
