/** Limits on the cost of table changes. */
import t from 'tap'
import { Demuxer } from '../../../src/mpegts/demux/demuxer.ts'
import { patSection, pmtSection, TsBuilder } from '../ts-builder.ts'

const MAP_PID = 0x1000

/** PMT with a number of streams, whose PIDs depend on the version. */
function pmt(version: number, streams = 1): Buffer {
  const entries = Array.from({ length: streams }, (_, index) => ({
    pid: 0x100 + index + version,
    streamType: 0x1b,
  }))
  return pmtSection(1, 0x100, entries, { version })
}

function nullPackets(count: number): TsBuilder {
  const ts = new TsBuilder()
  for (let index = 0; index < count; index++) ts.packet({ pid: 0x1fff, payload: Buffer.alloc(184) })
  return ts
}

t.test('an occasionally changing program map is followed', async (t) => {
  const demuxer = new Demuxer()
  const ts = new TsBuilder().sections(0, patSection([[1, MAP_PID]]))
  for (let version = 0; version < 32; version++) ts.sections(MAP_PID, pmt(version))
  const outputs = demuxer.push(ts.bytes)
  t.equal(outputs.filter(({ type }) => type === 'program').length, 32)
  t.equal(demuxer.stats.unpaidTables, 0)
})

t.test('a program map that changes with each packet is ignored until it stays', async (t) => {
  const demuxer = new Demuxer()
  const maps = Array.from({ length: 32 }, (_, version) => pmt(version, 30))
  const ts = new TsBuilder().sections(0, patSection([[1, MAP_PID]]))
  for (let index = 0; index < 3200; index++) ts.sections(MAP_PID, maps[index % 32]!)
  const programs = demuxer.push(ts.bytes).filter(({ type }) => type === 'program').length
  t.ok(programs < 70, `${programs} of 3200 changes were followed`)
  t.ok(demuxer.stats.unpaidTables > 3000, `${demuxer.stats.unpaidTables} were passed over`)

  demuxer.push(nullPackets(1000).bytes)
  demuxer.push(new TsBuilder().sections(MAP_PID, pmt(31, 2)).bytes)
  t.strictSame(
    demuxer.program?.tracks.map(({ pid }) => pid),
    [0x100 + 31, 0x101 + 31],
    'once it stands',
  )
})

t.test('a large PAT is read as often as table credit permits', async (t) => {
  const demuxer = new Demuxer()
  for (let number = 0; number < 8; number++) {
    const programs = Array.from({ length: 253 }, (_, index): [number, number] => [
      1 + number * 253 + index,
      0x20 + number * 253 + index,
    ])
    const place = { sectionNumber: number, lastSectionNumber: 7 }
    demuxer.push(new TsBuilder().sections(0, patSection(programs, place)).bytes)
  }
  t.equal(demuxer.programNumbers.length, 8 * 253)
  let changes = 0
  for (let round = 0; round < 4000; round++) {
    const before = demuxer.programNumbers
    const place = { sectionNumber: 0, lastSectionNumber: 7 }
    demuxer.push(new TsBuilder().sections(0, patSection([[1 + (round & 1), 0x20]], place)).bytes)
    if (demuxer.programNumbers !== before) changes++
  }
  t.ok(changes > 0 && changes < 25, `${changes} of 4000 changes were followed`)
})
