/** Faults of media, and what is no media. */
import t from 'tap'
import { inspectMedia } from '../../../src/check/media/inspect.ts'
import { readFixture } from '../../mpegts/demux.ts'
import type { Sample } from '../../../src/mp4/sample.ts'
import type { VideoFormat } from '../../../src/mp4/video-format.ts'
import { fragment, readAudio, readVideo, unitsOfKind } from '../../mp4/fragmented-track.ts'
import { listBoxes } from '../../mp4/box-tree.ts'
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

const H265 = readVideo(unitsOfKind(readFixture('h265-aac'), 'video'), 'h265')

t.test('tells decode times and durations of fMP4 in ticks, and the sample entry', async (t) => {
  const audio = readAudio(unitsOfKind(readFixture('mp3'), 'audio'), { codec: 'mp3' })
  for (const [samples, sampleEntry, ticksPerSec] of [
    [H265, 'hvc1', 90_000],
    [audio, 'mp4a', 48_000],
  ] as const) {
    const { init, fragments } = fragment(samples)
    for (const { chunks, decodeTicks, durationTicks } of fragments) {
      const { tracks, faults } = inspectMedia(Buffer.concat(chunks), { ...PLAIN, init })
      const nextTicks = decodeTicks + durationTicks
      const decodeTimes = { ticksPerSec, firstTicks: decodeTicks, nextTicks, durationTicks }
      t.match(tracks, [{ sampleEntry, decodeTimes }])
      t.same(faults, [])
    }
  }
})

t.test('finds parameter sets of the base layer in samples of H.265', async (t) => {
  const kindsOf = (nal: string) => {
    const bytes = Buffer.from(nal, 'hex')
    const [first, ...rest] = H265
    const chunks = [...first!.chunks, bytes]
    const edited = [{ ...first!, chunks, sizeBytes: first!.sizeBytes + bytes.length }, ...rest]
    const { file } = fragment(edited)
    return inspectMedia(file, PLAIN).faults
  }
  const text = (name: string) => `track 1 is hvc1, and its samples have ${name}`
  for (const [header, name] of Object.entries({ 4001: 'VPS', 4201: 'SPS', 4401: 'PPS' })) {
    t.same(kindsOf(`00000003${header}ff`), [{ kind: 'parameter-sets', text: text(name) }])
  }
  t.same(kindsOf('00000003420900'), [], 'nuh_layer_id 1')
  t.same(kindsOf('000000034601ff'), [], 'access unit delimiter')
  t.same(kindsOf('00000000'), [], 'no NAL unit')
})

t.test('takes the codec of hev1 from the samples if the sample entry has no SPS', async (t) => {
  const [{ format }] = H265 as [Sample<VideoFormat>]
  const { parameterSets, sequence } = format
  const nals = parameterSets.flatMap(({ nal }) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(nal.length)
    return [length, nal]
  })
  const sizeBytes = Buffer.concat(nals).length
  const samples = H265.map((sample) =>
    sample.sync
      ? { ...sample, chunks: [...nals, ...sample.chunks], sizeBytes: sample.sizeBytes + sizeBytes }
      : sample,
  )
  const { init, fragments } = fragment(samples)
  init.write('hev1', init.indexOf('hvc1'), 'latin1')
  const sps = parameterSets.find(({ kind }) => kind === 'sps')!
  // 14496-15 8.3.3.1.2: the array of SPS becomes one of SEI.
  init[init.indexOf(sps.nal) - 5] = 0xa7
  const bytes = Buffer.concat(fragments.flatMap(({ chunks }) => chunks))
  const { width, height, codecString } = sequence.video
  const codec = codecString.replace('hvc1', 'hev1')
  t.match(inspectMedia(bytes, { ...PLAIN, init }), {
    tracks: [{ sampleEntry: 'hev1', codec, width, height }],
    faults: [],
  })
})

t.test('samples begin and end inside of mdat, to the byte', async (t) => {
  const { init, fragments } = fragment(H265)
  const inspectMoved = (bytes: number) => {
    const part = Buffer.concat(fragments[0]!.chunks)
    const trun = listBoxes(part).find(({ path }) => path.endsWith('trun'))!
    const at = trun.at + 16
    part.writeInt32BE(part.readInt32BE(at) + bytes, at)
    return inspectMedia(part, { ...PLAIN, init }).faults.map(({ kind }) => kind)
  }
  t.same(inspectMoved(0), [])
  t.same(inspectMoved(1), ['box'])
  t.same(inspectMoved(-1), ['box'])
})
