/** Conversion of LATM to ADTS. */
import t from 'tap'
import { Demuxer, type DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import { frame, loas, type MuxFields } from '../../codec/latm-builder.ts'
import { demux, payloadOf, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const LATM = { pid: 0x100, streamType: 0x11 }

/** Demuxes PES packets of the given LOAS frames. */
function convert(...units: Buffer[][]) {
  const ts = new TsBuilder().program([LATM])
  for (const [index, frames] of units.entries()) {
    ts.unit(LATM.pid, audioPes(frames, 3000 * (index + 1)))
  }
  const demuxer = new Demuxer()
  const outputs = demux(ts.bytes, undefined, demuxer)
  return { outputs, units: unitsOf(outputs), stats: demuxer.stats }
}

function audioPes(frames: readonly Buffer[], ptsTicks: number): Buffer {
  return pesPacket(Buffer.concat(frames), { ptsTicks, streamId: 0xc0 })
}

const codecsOf = (outputs: readonly DemuxerOutput[]) =>
  outputs.flatMap((output) =>
    output.type === 'unit'
      ? [output.unit.track.codec + (output.unit.damaged ? ' damaged' : '')]
      : output.type === 'program' && output.layoutChanged
        ? ['changed']
        : [],
  )

t.test('LATM before the first StreamMuxConfig is dropped and counted', async (t) => {
  const { units, stats } = convert(
    [loas(undefined, frame(1, 9))],
    [loas({}, frame(2, 9))],
    [loas(undefined, frame(3, 9))],
  )
  t.strictSame(
    units.map(({ ptsTicks }) => ptsTicks),
    [6000, 9000],
  )
  t.match(stats, { unconfiguredUnits: 1, units: 2 })
})

t.test('LATM that ADTS cannot express stays LATM, after a layout change', async (t) => {
  const cases: [string, Buffer[]][] = [
    ['two programs', [loas({ programs: 2 }, frame(1, 9))]],
    ['a frame that goes on in the next PES', [loas({}, frame(1, 90)).subarray(0, 50)]],
  ]
  for (const [title, sent] of cases) {
    const { outputs, units } = convert(sent, sent)
    t.strictSame(codecsOf(outputs), ['changed', 'aac-latm', 'aac-latm'], title)
    t.strictSame(units.map(payloadOf), [Buffer.concat(sent), Buffer.concat(sent)])
    t.match(units[0]!.track, { streamType: 0x11, descriptors: Buffer.alloc(0) })
  }
})

t.test('a LATM PES packet that does not parse is damaged', async (t) => {
  const good = [loas({}, frame(1, 90))]
  const { outputs } = convert(good, [good[0]!.subarray(0, 50)], good)
  t.strictSame(codecsOf(outputs), ['aac', 'aac damaged', 'aac'])
})

t.test('a StreamMuxConfig that ADTS cannot express ends the conversion', async (t) => {
  const other: MuxFields = { layers: 2 }
  const { outputs } = convert([loas({}, frame(1, 9))], [loas(other, frame(2, 9))])
  t.strictSame(codecsOf(outputs), ['aac', 'changed', 'aac-latm'])
})

t.test('the conversion continues when the program map changes the language', async (t) => {
  const french = { ...LATM, descriptors: Buffer.from([0x0a, 4, 0x66, 0x72, 0x61, 0]) }
  const ts = new TsBuilder()
    .program([LATM])
    .unit(LATM.pid, audioPes([loas({}, frame(1, 9))], 3000))
    .program([french])
    .unit(LATM.pid, audioPes([loas(undefined, frame(2, 9))], 6000))
  const outputs = demux(ts.bytes)
  t.strictSame(codecsOf(outputs), ['aac', 'aac'])
  t.match(unitsOf(outputs)[1]!.track, { language: 'fra', streamType: 0x0f, codec: 'aac' })
})

t.test('PCR and flags of the first packet are kept at any length (2.4.3.5)', async (t) => {
  const pcr = Buffer.from('0123456789ab', 'hex')
  for (const length of [1, 140, 141, 147, 148, 149, 150, 160, 170, 171, 400, 2000]) {
    const pes = audioPes([loas({ version: 1 }, frame(0x5a, length))], 3000)
    const ts = new TsBuilder().program([LATM], { pcrPid: LATM.pid })
    const [head, tail] = [pes.subarray(0, 176), pes.subarray(176)]
    const clock = { adaptation: pcr, adaptationFlags: 0x50 }
    ts.packet({ pid: LATM.pid, payload: head, unitStart: true, ...clock })
    for (let at = 0; at < tail.length; at += 184) {
      ts.packet({ pid: LATM.pid, payload: tail.subarray(at, at + 184) })
    }
    const [unit] = unitsOf(demux(ts.bytes))
    const [made] = unit!.chunks
    t.equal(made![5], 0x50)
    t.strictSame(made!.subarray(6, 12), pcr)
    t.strictSame(payloadOf(unit!).subarray(7), frame(0x5a, length))
    const headerAt = 5 + made![4]!
    t.equal(made!.readUInt16BE(headerAt + 4), 3 + 5 + 7 + length, 'PES_packet_length')
  }
})
