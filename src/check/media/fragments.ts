/**
 * Facts about a segment or part of fragmented MP4 (ISO/IEC 14496-12 8.8; RFC 8216bis 3.1.2).
 *
 * @module
 */
import { decodeH264Sps } from '../../codec/h264-sps.ts'
import { decodeH265Sps } from '../../codec/h265-sps.ts'
import { FieldReader, findBox, readBoxes, type Box } from './box-reader.ts'
import { Faults } from './faults.ts'
import { MAX_FRAMES, measureFrameRate, measureFrames, type Frame } from './frame-list.ts'
import type { InspectedTrack, MediaFacts } from './inspected-media.ts'
import { readMovie, type MovieTrack, type SampleDefaults } from './movie.ts'

/** Flags of `tfhd` (8.8.7.1) and `trun` (8.8.8.1) that announce fields. */
const Header = { DATA_OFFSET: 0x1, ENTRY: 0x2, DURATION: 0x8, SIZE: 0x10, FLAGS: 0x20 } as const
const Run = {
  DATA_OFFSET: 0x1,
  FIRST_FLAGS: 0x4,
  DURATION: 0x100,
  SIZE: 0x200,
  FLAGS: 0x400,
  OFFSET: 0x800,
} as const

/** `sample_is_non_sync_sample` in the flags of a sample (8.8.3.1). */
const NON_SYNC = 0x10000

/** Maximum number of NAL units that are looked at for a parameter set. */
const MAX_NALS = 16

interface TrackSamples {
  readonly frames: Frame[]
  /** Offset of the first sample in the bytes. */
  firstAt: number | undefined
  nextTicks: number
}

/** @param init  init segment of EXT-X-MAP, unless the bytes have a moov box; undefined if it was not loaded */
export function inspectFragments(bytes: Buffer, init: Buffer | undefined): MediaFacts {
  const faults = new Faults()
  const boxes = readBoxes(bytes, { start: 0, end: bytes.length }, faults)
  const hasMovie = findBox(boxes, 'moov') !== undefined
  const movieBytes = hasMovie ? bytes : init
  const movie = movieBytes && readMovie(movieBytes)
  for (const { kind, text } of movie?.faults.list ?? []) faults.add(kind, text)
  const samples = new Map<number, TrackSamples>()
  const fragments = boxes.filter(({ type }) => type === 'moof')
  if (fragments.length === 0) faults.add('box', 'there is no moof box')
  let mediaBytes = 0
  for (const { type, start, end } of boxes) if (type === 'mdat') mediaBytes += end - start
  for (const moof of fragments) {
    for (const traf of readBoxes(bytes, moof, faults)) {
      if (traf.type === 'traf') {
        readTrackFragment(bytes, moof, traf, movie?.tracks ?? [], samples, mediaBytes, faults)
      }
    }
  }
  return {
    container: 'fmp4',
    sizeBytes: bytes.length,
    tracks: (movie?.tracks ?? []).map((track) => describe(bytes, track, samples.get(track.id))),
    counters: new Map(),
    faults: faults.list,
  }
}

function readTrackFragment(
  bytes: Buffer,
  moof: Box,
  traf: Box,
  tracks: readonly MovieTrack[],
  samples: Map<number, TrackSamples>,
  mediaBytes: number,
  faults: Faults,
): void {
  const boxes = readBoxes(bytes, traf, faults)
  const tfhd = findBox(boxes, 'tfhd')
  const tfdt = findBox(boxes, 'tfdt')
  if (tfhd === undefined) return faults.add('box', 'a traf box has no tfhd')
  const { id, defaults } = readHeader(bytes, tfhd, tracks)
  if (tfdt === undefined) return faults.add('box', `the traf box of track ${id} has no tfdt`)
  const track = tracks.find((each) => each.id === id)
  if (track === undefined) {
    if (tracks.length > 0) faults.add('box', `track ${id} is not in the init segment`)
    return
  }
  const state = samples.get(id) ?? { frames: [], firstAt: undefined, nextTicks: 0 }
  samples.set(id, state)
  state.nextTicks = readDecodeTime(bytes, tfdt)
  for (const trun of boxes) {
    if (trun.type === 'trun') readRun(bytes, moof, trun, defaults, state, mediaBytes, faults)
  }
}

