/** Streams with missing delimiters and parameter sets, judged by ffmpeg and hls.js. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ContinuityCounters } from '../../../src/mpegts/mux/continuity-counters.ts'
import { Demuxer } from '../../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { readNalUnits } from '../../support/annex-b.ts'
import { decodeErrors, readDecoded } from '../../peers/support/media.ts'
import { requireTool } from '../../peers/support/tools.ts'
import { transmux } from '../../support/transmuxer.ts'
import { demux, payloadOf, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder, type PesFields } from '../ts-builder.ts'

const run = promisify(execFile)

const PID = 0x100
const START_CODE = Buffer.from([0, 0, 0, 1])

/** NAL unit types. */
const CODECS = {
  h264: {
    streamType: 0x1b,
    encode: ['-c:v', 'libx264', '-bf', '2', '-x264-params', 'keyint=15:min-keyint=15:open-gop=0'],
    delimiter: Buffer.from([0x09, 0xf0]),
    typeOf: (nal: Buffer) => nal[0]! & 0x1f,
    delimiterType: 9,
    setTypes: [7, 8],
  },
  h265: {
    streamType: 0x24,
    encode: ['-c:v', 'libx265', '-x265-params', 'keyint=15:min-keyint=15:open-gop=0:bframes=2'],
    delimiter: Buffer.from([0x46, 0x01, 0x50]),
    typeOf: (nal: Buffer) => (nal[0]! >> 1) & 0x3f,
    delimiterType: 35,
    setTypes: [32, 33, 34],
  },
} as const

type Nals = readonly Buffer[]
const byteStream = (nals: Nals) => Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))

/** NAL unit types to remove from key frames; parameter sets are removed after the first key frame only. */
interface Omission {
  readonly title: string
  readonly delimiter: boolean
  readonly sets: boolean
  readonly length: PesFields['length']
}
const OMISSIONS: readonly Omission[] = [
  { title: 'nothing', delimiter: false, sets: false, length: 'none' },
  { title: 'parameter sets', delimiter: false, sets: true, length: 'none' },
  { title: 'the delimiter', delimiter: true, sets: false, length: 'true' },
  { title: 'delimiter and parameter sets', delimiter: true, sets: true, length: 'true' },
]

for (const [name, codec] of Object.entries(CODECS)) {
  t.test(`${name}: key frames without …`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const source = join(t.testdir(), 'source.mpegts')
    const input = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=30', '-t', '2']
    const encoder = [...codec.encode, '-preset', 'ultrafast']
    await run('ffmpeg', ['-v', 'error', ...input, ...encoder, '-f', 'mpegts', source])
    const units = unitsOf(demux(await readFile(source)))
    const decoded = (await readDecoded(source)).video
    t.equal(decoded.length, 60)

    for (const { title, ...omission } of OMISSIONS) {
      t.test(title, async (t) => {
        const { bytes, expected } = omit(units, codec, omission)
        const found = unitsOf(demux(bytes))
        t.strictSame(
          found.map(({ randomAccess }) => randomAccess),
          units.map(({ randomAccess }) => randomAccess),
        )
        t.strictSame(
          found.filter((unit, index) => !payloadOf(unit).equals(expected[index]!)),
          [],
          'elementary bytes are those sent, and what was missing',
        )
        await checkSegments(t, found, { decoded, streamType: codec.streamType })
      })
    }
  })
}

/** Units of an encoder that omits NAL units, with the expected result of each. */
function omit(
  units: readonly PesUnit[],
  { streamType, typeOf, delimiterType, setTypes, delimiter }: (typeof CODECS)[keyof typeof CODECS],
  omission: Omit<Omission, 'title'>,
) {
  const ts = new TsBuilder().program([{ pid: PID, streamType }])
  const isSet = (nal: Buffer) => setTypes.some((type) => type === typeOf(nal))
  const isDelimiter = (nal: Buffer) => typeOf(nal) === delimiterType
  const sets = readNalUnits(payloadOf(units[0]!)).filter(isSet)
  const expected = units.map((unit, index) => {
    const { ptsTicks, dtsTicks, randomAccess } = unit
    const omitsSets = randomAccess && omission.sets && index > 0
    const omitsDelimiter = randomAccess && omission.delimiter
    const nals = readNalUnits(payloadOf(unit))
    const rest = nals.filter((nal) => !isDelimiter(nal) && !(omitsSets && isSet(nal)))
    const sent = omitsDelimiter ? rest : [...nals.filter(isDelimiter), ...rest]
    const pes = pesPacket(byteStream(sent), { ptsTicks, dtsTicks, length: omission.length })
    ts.unit(PID, pes)
    const first = omitsDelimiter ? [delimiter] : nals.filter(isDelimiter)
    return byteStream([...first, ...(omitsSets ? sets : []), ...rest])
  })
  return { bytes: ts.bytes, expected }
}

