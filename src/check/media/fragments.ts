/**
 * Facts about a segment or part of fragmented MP4 (ISO/IEC 14496-12 8.8; RFC 8216bis 3.1.2).
 *
 * @module
 */
import { FieldReader, findBox, readBoxes, type Box } from './box-reader.ts'
import { Faults, type InspectedTrack, type MediaFacts } from './media-facts.ts'
import { MAX_LISTED_FRAMES, measureFrameRate, measureFrames, type Frame } from './frame-list.ts'
import { inspectNalSamples, type SamplePlace } from './nal-samples.ts'
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

type Range = Pick<Box, 'start' | 'end'>

/** Movie fragment, with the bytes that its samples may be in. */
interface Fragment {
  readonly moof: Box
  /** From the next mdat to the end of the last one; undefined without a next one. */
  readonly media: Range | undefined
  /** Size of all mdat boxes. */
  readonly mediaBytes: number
}

interface TrackSamples {
  readonly frames: Frame[]
  readonly places: SamplePlace[]
  nextTicks: number
  durationTicks: number
}

/** Context of the runs of a track fragment. */
interface RunContext {
  readonly fragment: Fragment
  /** Offset that the data offsets of its runs count from. */
  readonly base: number
  readonly defaults: SampleDefaults
  readonly samples: TrackSamples
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
  const fragments = findFragments(boxes)
  if (fragments.length === 0) faults.add('box', 'there is no moof box')
  for (const fragment of fragments) {
    for (const traf of readBoxes(bytes, fragment.moof, faults)) {
      if (traf.type === 'traf') {
        readTrackFragment(bytes, fragment, traf, movie?.tracks ?? [], samples, faults)
      }
    }
  }
  return {
    container: 'fmp4',
    sizeBytes: bytes.length,
    tracks: (movie?.tracks ?? []).map((track) =>
      describeTrack(bytes, track, samples.get(track.id), faults),
    ),
    counters: new Map(),
    faults: faults.list,
  }
}

function findFragments(boxes: readonly Box[]): readonly Fragment[] {
  const mdats = boxes.filter(({ type }) => type === 'mdat')
  const mediaBytes = mdats.reduce((sum, { start, end }) => sum + end - start, 0)
  const lastEnd = mdats.at(-1)?.end ?? 0
  let next = 0
  return boxes
    .filter(({ type }) => type === 'moof')
    .map((moof) => {
      while (next < mdats.length && mdats[next]!.at < moof.at) next++
      const first = mdats[next]
      const media = first && { start: first.start, end: lastEnd }
      return { moof, media, mediaBytes }
    })
}

function readTrackFragment(
  bytes: Buffer,
  fragment: Fragment,
  traf: Box,
  tracks: readonly MovieTrack[],
  samples: Map<number, TrackSamples>,
  faults: Faults,
): void {
  const boxes = readBoxes(bytes, traf, faults)
  const tfhd = findBox(boxes, 'tfhd')
  const tfdt = findBox(boxes, 'tfdt')
  if (tfhd === undefined) return faults.add('box', 'a traf box has no tfhd')
  const { id, base = fragment.moof.at, defaults } = readHeader(bytes, tfhd, tracks)
  if (tfdt === undefined) return faults.add('box', `the traf box of track ${id} has no tfdt`)
  const track = tracks.find((each) => each.id === id)
  if (track === undefined) {
    if (tracks.length > 0) faults.add('box', `track ${id} is not in the init segment`)
    return
  }
  const state = samples.get(id) ?? { frames: [], places: [], nextTicks: 0, durationTicks: 0 }
  samples.set(id, state)
  state.nextTicks = readDecodeTime(bytes, tfdt)
  const context: RunContext = { fragment, base, defaults, samples: state }
  // 8.8.8.1: without an offset, the samples of a run follow those of the run before.
  let at = base
  for (const trun of boxes) {
    if (trun.type === 'trun') at = readRun(bytes, trun, at, context, faults)
  }
}