function readHeader(bytes: Buffer, tfhd: Box, tracks: readonly MovieTrack[]) {
  const fields = new FieldReader(bytes, tfhd)
  const flags = fields.unsigned(4) & 0xffffff
  const id = fields.unsigned(4)
  const known = tracks.find((track) => track.id === id)?.defaults
  if ((flags & Header.DATA_OFFSET) !== 0) fields.skip(8)
  if ((flags & Header.ENTRY) !== 0) fields.skip(4)
  const read = (flag: number, other = 0) => ((flags & flag) === 0 ? other : fields.unsigned(4))
  const defaults: SampleDefaults = {
    duration: read(Header.DURATION, known?.duration),
    size: read(Header.SIZE, known?.size),
    flags: read(Header.FLAGS, known?.flags),
  }
  return { id, defaults }
}

function readDecodeTime(bytes: Buffer, tfdt: Box): number {
  const fields = new FieldReader(bytes, tfdt)
  const isLong = fields.unsigned(1) === 1
  fields.skip(3)
  return isLong ? fields.unsigned64() : fields.unsigned(4)
}

function readRun(
  bytes: Buffer,
  moof: Box,
  trun: Box,
  defaults: SampleDefaults,
  state: TrackSamples,
  mediaBytes: number,
  faults: Faults,
): void {
  const fields = new FieldReader(bytes, trun)
  const isSigned = fields.unsigned(1) === 1
  const flags = fields.unsigned(3)
  const count = fields.unsigned(4)
  const dataOffset = (flags & Run.DATA_OFFSET) === 0 ? 0 : fields.signed32()
  state.firstAt ??= moof.at + dataOffset
  const firstFlags = (flags & Run.FIRST_FLAGS) === 0 ? undefined : fields.unsigned(4)
  let size = 0
  for (let index = 0; index < count && !fields.overrun; index++) {
    if (state.frames.length === MAX_FRAMES) return
    if (size > mediaBytes) {
      return faults.add('box', `a trun box has ${count} samples for ${mediaBytes} bytes of media`)
    }
    const read = (flag: number, other: number) =>
      (flags & flag) === 0 ? other : fields.unsigned(4)
    const durationTicks = read(Run.DURATION, defaults.duration)
    size += read(Run.SIZE, defaults.size)
    const ownFlags = read(Run.FLAGS, defaults.flags)
    const sampleFlags = index === 0 ? (firstFlags ?? ownFlags) : ownFlags
    const offset = read(Run.OFFSET, 0)
    if (fields.overrun) break
    const dtsTicks = state.nextTicks
    const ptsTicks = dtsTicks + (isSigned ? offset | 0 : offset)
    state.frames.push({ ptsTicks, dtsTicks, durationTicks, isKey: (sampleFlags & NON_SYNC) === 0 })
    state.nextTicks += durationTicks
  }
  if (fields.overrun) faults.add('box', `a trun box is too small for its ${count} samples`)
}

function describe(
  bytes: Buffer,
  { id, kind, ticksPerSec, format }: MovieTrack,
  samples: TrackSamples | undefined,
): InspectedTrack {
  const frames = samples?.frames ?? []
  const { inBand, ...declared } = format
  const found = inBand && readParameterSet(bytes, samples?.firstAt, inBand)
  const measured = kind === 'video' ? measureFrameRate(frames, ticksPerSec) : undefined
  return {
    kind,
    id,
    ...(measured !== undefined && { frameRate: measured }),
    ...declared,
    ...found,
    ...measureFrames(frames, ticksPerSec),
    ...(kind !== 'video' && { startsWithKeyFrame: true }),
  }
}

/** Parameters of the sequence parameter set in the first sample. */
function readParameterSet(
  bytes: Buffer,
  firstAt: number | undefined,
  { codec, lengthBytes }: NonNullable<MovieTrack['format']['inBand']>,
) {
  if (firstAt === undefined || firstAt < 0) return undefined
  const fields = new FieldReader(bytes, {
    start: Math.min(firstAt, bytes.length),
    end: bytes.length,
  })
  for (let count = 0; count < MAX_NALS && !fields.overrun; count++) {
    const nal = fields.take(fields.unsigned(lengthBytes))
    const type = codec === 'avc3' ? (nal[0] ?? 0) & 0x1f : ((nal[0] ?? 0) >> 1) & 0x3f
    const decode = codec === 'avc3' && type === 7 ? decodeH264Sps : decodeH265Sps
    if (type !== (codec === 'avc3' ? 7 : 33)) continue
    const parameters = decode(nal)
    if (parameters === undefined) return undefined
    const { codecString, ...rest } = parameters
    return { codec: codecString.replace(/^(avc1|hvc1)/, codec), ...rest }
  }
  return undefined
}
