/** Classification of access units: random access points, frames and fields, captions. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ContinuityCounters } from '../../../src/mpegts/mux/continuity-counters.ts'
import type { DemuxerOutput } from '../../../src/mpegts/demux/demuxer-output.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { BitWriter, byteStream, nalUnit } from '../../codec/nal-builder.ts'
import { decodeErrors } from '../../peers/support/media.ts'
import { requireTool } from '../../peers/support/tools.ts'
import { demux, payloadOf, programsOf, readFixture, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const run = promisify(execFile)

const H264 = { pid: 0x100, streamType: 0x1b }
const H265 = { pid: 0x100, streamType: 0x24 }

/** x265 settings with pyramids of B-frames, the leading pictures of a key frame, and whether they decode from there. */
const X265 = [
  ['closed GOPs', 'open-gop=0', false, true],
  ['closed GOPs with RADL pictures', 'open-gop=0:radl=3', true, true],
  ['open GOPs: RASL pictures', 'open-gop=1', false, false],
] as const

for (const [title, params, hasDecodableLeading, decodesAlone] of X265) {
  t.test(
    `H.265, ${title}: random access points and leading pictures are those that ffmpeg decodes`,
    async (t) => {
      if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
      const folder = t.testdir()
      const [source, alone] = [join(folder, 'source.mpegts'), join(folder, 'alone.mpegts')]
      const gop = `keyint=30:min-keyint=30:scenecut=0:bframes=4:b-pyramid=1:b-adapt=0:${params}`
      const encoder = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', gop]
      const input = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=30', '-t', '3']
      await run('ffmpeg', ['-v', 'error', ...input, ...encoder, '-f', 'mpegts', source])
      const units = unitsOf(demux(await readFile(source)))
      t.equal(
        units.some(({ decodableLeading }) => decodableLeading),
        hasDecodableLeading,
      )
      t.ok(units.every(({ startsFrame, gradualRefresh }) => startsFrame && !gradualRefresh))
      const starts = units.flatMap(({ randomAccess }, index) => (randomAccess ? [index] : []))
      t.ok(starts.length > 2)
      for (const [number, start] of starts.entries()) {
        const gop = units.slice(start, starts[number + 1])
        const lost = gop.filter(
          ({ ptsTicks, decodableLeading }) => ptsTicks < gop[0]!.ptsTicks && !decodableLeading,
        )
        t.equal(lost.length === 0, decodesAlone || number === 0)
        await writeFile(alone, remux(gop, H265))
        t.equal(await countDecoded(alone), gop.length - lost.length)
        t.equal(await decodeErrors(alone), '')
      }
    },
  )
}

/** Counts the decoded frames of a file; ffmpeg itself would drop those of negative time. */
async function countDecoded(file: string): Promise<number> {
  const count = ['-count_frames', '-show_entries', 'program_stream=:stream=nb_read_frames']
  const { stdout } = await run('ffprobe', ['-v', 'error', ...count, '-of', 'csv=p=0', file])
  return Number.parseInt(stdout, 10)
}

/** Muxes units into a stream. */
function remux(units: readonly PesUnit[], stream: typeof H264): Buffer {
  const psi = new TsBuilder().program([stream]).bytes
  const bytes = Buffer.concat([psi, ...units.flatMap(({ chunks }) => chunks)])
  new ContinuityCounters().renumber(bytes, 0, bytes.length)
  return bytes
}

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

/** Creates an SEI message with one construct of ATSC captions (CTA-708 4.4). */
function captions({ process = 1, valid = 1, identifier = 'GA94' } = {}): Buffer {
  const bits = new BitWriter().u(8, 4).u(8, 14).u(8, 0xb5).u(16, 0x31)
  for (const letter of identifier) bits.u(8, letter.charCodeAt(0))
  bits.u(8, 3).u(1, 1).u(1, process).u(1, 0).u(5, 1).u(8, 0xff)
  return nalUnit([0x06], bits.u(5, 31).u(1, valid).u(2, 0).u(8, 0x94).u(8, 0x2c).u(8, 0xff))
}

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

t.test('captions are found in the streams where ffprobe finds them', async (t) => {
  if (!requireTool(t, 'ffprobe')) return
  const file = join(t.testdir(), 'captions.mpegts')
  for (const [name, stream, head] of [
    ['h264-aac', H264, []],
    ['h265-aac', H265, [39 << 1, 1]],
  ] as const) {
    const units = unitsOf(demux(readFixture(name)), 0x100)
    const ts = new TsBuilder().program([stream])
    for (const unit of units) {
      const bytes = payloadOf(unit)
      const sei =
        head.length === 0 ? captions() : Buffer.concat([Buffer.from(head), captions().subarray(1)])
      const behindAud = 4 + (head.length === 0 ? 2 : 3)
      const parts = [bytes.subarray(0, behindAud), byteStream(sei), bytes.subarray(behindAud)]
      const { ptsTicks, dtsTicks } = unit
      ts.unit(0x100, pesPacket(Buffer.concat(parts), { ptsTicks, dtsTicks, length: 'none' }))
    }
    await writeFile(file, ts.bytes)
    const show = ['-show_entries', 'frame_side_data=side_data_type', '-of', 'csv=p=0']
    const { stdout } = await run('ffprobe', ['-v', 'error', ...show, file])
    t.equal(stdout.match(/Closed Captions/g)?.length, units.length, name)
    t.equal(programsOf(demux(ts.bytes)).at(-1)!.tracks[0]!.parameters?.closedCaptions, true, name)
  }
})