function readHeader(bytes: Buffer, tfhd: Box, tracks: readonly MovieTrack[]) {
  const fields = new FieldReader(bytes, tfhd)
  const flags = fields.unsigned(4) & 0xffffff
  const id = fields.unsigned(4)
  const known = tracks.find((track) => track.id === id)?.defaults
  const base = (flags & Header.DATA_OFFSET) === 0 ? undefined : fields.unsigned64()
  if ((flags & Header.ENTRY) !== 0) fields.skip(4)
  const read = (flag: number, other = 0) => ((flags & flag) === 0 ? other : fields.unsigned(4))
  const defaults: SampleDefaults = {
    duration: read(Header.DURATION, known?.duration),
    size: read(Header.SIZE, known?.size),
    flags: read(Header.FLAGS, known?.flags),
  }
  return { id, base, defaults }
}

function readDecodeTime(bytes: Buffer, tfdt: Box): number {
  const fields = new FieldReader(bytes, tfdt)
  const isLong = fields.unsigned(1) === 1
  fields.skip(3)
  return isLong ? fields.unsigned64() : fields.unsigned(4)
}

/**
 * @param previousEnd  end of the samples of the run before
 * @returns end of the samples of this one
 */
function readRun(
  bytes: Buffer,
  trun: Box,
  previousEnd: number,
  { fragment: { media, mediaBytes }, base, defaults, samples }: RunContext,
  faults: Faults,
): number {
  const fields = new FieldReader(bytes, trun)
  const isSigned = fields.unsigned(1) === 1
  const flags = fields.unsigned(3)
  const count = fields.unsigned(4)
  const start = (flags & Run.DATA_OFFSET) === 0 ? previousEnd : base + fields.signed32()
  const firstFlags = (flags & Run.FIRST_FLAGS) === 0 ? undefined : fields.unsigned(4)
  let size = 0
  for (let index = 0; index < count && !fields.overrun; index++) {
    if (samples.frames.length === MAX_LISTED_FRAMES) return start + size
    if (size > mediaBytes) {
      faults.add('box', `a trun box has ${count} samples for ${mediaBytes} bytes of media`)
      return start + size
    }
    const read = (flag: number, other: number) =>
      (flags & flag) === 0 ? other : fields.unsigned(4)
    const durationTicks = read(Run.DURATION, defaults.duration)
    const sizeBytes = read(Run.SIZE, defaults.size)
    const ownFlags = read(Run.FLAGS, defaults.flags)
    const sampleFlags = index === 0 ? (firstFlags ?? ownFlags) : ownFlags
    const offset = read(Run.OFFSET, 0)
    if (fields.overrun) break
    const dtsTicks = samples.nextTicks
    const ptsTicks = dtsTicks + (isSigned ? offset | 0 : offset)
    const isKey = (sampleFlags & NON_SYNC) === 0
    samples.frames.push({ ptsTicks, dtsTicks, durationTicks, isKey })
    samples.places.push({ at: start + size, sizeBytes })
    samples.nextTicks += durationTicks
    samples.durationTicks += durationTicks
    size += sizeBytes
  }
  const end = start + size
  if (fields.overrun) faults.add('box', `a trun box is too small for its ${count} samples`)
  else if (size > 0 && media !== undefined && (start < media.start || end > media.end)) {
    faults.add('box', `the samples of a trun box, bytes ${start} to ${end - 1}, are not in mdat`)
  }
  return end
}

function describeTrack(
  bytes: Buffer,
  { id, kind, ticksPerSec, format }: MovieTrack,
  samples: TrackSamples | undefined,
  faults: Faults,
): InspectedTrack {
  const frames = samples?.frames ?? []
  const { nalUnits, ...declared } = format
  const places = samples?.places ?? []
  const found = nalUnits && inspectNalSamples(bytes, places, { id, nalUnits, ...declared }, faults)
  const measured = kind === 'video' ? measureFrameRate(frames, ticksPerSec) : undefined
  return {
    kind,
    id,
    ...(measured !== undefined && { frameRate: measured }),
    ...declared,
    ...found,
    ...measureFrames(frames, ticksPerSec),
    ...(samples !== undefined && frames.length > 0 && describeTimes(samples, ticksPerSec)),
    ...(kind !== 'video' && { startsWithKeyFrame: true }),
  }
}

function describeTimes({ frames, nextTicks, durationTicks }: TrackSamples, ticksPerSec: number) {
  return {
    decodeTimes: { ticksPerSec, firstTicks: frames[0]!.dtsTicks, nextTicks, durationTicks },
  }
}
