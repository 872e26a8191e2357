/** Streams with missing delimiters and parameter sets. */
import t from 'tap'
import { Demuxer } from '../../../src/mpegts/demux/demuxer.ts'
import { readNalUnits } from '../../support/annex-b.ts'
import { demux, payloadOf, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const PID = 0x100
const START_CODE = Buffer.from([0, 0, 0, 1])

type Nals = readonly Buffer[]
const byteStream = (nals: Nals) => Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))

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