/** Checks that each GOP decodes alone, and that all together decode to the frames of the source. */
async function checkSegments(
  t: Test,
  units: readonly PesUnit[],
  { decoded, streamType }: { decoded: readonly string[]; streamType: number },
) {
  const starts = units.flatMap(({ randomAccess }, index) => (randomAccess ? [index] : []))
  const psi = new TsBuilder().program([{ pid: PID, streamType }]).bytes
  const counters = new ContinuityCounters()
  const segments = starts.map((start, number) => {
    const chunks = units.slice(start, starts[number + 1]).flatMap(({ chunks }) => chunks)
    const bytes = Buffer.concat([psi, ...chunks])
    counters.renumber(bytes, 0, bytes.length)
    return bytes
  })
  const folder = t.testdir()
  const shown: string[] = []
  for (const [number, bytes] of segments.entries()) {
    const file = join(folder, `${number}.mpegts`)
    await writeFile(file, bytes)
    t.equal(await decodeErrors(file), '', `ffmpeg decodes segment ${number} alone in silence`)
    shown.push(...(await readDecoded(file)).video)
    const { videoFrames, independent, complaints } = transmux([
      { bytes, durationSec: 0.5, discontinuity: false },
    ])
    t.same(
      { videoFrames, independent, complaints },
      { videoFrames: 15, independent: true, complaints: [] },
    )
  }
  t.strictSame(shown, decoded, 'the decoded frames are the same')
}

const SPS = Buffer.from('6742c00dda05067e7c0440000003004000000f03c50aa8', 'hex')
const PPS = Buffer.from('68ce0fc8', 'hex')
const OTHER_SPS = Buffer.from('6742c00bda02832d34078f100000030010000003009e2c5d40', 'hex')
const AUD = Buffer.from([0x09, 0xf0])
const IDR = Buffer.concat([Buffer.from([0x65, 0x88, 0x84]), Buffer.alloc(600, 0x5a)])
const P_SLICE = Buffer.concat([Buffer.from([0x41, 0x9a, 0x24]), Buffer.alloc(300, 0x5b)])

/** Demuxes access units of one PES packet each. @returns the NAL units of each output */
function complete(accessUnits: readonly Nals[], edit = (packets: readonly Buffer[]) => packets) {
  const ts = new TsBuilder().program([{ pid: PID, streamType: 0x1b }])
  for (const [index, nals] of accessUnits.entries()) {
    ts.unit(PID, pesPacket(byteStream(nals), { ptsTicks: 3000 * (index + 1), length: 'none' }))
  }
  const units = unitsOf(demux(Buffer.concat(edit(ts.packets))))
  return {
    nals: units.map((unit) => readNalUnits(payloadOf(unit))),
    keys: units.map(({ randomAccess }) => randomAccess),
    units,
  }
}

t.test('a key frame is no random access point while its parameter sets are unknown', async (t) => {
  const { nals, keys } = complete([
    [AUD, IDR],
    [AUD, SPS, IDR],
    [AUD, SPS, PPS, IDR],
    [AUD, IDR],
  ])
  t.strictSame(keys, [false, false, true, true])
  t.strictSame(nals[3], [AUD, SPS, PPS, IDR])
  t.strictSame(nals[0], [AUD, IDR], 'and stays as it came')
})

t.test('parameter sets in access units between key frames are remembered', async (t) => {
  const { nals, keys } = complete([
    [AUD, SPS, P_SLICE],
    [AUD, PPS, P_SLICE],
    [AUD, IDR],
  ])
  t.strictSame(keys, [false, false, true])
  t.strictSame(nals[2], [AUD, SPS, PPS, IDR])
})

t.test('a key frame gets the latest parameter set of each id', async (t) => {
  const second = Buffer.from([0x68, 0x5e, 0x0f, 0xc8]) // pic_parameter_set_id 1
  const changed = Buffer.from([0x68, 0xce, 0x0f, 0xc9])
  const { nals } = complete([
    [AUD, SPS, PPS, second, IDR],
    [AUD, changed, P_SLICE],
    [AUD, IDR],
  ])
  t.strictSame(nals[2], [AUD, SPS, second, changed, IDR])
})

t.test('a changed SPS invalidates the remembered PPS', async (t) => {
  const { nals, keys } = complete([
    [AUD, SPS, PPS, IDR],
    [AUD, OTHER_SPS, IDR],
    [AUD, OTHER_SPS, PPS, IDR],
    [AUD, IDR],
  ])
  t.strictSame(keys, [true, false, true, true])
  t.strictSame(nals[3], [AUD, OTHER_SPS, PPS, IDR])
})

