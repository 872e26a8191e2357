/** Classification of access units: random access points, frames and fields, captions. */
import t from 'tap'
import type { DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import { BitWriter, byteStream, nalUnit } from '../../codec/nal-builder.ts'
import { captions } from './captions.ts'
import { demux, readFixture, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const H264 = { pid: 0x100, streamType: 0x1b }

t.test('a recovery point of several frames is a gradual refresh (H.264 D.2.8)', async (t) => {
  const units = unitsOf(demux(readFixture('h264-intra-refresh')))
  t.strictSame(
    units.flatMap(({ gradualRefresh }, index) => (gradualRefresh ? [index] : [])),
    [15],
  )
  const openGop = unitsOf(demux(readFixture('h264-open-gop')))
  t.notOk(openGop.some(({ gradualRefresh }) => gradualRefresh))
})

/** Sequence parameter set of main profile, 320 x 192, `frame_num` of 4 bits; with or without field coding. */
const sps = (interlaced: boolean) =>
  nalUnit(
    [0x67],
    new BitWriter()
      .u(8, 77)
      .u(8, 0)
      .u(8, 21)
      .ue(0)
      .ue(0)
      .ue(2)
      .ue(1)
      .u(1, 0)
      .ue(19)
      .ue(interlaced ? 5 : 11)
      .u(1, interlaced ? 0 : 1)
      .u(1, 0)
      .u(interlaced ? 3 : 2, 0),
  )
const pps = nalUnit([0x68], new BitWriter().ue(0).ue(0).u(6, 0))
const aud = Buffer.from([0x09, 0xf0])
const exactRecovery = nalUnit([0x06], new BitWriter().u(8, 6).u(8, 1).ue(0).u(4, 0b1001).u(3, 0))

interface Slice {
  readonly idr?: boolean
  readonly intra?: boolean
  readonly frameNumber: number
  /** Parity of a field; undefined for a frame. */
  readonly field?: 'top' | 'bottom'
}

function slice({ idr = false, intra = idr, frameNumber, field }: Slice): Buffer {
  const bits = new BitWriter()
    .ue(0)
    .ue(intra ? 7 : 5)
    .ue(0)
    .u(4, frameNumber)
  bits.u(1, field === undefined ? 0 : 1)
  if (field !== undefined) bits.u(1, field === 'bottom' ? 1 : 0)
  return nalUnit([idr ? 0x65 : 0x41], bits.u(32, 0x55555555).u(32, 0x55555555))
}

/** Demuxes access units of one PES packet each. @returns a letter for each: K key frame, F frame, 2 second field */
function classify(interlaced: boolean, ...accessUnits: readonly Buffer[][]): string {
  const ts = new TsBuilder().program([H264])
  const sets = [sps(interlaced), pps]
  for (const [index, nals] of accessUnits.entries()) {
    const bytes = byteStream(aud, ...(index === 0 ? sets : []), ...nals)
    ts.unit(H264.pid, pesPacket(bytes, { ptsTicks: 1800 * (index + 1), length: 'none' }))
  }
  return unitsOf(demux(ts.bytes))
    .map(({ randomAccess, startsFrame }) => (randomAccess ? 'K' : startsFrame ? 'F' : '2'))
    .join('')
}

t.test(
  'the second field of a frame starts no frame and is no key frame (H.264 3.30, 7.4.3)',
  async (t) => {
    const idr = [slice({ idr: true, frameNumber: 0, field: 'top' })]
    const field = (frameNumber: number, field: 'top' | 'bottom', intra = false) => [
      slice({ frameNumber, field, intra }),
    ]
    t.equal(classify(true, idr, field(0, 'bottom'), field(1, 'top'), field(1, 'bottom')), 'K2F2')
    t.equal(
      classify(true, idr, [exactRecovery, ...field(0, 'bottom', true)]),
      'K2',
      'though it could be joined by its own account',
    )
    t.equal(
      classify(
        true,
        idr,
        field(0, 'bottom'),
        [exactRecovery, ...field(1, 'bottom', true)],
        field(1, 'top'),
      ),
      'K2K2',
      'either field may come first',
    )
    t.equal(
      classify(true, idr, field(1, 'bottom'), field(1, 'top')),
      'KF2',
      'the first one was alone',
    )
    t.equal(classify(true, idr, field(0, 'top')), 'KF', 'of the same parity')
    t.equal(classify(true, idr, idr), 'KK')
    t.equal(
      classify(true, idr, [slice({ frameNumber: 0 })], field(0, 'bottom')),
      'KFF',
      'a frame between',
    )
    const frame = (frameNumber: number) => [slice({ frameNumber })]
    t.equal(classify(false, [slice({ idr: true, frameNumber: 0 })], frame(0), frame(1)), 'KFF')
  },
)

t.test('a PES packet that continues an access unit starts no frame', async (t) => {
  const later = nalUnit([0x41], new BitWriter().ue(40).ue(5).u(32, 0x55555555).u(32, 0x55555555))
  t.equal(classify(false, [slice({ idr: true, frameNumber: 0 })], [later]), 'K2')
})

/** `closedCaptions` of the track in each `program` output; 'changed' for a changed layout. */
const captionsOf = (outputs: readonly DemuxerOutput[]) =>
  outputs.flatMap((output): unknown[] => {
    if (output.type !== 'program') return []
    return [output.layoutChanged ? 'changed' : output.program.tracks[0]!.parameters?.closedCaptions]
  })

t.test('the first captions make a new program with the same layout', async (t) => {
  const make = (...seis: (Buffer | undefined)[]) => {
    const ts = new TsBuilder().program([H264])
    for (const [index, sei] of seis.entries()) {
      const idr = index === 0 ? [sps(false), pps, slice({ idr: true, frameNumber: 0 })] : []
      const nals = [aud, ...(sei ? [sei] : []), ...idr, slice({ frameNumber: 1 })]
      ts.unit(H264.pid, pesPacket(byteStream(...nals), { ptsTicks: 3000 * index, length: 'none' }))
    }
    return captionsOf(demux(ts.bytes))
  }
  t.strictSame(make(undefined, undefined), [undefined, undefined])
  t.strictSame(make(undefined, captions(), undefined, captions()), [undefined, undefined, true])
  t.strictSame(make(captions(), undefined), [undefined, true])
  const none = [{ process: 0 }, { valid: 0 }, { identifier: 'DTG1' }].map((it) => captions(it))
  t.strictSame(make(undefined, ...none), [undefined, undefined])
  t.strictSame(make(undefined, captions().subarray(0, 12)), [undefined, undefined], 'cut off')
})

/** Demuxes key frames (K) and others (F), each behind its parameter sets. @returns marks of new parameters (n), in band (b) */
function changesOf(...accessUnits: readonly (readonly ['K' | 'F', ...Buffer[]])[]): string[] {
  const ts = new TsBuilder().program([H264])
  for (const [index, [kind, ...sets]] of accessUnits.entries()) {
    const picture = slice({ idr: kind === 'K', frameNumber: index })
    const times = { ptsTicks: 3000 * (index + 1) }
    ts.unit(H264.pid, pesPacket(byteStream(aud, ...sets, picture), { ...times, length: 'none' }))
  }
  return unitsOf(demux(ts.bytes)).map(({ newParameters, inBandSets }) =>
    [newParameters ? 'n' : '', inBandSets ? 'b' : ''].join(''),
  )
}

const ppsOf = (id: number, value: number) =>
  nalUnit([0x68], new BitWriter().ue(id).ue(0).u(6, value))

t.test('a PPS redefined once is in band for good: later ones are no change', async (t) => {
  const [a, b, c, second] = [ppsOf(0, 0), ppsOf(0, 1), ppsOf(0, 2), ppsOf(1, 0)]
  const [one, two] = [sps(false), sps(true)]
  t.same(changesOf(['K', one, a], ['K', one, a], ['K', one, b], ['K', one, c], ['K', one, a]), [
    ...['', '', 'nb', 'b', 'b'],
  ])
  t.same(
    changesOf(['K', one, a], ['F', b], ['F', a], ['K', one, a], ['F', c], ['K', one, a]),
    ['', 'b', 'b', 'nb', 'b', 'b'],
    'within a GOP',
  )
  t.same(changesOf(['K', one, a], ['F', second], ['K', one, a]), ['', '', 'n'], 'another id')
  t.same(
    changesOf(['K', one, a], ['K', one, b], ['K', two, a], ['F', second], ['K', two, a]),
    ['', 'nb', 'nb', 'b', 'b'],
    'a new SPS',
  )
})
