/**
 * Init segment of fragmented MP4 (ISO/IEC 14496-12 8.2; RFC 8216bis 3.1.2): the tracks and their defaults.
 *
 * @module
 */
import { FieldReader, findBox, readBoxes, type Box } from './box-reader.ts'
import { Faults } from './faults.ts'
import type { InspectedTrack } from './inspected-media.ts'
import { readSampleEntry, type TrackFormat } from './sample-entry.ts'

export interface MovieTrack {
  readonly id: number
  readonly kind: InspectedTrack['kind']
  readonly ticksPerSec: number
  readonly format: TrackFormat
  readonly defaults: SampleDefaults
}

/** Values of samples that neither `tfhd` nor `trun` give. */
export interface SampleDefaults {
  readonly duration: number
  readonly size: number
  readonly flags: number
}

export interface Movie {
  readonly tracks: readonly MovieTrack[]
  readonly faults: Faults
}

const MAX_TRACKS = 16
const NO_DEFAULTS: SampleDefaults = { duration: 0, size: 0, flags: 0 }

const KINDS: Readonly<Record<string, InspectedTrack['kind']>> = { vide: 'video', soun: 'audio' }

/** Movies by their bytes, since every segment of a playlist has the same. */
const known = new WeakMap<Buffer, Movie>()

export function readMovie(init: Buffer): Movie {
  const movie = known.get(init) ?? parse(init)
  known.set(init, movie)
  return movie
}

function parse(bytes: Buffer): Movie {
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

/** Reads 32 bits behind creation and modification time, whose size depends on the version. */
function readVersioned(bytes: Buffer, box: Box, short: number, long: number): number {
  const fields = new FieldReader(bytes, box)
  const isLong = fields.unsigned(1) === 1
  fields.skip(3 + (isLong ? long : short))
  return fields.unsigned(4)
}