t.test('inserted parameter sets follow those they refer to', async (t) => {
  const { nals } = complete([
    [AUD, SPS, PPS, IDR],
    [AUD, SPS, IDR],
    [AUD, PPS, IDR],
  ])
  t.strictSame(nals[1], [AUD, SPS, PPS, SPS, IDR])
  t.strictSame(nals[2], [AUD, SPS, PPS, PPS, IDR])
})

t.test('a damaged PES packet neither gives nor receives parameter sets', async (t) => {
  const accessUnits = [
    [AUD, SPS, PPS, IDR],
    [AUD, IDR],
    [AUD, SPS, PPS, IDR],
    [AUD, IDR],
  ]
  // PAT, PMT, then four packets per access unit; the last but one of the first two is lost.
  const { nals, keys, units } = complete(accessUnits, (packets) =>
    packets.filter((_, index) => index !== 4 && index !== 8),
  )
  t.strictSame(
    units.map(({ damaged }) => damaged),
    [true, true, false, false],
  )
  t.strictSame(keys.slice(2), [true, true])
  t.same(nals[1]!.length, 2, 'nothing inserted')
  t.strictSame(nals[3], [AUD, SPS, PPS, IDR])
})

t.test('the remembered parameter sets of a hostile encoder are limited', async (t) => {
  const long = (id: number) => Buffer.concat([Buffer.from([0x68, id]), Buffer.alloc(3000, 0x11)])
  const many = Array.from({ length: 100 }, (_, id) => long((0x80 >> (id % 7)) | id))
  const { units } = complete([
    [AUD, SPS, PPS, ...many, IDR],
    [AUD, IDR],
  ])
  t.ok(units[1]!.sizeBytes < 20_000)
})

t.test('an insertion rewrites only the packets up to its place (2.4.3.5)', async (t) => {
  const pcr = Buffer.from('000000000000', 'hex')
  const pes = (nals: Nals) => pesPacket(byteStream(nals), { ptsTicks: 3000, length: 'none' })
  const ts = new TsBuilder()
    .program([{ pid: PID, streamType: 0x1b }])
    .unit(PID, pes([AUD, SPS, PPS, IDR]))
  const from = ts.packets.length
  const [head, tail] = [pes([IDR]).subarray(0, 100), pes([IDR]).subarray(100)]
  ts.packet({ pid: PID, payload: head, unitStart: true, adaptation: pcr, adaptationFlags: 0x50 })
  ts.unit(PID, tail)
  ts.packets[from + 1]![1]! &= ~0x40
  const { bytes } = ts
  const [, unit] = unitsOf(demux(bytes, [bytes.length]))
  const [made, rest] = unit!.chunks
  t.equal(unit!.chunks.length, 2)
  t.equal(rest!.buffer, bytes.buffer, 'the others are views')
  t.equal(made![5], 0x50, 'PCR and flags stay on the first packet')
  t.strictSame(made!.subarray(6, 12), pcr)
  t.ok(made!.subarray(188).every((byte, at) => at % 188 !== 1 || (byte & 0x40) === 0))
  t.strictSame(readNalUnits(payloadOf(unit!)), [AUD, SPS, PPS, IDR])
})

t.test(
  'PES_packet_length grows with an insertion, and becomes 0 above its maximum (2.4.3.7)',
  async (t) => {
    const lengths = (filling: number) => {
      const idr = Buffer.concat([IDR, Buffer.alloc(filling, 0x5c)])
      const ts = new TsBuilder().program([{ pid: PID, streamType: 0x1b }])
      const pes = [[AUD, SPS, PPS, IDR], [idr]].map((nals) =>
        pesPacket(byteStream(nals), { ptsTicks: 3000 }),
      )
      for (const bytes of pes) ts.unit(PID, bytes)
      const [, unit] = unitsOf(demux(ts.bytes))
      const payloadAt = 188 - 184
      return {
        sent: pes[1]!.readUInt16BE(4),
        left: unit!.chunks[0]!.readUInt16BE(payloadAt + 4),
        added: payloadOf(unit!).length - byteStream([idr]).length,
      }
    }
    const small = lengths(0)
    t.equal(small.left, small.sent + small.added)
    t.equal(small.added, byteStream([AUD, SPS, PPS]).length)
    t.equal(lengths(64_900).left, 0)
  },
)

t.test('insertions are the same for any pieces of the input', async (t) => {
  const ts = new TsBuilder().program([{ pid: PID, streamType: 0x1b }])
  for (const nals of [[AUD, SPS, PPS, IDR], [IDR], [AUD, IDR]]) {
    ts.unit(PID, pesPacket(byteStream(nals), { ptsTicks: 3000, length: 'none' }))
  }
  const whole = unitsOf(demux(ts.bytes, [1e6])).map(payloadOf)
  for (const size of [1, 188, 1000]) {
    t.strictSame(unitsOf(demux(ts.bytes, [size], new Demuxer())).map(payloadOf), whole)
  }
})
