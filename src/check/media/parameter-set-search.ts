/**
 * Parameter sets in the samples of fMP4 (ISO/IEC 14496-15 5.3.2, 8.3.2):
 *
 *   | length 8 to 32 | NAL unit … | repeated
 *
 * @module
 */
import { decodeH264Sps } from '../../codec/h264-sps.ts'
import { decodeH265Sps } from '../../codec/h265-sps.ts'
import { FieldReader } from './box-reader.ts'
import type { NalFormat, TrackFormat } from './sample-entry.ts'

/** Where a sample claims to be: a hostile `trun` may point anywhere. */
export interface SamplePlace {
  /** Offset in the bytes. */
  readonly at: number
  readonly sizeBytes: number
}

export interface FoundParameterSets {
  /** Name of the first parameter set; undefined without any. */
  readonly first: string | undefined
  /** Sequence parameter set, looked for only if the sample entry has none. */
  readonly sequence: Buffer | undefined
}

/** Maximum number of NAL units that are looked at in a track: samples may overlap, and lengths may be 0. */
const MAX_NALS = 100_000

/** Names by `nal_unit_type` (H.264 Table 7-1, H.265 Table 7-1). */
const NAMES: Readonly<Record<NalFormat['codec'], Readonly<Record<number, string>>>> = {
  h264: { 7: 'SPS', 8: 'PPS' },
  h265: { 32: 'VPS', 33: 'SPS', 34: 'PPS' },
}

export function findParameterSets(
  bytes: Buffer,
  places: readonly SamplePlace[],
  { codec, lengthBytes, hasSequence }: NalFormat,
): FoundParameterSets {
  let first: string | undefined
  for (const nal of nalUnits(bytes, places, lengthBytes)) {
    const name = NAMES[codec][typeOf(nal, codec)]
    first ??= name
    if (name === 'SPS' && !hasSequence) return { first, sequence: nal }
    if (first !== undefined && hasSequence) break
  }
  return { first, sequence: undefined }
}

/** @returns format of a track whose sample entry has no sequence parameter set; undefined if it does not parse */
export function describeSequence(
  sequence: Buffer,
  { codec }: NalFormat,
  sampleEntry = '',
): TrackFormat | undefined {
  const parameters = codec === 'h264' ? decodeH264Sps(sequence) : decodeH265Sps(sequence)
  if (parameters === undefined) return undefined
  const { codecString, ...rest } = parameters
  return { ...rest, codec: codecString.replace(/^(avc1|hvc1)/, sampleEntry) }
}

function* nalUnits(bytes: Buffer, places: readonly SamplePlace[], lengthBytes: number) {
  let count = 0
  for (const { at, sizeBytes } of places) {
    const start = Math.min(Math.max(0, at), bytes.length)
    const end = Math.min(start + sizeBytes, bytes.length)
    const fields = new FieldReader(bytes, { start, end })
    while (fields.left > lengthBytes) {
      if (count++ === MAX_NALS) return
      const nal = fields.take(fields.unsigned(lengthBytes))
      if (nal.length > 0) yield nal
    }
  }
}

/** @returns `nal_unit_type`; -1 in other layers of H.265, whose parameter sets stay with their slices */
function typeOf(nal: Buffer, codec: NalFormat['codec']): number {
  const header = nal[0]!
  if (codec === 'h264') return header & 0x1f
  const isBaseLayer = (header & 1) === 0 && (nal[1] ?? 0) >> 3 === 0
  return isBaseLayer ? (header >> 1) & 0x3f : -1
}
