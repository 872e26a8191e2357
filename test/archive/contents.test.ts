/**
 * What the archive keeps of a stream beside CMAF: transport stream alone, date ranges, captions. In simulated time.
 */
import t from 'tap'
import { captions } from '../mpegts/demux/captions.ts'
import { spliceInsert } from '../mpegts/splice-builder.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'
import { segmentUris } from '../support/viewer.ts'
import { FOLDER, setUp } from './simulated-archive.ts'

const SEC = 90_000
const FRAMES_PER_SEC = 25
const PIDS = { video: 0x100, audio: 0x101, splices: 0x1f0 }
const TRACKS = [
  { pid: PIDS.video, streamType: 0x1b },
  { pid: PIDS.audio, streamType: 0x0f },
  { pid: PIDS.splices, streamType: 0x86, descriptors: Buffer.from('0504CUEI') },
]

/** A minute with captions, and a break of 4 s at each of these seconds, announced 2 s ahead. */
function encode(breaksAtSec: readonly number[]): Buffer {
  const ts = new TsBuilder()
  const ticksAt = (sec: number) => SEC + Math.round(sec * SEC)
  for (let frame = 0; frame < 60 * FRAMES_PER_SEC; frame++) {
    const sec = frame / FRAMES_PER_SEC
    const ptsTicks = ticksAt(sec)
    if (Number.isInteger(sec)) ts.program(TRACKS)
    if (breaksAtSec.includes(sec + 2))
      ts.sections(
        PIDS.splices,
        spliceInsert({
          eventId: sec + 2,
          ptsTicks: ticksAt(sec + 2),
          break: { durationTicks: 4 * SEC, autoReturn: true },
        }),
      )
    const picture = h264AccessUnit({ key: Number.isInteger(sec), sizeBytes: 600 })
    const withCaptions = Buffer.concat([
      picture.subarray(0, 6),
      START_CODE,
      captions(),
      picture.subarray(6),
    ])
    ts.unit(PIDS.video, pesPacket(withCaptions, { ptsTicks, length: 'none' }))
    if (frame % 4 === 0) ts.unit(PIDS.audio, pesPacket(adtsFrames(7), { ptsTicks, streamId: 0xc0 }))
  }
  return ts.bytes
}

const START_CODE = Buffer.from([0, 0, 0, 1])

/** Identifiers of date ranges. */
function dateRangesIn(playlist: string): string[] {
  return [...playlist.matchAll(/^#EXT-X-DATERANGE:ID="([^"]*)".*SCTE35-OUT=/gm)].map(
    ([, id]) => id!,
  )
}

t.test('transport stream, where the stream has no CMAF', async (t) => {
  const { begin, connect, run, store } = setUp({ formats: ['ts'] })
  const { stream, archive } = begin()
  const live = new Map<string, Buffer>()
  stream.on('segment', ({ uri, bytes }) => live.set(uri, Buffer.from(bytes)))
  const encoder = connect(stream)
  await run(20)
  encoder.isPaused = true
  await run(7)
  encoder.isPaused = false
  await run(15)
  stream.stop('api')
  await run(2)
  t.match(archive.reportOf(stream), { state: 'COMPLETE', gaps: 0, segments: live.size })
  const playlist = store.text('playlist.m3u8')
  t.match(playlist, '#EXT-X-PLAYLIST-TYPE:VOD\n')
  t.match(playlist, '#EXT-X-DISCONTINUITY\n')
  t.match(playlist, /#EXT-X-ENDLIST\n$/)
  t.notMatch(playlist, 'EXT-X-MAP')
  t.same(segmentUris(playlist), [...live.keys()])
  for (const [uri, bytes] of live)
    t.ok(store.files.get(`${FOLDER}/${uri}`)?.equals(bytes), 'byte for byte')
  t.match(store.text('master.m3u8'), /\nplaylist\.m3u8\n/)
  t.match(JSON.parse(store.text('index.json')), { renditions: [{ name: 'main' }] })
})

t.test('date ranges of the whole programme, and captions, also over a takeover', async (t) => {
  const { begin, connect, run, store, takeOver } = setUp({ dvrSec: 3600 })
  const { stream } = begin()
  connect(stream, encode([5, 20]))
  await run(33)
  t.same(dateRangesIn(store.text('cmaf-video-1.m3u8')).length, 2)
  const before = dateRangesIn(store.text('cmaf-video-1.m3u8'))
  const { stream: next, archive } = takeOver(stream)
  await run(4)
  connect(next, encode([10]))
  await run(30)
  t.equal(
    dateRangesIn(next.files.get('dvr-cmaf-video-1.m3u8')!.chunks.join('')).length,
    3,
    'in the rewind window, too',
  )
  next.stop('api')
  await run(5)
  t.match(archive.reportOf(next), { state: 'COMPLETE' })
  for (const name of ['cmaf-video-1.m3u8', 'cmaf-audio-1.m3u8']) {
    const after = dateRangesIn(store.text(name))
    t.same(after.slice(0, 2), before, name)
    t.equal(after.length, 3, name)
  }
  t.match(store.text('cmaf-video-1.m3u8'), /PLANNED-DURATION=4[.0]*,SCTE35-OUT=0xFC/)
  t.match(store.text('master.m3u8'), /#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,.*INSTREAM-ID="CC1"/)
  t.match(store.text('master.m3u8'), 'CLOSED-CAPTIONS="cc"')
})
