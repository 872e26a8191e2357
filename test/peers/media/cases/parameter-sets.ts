/**
 * Parameter sets that change: no sample entry of CMAF has two PPS of one id.
 *
 * @module
 */
import { BitReader } from '../../../../src/binary/bit-reader.ts'
import { unescapeNal } from '../../../../src/codec/annex-b.ts'
import { NAL_HEADER_BYTES, isSlice, nalRole } from '../../../../src/codec/nal-unit.ts'
import type { VideoCodec } from '../../../../src/codec/parameter-sets.ts'
import { BitWriter, nalUnit } from '../../../codec/nal-builder.ts'
import { editNalUnits, split, type Clip } from '../../../mpegts/edit.ts'
import type { MediaCase } from '../media-case.ts'
import { h265, usual, USUAL } from '../sources.ts'

const GOP_FRAMES = 60

/** Place in the GOP of a frame before which another PPS is sent. */
const CHANGE_AT = 15

const TWO_TIMELINES = { ...USUAL, tracks: [USUAL.tracks, USUAL.tracks] }

export const PARAMETER_SETS: readonly MediaCase[] = [
  {
    name: 'pps-in-a-gop',
    input: 'a PPS that is sent again within each GOP, with other content',
    make: async (clips) =>
      editPps(await usual(clips), 'h264', (pps, unit) =>
        unit % GOP_FRAMES === CHANGE_AT ? [offsetChroma(pps, 'h264', -4)] : [],
      ),
    playlist: TWO_TIMELINES,
    discontinuities: [1],
    warnings: ['PARAMETER_SETS_VARY'],
    cmaf: { findings: ['PARAMETER_SETS_IN_BAND'], inBandSets: true },
  },
  {
    name: 'pps-in-a-gop-h265',
    input: 'the same of H.265',
    make: async (clips) => {
      const clip = editPps(await h265(clips), 'h265', (pps, unit) =>
        unit % GOP_FRAMES === CHANGE_AT ? [offsetChroma(pps, 'h265', -4)] : [],
      )
      return { steps: [clip], originals: split(clip, GOP_FRAMES) }
    },
    playlist: { ...TWO_TIMELINES, tracks: ['256:24,257:f', '256:24,257:f'] },
    discontinuities: [1],
    warnings: ['PARAMETER_SETS_VARY'],
    cmaf: { findings: ['PARAMETER_SETS_IN_BAND'], inBandSets: true },
  },
  {
    name: 'pps-of-each-gop',
    input: 'a PPS with other content at each key frame',
    make: async (clips) =>
      editPps(await usual(clips), 'h264', (pps, unit) =>
        unit % GOP_FRAMES === 0 ? [offsetChroma(pps, 'h264', unit / GOP_FRAMES)] : [],
      ),
    playlist: TWO_TIMELINES,
    discontinuities: [1],
    warnings: ['PARAMETER_SETS_VARY'],
    cmaf: { inBandSets: true },
  },
  {
    name: 'pps-of-another-id',
    input: 'a PPS of another id within each GOP, for the frames from there on',
    make: async (clips) => {
      const clip = editPps(await usual(clips), 'h264', (pps, unit) =>
        unit % GOP_FRAMES === CHANGE_AT ? [renumber(offsetChroma(pps, 'h264', -4), 0)] : [],
      )
      return editNalUnits(clip, (nalUnits, unit) =>
        unit % GOP_FRAMES < CHANGE_AT
          ? nalUnits
          : nalUnits.map((nal) => (isSlice(nalRole('h264', nal[0]!)) ? renumber(nal, 2) : nal)),
      )
    },
    playlist: TWO_TIMELINES,
    discontinuities: [1],
    cmaf: { findings: ['PARAMETER_SETS_IN_BAND'], inBandSets: true },
  },
]

/** Replaces the PPS of a frame, or inserts one before its first slice. @param edit  takes the first PPS of the clip */
function editPps(
  clip: Clip,
  codec: VideoCodec,
  edit: (pps: Buffer, unit: number) => readonly Buffer[],
): Clip {
  const roleOf = (nal: Buffer) => nalRole(codec, nal[0]!, nal[1])
  let first: Buffer | undefined
  return editNalUnits(clip, (nalUnits, unit) => {
    first ??= nalUnits.find((nal) => roleOf(nal) === 'pps')
    const sets = edit(first!, unit)
    if (sets.length === 0) return nalUnits
    const others = nalUnits.filter((nal) => roleOf(nal) !== 'pps')
    const at = others.findIndex((nal) => ['slice', 'sync'].includes(roleOf(nal)))
    return others.toSpliced(at, 0, ...sets)
  })
}

/** Adds to the quantizer of chroma in a PPS: slices parse as before, and decode to other colors. */
function offsetChroma(pps: Buffer, codec: VideoCodec, offset: number): Buffer {
  const { header, bits, reader } = openNal(pps, codec)
  const skipCodes = (count: number) => {
    for (let code = 0; code < count; code++) reader.readUe()
  }
  skipCodes(2) // pic_parameter_set_id, seq_parameter_set_id
  if (codec === 'h264') {
    reader.skipBits(2)
    skipCodes(3) // one slice group, and default numbers of references
    reader.skipBits(3)
    skipCodes(2) // pic_init_qp, pic_init_qs
  } else {
    reader.skipBits(7)
    skipCodes(3) // default numbers of references, init_qp
    reader.skipBits(2)
    if (reader.readFlag()) skipCodes(1) // diff_cu_qp_delta_depth
  }
  const from = reader.position
  const value = reader.readSe() + offset
  return replaceBits({ header, bits }, [from, reader.position], new BitWriter().se(value))
}

/** Makes the id of a PPS, or of the PPS of a slice, 1. @param before  number of codes before the id */
function renumber(nal: Buffer, before: number): Buffer {
  const { header, bits, reader } = openNal(nal, 'h264')
  for (let code = 0; code < before; code++) reader.readUe()
  const from = reader.position
  reader.readUe()
  return replaceBits({ header, bits }, [from, reader.position], new BitWriter().ue(1))
}

interface NalBits {
  readonly header: readonly number[]
  /** Without the stop bit. */
  readonly bits: string
}

function openNal(nal: Buffer, codec: VideoCodec): NalBits & { readonly reader: BitReader } {
  const headerBytes = NAL_HEADER_BYTES[codec]
  const payload = unescapeNal(nal.subarray(headerBytes))
  const bits = [...payload].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return {
    header: [...nal.subarray(0, headerBytes)],
    bits: bits.slice(0, bits.lastIndexOf('1')),
    reader: new BitReader(payload),
  }
}

function replaceBits(
  { header, bits }: NalBits,
  [from, to]: readonly [number, number],
  { bits: others }: BitWriter,
): Buffer {
  const writer = new BitWriter()
  writer.bits = bits.slice(0, from) + others + bits.slice(to)
  return nalUnit(header, writer)
}
