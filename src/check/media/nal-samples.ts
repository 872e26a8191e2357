/**
 * Samples of H.264 and H.265 (ISO/IEC 14496-15 5.3.2, 8.3.2): each is one frame, whose parameter sets are in the sample entry
 * (`avc1`, `hvc1`) or in the samples too.
 *
 *   | length 8 to 32 | NAL unit … | repeated
 *
 * @module
 */
import { FieldReader } from './box-reader.ts'
import type { Faults } from './media-facts.ts'
import type { NalFormat, TrackFormat } from './movie.ts'
import { MAX_HEAD_BYTES } from '../../codec/annex-b.ts'
import { isParameterSet, isSlice, nalRole } from '../../codec/nal-unit.ts'
import { readParameterSet } from '../../codec/parameter-sets.ts'
import { VIDEO_READERS } from '../../codec/video-readers.ts'

/** Where a sample claims to be: a hostile `trun` may point anywhere. */
export interface SamplePlace {
  /** Offset in the bytes. */
  readonly at: number
  readonly sizeBytes: number
}

type NalTrack = { readonly id: number; readonly nalUnits: NalFormat } & TrackFormat

/** Sample entries that promise samples without parameter sets (5.4.1, 8.4.1). */
const OUT_OF_BAND: ReadonlySet<string | undefined> = new Set(['avc1', 'hvc1'])

/** Maximum number of NAL units that are looked at in a track: samples may overlap, and lengths may be 0. */
const MAX_NALS = 100_000

/** Maximum number of parameter sets that are read of a track: a segment repeats a few at each key frame. */
const MAX_SETS = 1000

/** @returns format by the first sequence parameter set, where the sample entry has none; undefined if none parses */
export function inspectNalSamples(
  bytes: Buffer,
  places: readonly SamplePlace[],
  { id, sampleEntry, nalUnits: { codec, lengthBytes, sets } }: NalTrack,
  faults: Faults,
): TrackFormat | undefined {
  const pictures = new VIDEO_READERS[codec].Pictures()
  for (const set of sets) pictures.pushSet(set)
  const isOutOfBand = OUT_OF_BAND.has(sampleEntry)
  const isKnown = sets.some(({ kind, nal }) => kind === 'sps' && describe(nal, codec) !== undefined)
  let found: TrackFormat | undefined
  let inspected = 0
  let setsRead = 0
  for (const [index, place] of places.entries()) {
    let frames = 0
    for (const nal of nalUnits(bytes, place, lengthBytes)) {
      if (++inspected > MAX_NALS) return found
      if (nal.length === 0) continue
      const role = nalRole(codec, nal[0]!, nal[1])
      if (isParameterSet(role)) {
        if (isOutOfBand) {
          const name = role.toUpperCase()
          faults.add(
            'parameter-sets',
            `track ${id} is ${sampleEntry}, and its samples have ${name}`,
          )
        }
        if (nal.length >= MAX_HEAD_BYTES || ++setsRead > MAX_SETS) continue
        pictures.pushSet(readParameterSet(codec, role, nal))
        if (role === 'sps' && !isKnown) found ??= describe(nal, codec, sampleEntry)
      } else if (isSlice(role)) {
        const picture = pictures.pushSlice(nal)
        if (picture?.startsFrame === true) frames++
        if (picture?.hasSet === false && isOutOfBand) {
          faults.add(
            'sets-missing',
            `the sample entry of track ${id} lacks the PPS of sample ${index}`,
          )
        }
      }
    }
    if (frames > 1)
      faults.add('sample-frames', `sample ${index} of track ${id} has ${frames} frames`)
  }
  return found
}

function describe(
  nal: Buffer,
  codec: NalFormat['codec'],
  sampleEntry = '',
): TrackFormat | undefined {
  const parameters = VIDEO_READERS[codec].decodeSequence(nal)?.video
  if (parameters === undefined) return undefined
  const { codecString, ...rest } = parameters
  return { ...rest, codec: codecString.replace(/^(avc1|hvc1)/, sampleEntry) }
}

function* nalUnits(bytes: Buffer, { at, sizeBytes }: SamplePlace, lengthBytes: number) {
  const start = Math.min(Math.max(0, at), bytes.length)
  const end = Math.min(start + sizeBytes, bytes.length)
  const fields = new FieldReader(bytes, { start, end })
  while (fields.left > lengthBytes) {
    yield fields.take(fields.unsigned(lengthBytes))
  }
}
