/** Faults of media, and what is no media. */
import t from 'tap'
import { inspectMedia } from '../../../src/check/media/inspect.ts'
import { readFixture } from '../../mpegts/demux.ts'
import { pesPacket, TsBuilder, tsPacket } from '../../mpegts/ts-builder.ts'

const PLAIN = { encryption: undefined, init: undefined }

t.test('recognizes encrypted media, WebVTT and what is no media', async (t) => {
  const bytes = readFixture('mp3')
  for (const encryption of ['AES-128', 'SAMPLE-AES', 'SAMPLE-AES-CTR']) {
    t.match(inspectMedia(bytes, { encryption, init: undefined }), {
      container: 'encrypted',
      tracks: [],
      faults: [],
    })
  }
  const text = (body: string) => inspectMedia(Buffer.from(body), PLAIN)
  t.equal(text('WEBVTT\n\n').container, 'webvtt')
  t.equal(text('\uFEFFWEBVTT\n').container, 'webvtt')
  t.match(text('<html>not found</html>'), { container: 'unknown', faults: [{ kind: 'format' }] })
  t.equal(text('').container, 'unknown')
})

const STREAMS = [
  { pid: 256, streamType: 0x1b },
  { pid: 257, streamType: 0x0f },
]

t.test('names the faults of transport packets', async (t) => {
  const whole = (pts: number | undefined = 0) => pesPacket(Buffer.alloc(300), { ptsTicks: pts })
  const kinds = (bytes: Buffer) => inspectMedia(bytes, PLAIN).faults.map(({ kind }) => kind)
  const good = () => new TsBuilder().program(STREAMS).unit(256, whole()).unit(256, whole(3000))
  t.same(kinds(good().bytes), [])
  t.same(kinds(Buffer.concat([good().bytes, Buffer.alloc(7)])), ['sync'])
  const unsynced = good().bytes
  unsynced[188 * 4] = 0x48
  t.ok(kinds(unsynced).includes('sync'))
  t.same(kinds(Buffer.concat(good().packets.toSpliced(3, 1))), ['continuity'])
  t.same(kinds(Buffer.concat(good().packets.toSpliced(2, 1))), ['pes-cut'])
  t.same(kinds(Buffer.concat(good().packets.slice(0, -1))), ['pes-cut'])
  t.same(kinds(Buffer.concat(good().packets.slice(2))), ['tables'])
  t.same(kinds(Buffer.concat(good().packets.toSpliced(1, 1))), ['tables'])
  const other = tsPacket({ pid: 17, payload: Buffer.alloc(184) })
  t.same(kinds(Buffer.concat([other, good().bytes])), ['table-order'])
  t.same(kinds(new TsBuilder().program(STREAMS).unit(256, pesPacket(Buffer.alloc(9))).bytes), [
    'pts',
  ])
  const broken = tsPacket({
    pid: 256,
    counter: 4,
    payload: Buffer.alloc(184),
    transportError: true,
  })
  t.same(kinds(Buffer.concat([good().bytes, broken])), ['transport-error'])
  const nothing = tsPacket({ pid: 0x1fff, payload: Buffer.alloc(184) })
  t.same(kinds(Buffer.concat([good().bytes, nothing])), ['null-packets'])
  const repeated = good().packets
  t.same(kinds(Buffer.concat(repeated.toSpliced(3, 0, repeated[2]!))), [], 'a repetition')
  t.ok(kinds(readFixture('two-programs')).includes('programs'))
})

t.test('tells first and last continuity counter of each PID', async (t) => {
  const builder = new TsBuilder().program(STREAMS)
  builder.unit(257, pesPacket(Buffer.alloc(1000), { ptsTicks: 0 }))
  const { counters } = inspectMedia(builder.bytes, PLAIN)
  t.same(counters.get(257), { first: 0, last: 5, announced: false })
  t.same([...counters.keys()], [0, 4096, 257])
})
