/**
 * Without parts, the playlists appear with the third segment, since players start three target durations before the end
 * (RFC 8216bis 6.3.3), and the longest of the three sets EXT-X-TARGETDURATION (4.4.3.1). With parts the first segment sets
 * PART-TARGET, and the longest of two EXT-X-TARGETDURATION: the playlists with parts appear with the second segment, which
 * has parts.
 */
import { deepStrictEqual } from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'
import { rounds } from '../support/soak.ts'
import { createStream, FRAMES_PER_SEC, GopEncoder, listDurations, targetOf } from './gops.ts'
import { StreamViewer } from './stream-viewer.ts'

/** Rules of EXT-X-TARGETDURATION and PART-TARGET; such GOPs break others themselves. */
const OF_TARGETS =
  /: (SEGMENT_OVER_TARGET|TARGETDURATION_CHANGED|PART_OVER_TARGET|PART_TARGET_CHANGED) /

const ALL_PLAYLISTS = ['master.m3u8', 'cmaf-video-1.m3u8', 'ts.m3u8', 'playlist.m3u8']

const LOW_LATENCY = { formats: ['ts', 'cmaf'], partSec: 0.2 } as const

t.test('the playlist appears with the third segment, and the stream is live then', async (t) => {
  const { stream, playlist, publish, events } = createStream()
  const encoder = new GopEncoder()
  const publication = publish()
  publication.push(encoder.encode([2, 2, 2]))
  t.equal(stream.report().totals.segments, 2)
  t.equal(playlist(), undefined)
  t.equal(stream.files.get('master.m3u8'), undefined)
  t.match(stream, { status: 'STREAMING', live: false })
  t.same(events, [])
  publication.push(encoder.encode([1]))
  t.same(listDurations(playlist()), [2, 2, 2])
  t.equal(targetOf(playlist()), 2)
  t.ok(stream.files.get('master.m3u8'))
  t.match(stream, { status: 'STREAMING', live: true })
  t.same(events, ['live'])
})

t.test('a short first GOP does not cut later ones (RFC 8216bis 4.4.3.1)', async (t) => {
  const cases: [
    name: string,
    segmentSec: number,
    gops: number[],
    durations: number[],
    target: number,
  ][] = [
    ['GOPs of 4 s after one of 2 s', 2, [2, 4, 4, 4], [2, 4, 4, 4], 4],
    ['GOPs of 2 s after one of 1 s', 1, [1, 2, 2, 2], [1, 2, 2, 2], 2],
    ['GOPs of 2 s after one of 0.4 s', 2, [0.4, 2, 2, 2, 2], [2.4, 2, 2, 2], 2],
    ['the third GOP is the longest', 2, [2, 3, 8, 8], [2, 3, 8, 8], 8],
  ]
  for (const [name, segmentSec, gops, durations, target] of cases) {
    const { stream, playlist, publish } = createStream({ segmentSec, playlistSegments: 8 })
    publish().push(new GopEncoder().encode([...gops, 1]))
    t.same(listDurations(playlist()), durations, name)
    t.equal(targetOf(playlist()), target, name)
    t.equal(stream.packaging.forcedCuts, 0, name)
  }
})

t.test('a GOP longer than the first three is cut at the limit, with a warning', async (t) => {
  const { stream, playlist, publish } = createStream({ playlistSegments: 8 })
  publish().push(new GopEncoder().encode([2, 2, 2, 4, 2]))
  t.same(listDurations(playlist()), [2, 2, 2, 2.4, 1.6])
  t.match(stream.report().warnings, [{ code: 'GOP_TOO_LONG' }])
})

t.test(
  'a stream that stops before the third segment has a playlist of what there is',
  async (t) => {
    for (const gops of [[1], [2, 1], [3, 2, 1]]) {
      const { stream, playlist, publish, events } = createStream()
      publish().push(new GopEncoder().encode(gops))
      t.equal(playlist(), undefined)
      stream.stop('api')
      t.match(playlist(), /#EXT-X-ENDLIST\n$/)
      t.equal(targetOf(playlist()), Math.max(2, gops[0]!))
      t.equal(listDurations(playlist()).length, gops.length)
      t.ok(stream.files.get('master.m3u8'))
      t.same(events, [], 'never live')
    }
  },
)

t.test('a stream without a segment has no playlist, even when it stops', async (t) => {
  const { stream, playlist, publish } = createStream()
  publish()
  stream.stop('api')
  t.equal(playlist(), undefined)
})

t.test('a connection that fails in the first seconds does not cut later GOPs of 4 s', async (t) => {
  const cases: [name: string, failed: number[][], awaySec: number][] = [
    ['one failure', [[1]], 9],
    ['three failures', [[1], [1], [1]], 9],
    ['a short first GOP', [[2, 1]], 9],
    ['a long absence', [[1]], 100],
  ]
  for (const [name, failed, awaySec] of cases) {
    const { playlist, publish, pass, events } = createStream({ playlistSegments: 8 })
    for (const gops of failed) {
      const publication = publish()
      publication.push(new GopEncoder().encode(gops))
      publication.end('timeout')
      pass(awaySec)
      t.equal(playlist(), undefined, name)
    }
    publish().push(new GopEncoder().encode([4, 4, 4, 1]))
    t.same(listDurations(playlist()), [...failed.flat(), 4, 4, 4], name)
    t.equal(targetOf(playlist()), 4, name)
    t.notOk(events.includes('warning: GOP_TOO_LONG'), name)
  }
})

t.test('an encoder that never completes a segment has a playlist after the sixth', async (t) => {
  const { playlist, publish } = createStream()
  for (let connection = 1; connection <= 6; connection++) {
    t.equal(playlist(), undefined)
    const publication = publish()
    publication.push(new GopEncoder().encode([1.5]))
    publication.end('timeout')
  }
  t.equal(targetOf(playlist()), 2)
})

t.test('an encoder lost before the third segment: the playlist appears after 10 s', async (t) => {
  const { stream, playlist, publish, pass } = createStream()
  const publication = publish()
  publication.push(new GopEncoder().encode([3, 1]))
  publication.end('shutdown')
  pass(9.75)
  t.equal(playlist(), undefined)
  pass(0.25)
  t.same(listDurations(playlist()), [3, 1])
  t.equal(targetOf(playlist()), 3)
  t.match(stream, { status: 'INTERRUPTED', live: false })
})

t.test('media that pauses within the second segment: its length so far counts', async (t) => {
  const { stream, playlist, publish, pass } = createStream({ playlistSegments: 8 })
  const encoder = new GopEncoder()
  const publication = publish()
  publication.push(encoder.encode([2, 5]))
  pass(11)
  t.same(listDurations(playlist()), [2])
  t.equal(targetOf(playlist()), 5)
  publication.push(encoder.encode([4, 1]))
  t.same(listDurations(playlist()), [2, 5, 4])
  t.equal(stream.packaging.forcedCuts, 0)
})

t.test('an encoder lost within the third segment: the playlist appears, and goes on', async (t) => {
  for (const loss of ['timeout', 'no media'] as const) {
    const { stream, playlist, publish, events, pass } = createStream({ playlistSegments: 8 })
    const publication = publish()
    publication.push(new GopEncoder().encode([2, 2, 1]))
    if (loss === 'timeout') publication.end('timeout')
    else pass(11)
    t.match(stream, { status: 'INTERRUPTED', live: false })
    t.equal(targetOf(playlist()), 2)
    t.same(listDurations(playlist()).slice(0, 2), [2, 2], loss)
    if (loss === 'no media') continue
    publish().push(new GopEncoder().encode([4, 4]))
    t.match(stream, { status: 'STREAMING', live: true })
    t.equal(targetOf(playlist()), 2, 'players keep the first value')
    t.same(listDurations(playlist()), [2, 2, 1, 2.4, 1.6, 2.4])
    t.match(playlist(), /#EXT-X-DISCONTINUITY\n[^]*e-3.ts\n/)
    t.same(
      events.filter((event) => !event.startsWith('warning')),
      ['interrupted: timeout', 'live'],
    )
  }
})

t.test('an encoder replaced before the third segment: its segments count', async (t) => {
  const { stream, playlist, publish, events } = createStream()
  publish().push(new GopEncoder().encode([2, 1]))
  const second = publish()
  t.equal(stream.report().totals.segments, 2)
  t.equal(playlist(), undefined, 'the stream was not interrupted')
  const encoder = new GopEncoder()
  second.push(encoder.encode([4]))
  t.equal(playlist(), undefined)
  second.push(encoder.encode([4]))
  t.same(listDurations(playlist()), [2, 1, 4])
  t.equal(targetOf(playlist()), 4)
  t.same(events, ['live'])
})

t.test('a stream that comes back keeps its playlist and its target', async (t) => {
  const { playlist, publish, events } = createStream()
  const first = publish()
  first.push(new GopEncoder().encode([4, 4, 4]))
  first.end('timeout')
  const before = playlist()
  t.equal(targetOf(before), 4)
  publish().push(new GopEncoder().encode([2, 2]))
  t.same(listDurations(playlist()).at(-1), 2, 'with its first segment')
  t.equal(targetOf(playlist()), 4)
  t.same(events, ['live', 'interrupted: timeout', 'live'].slice(events.length === 2 ? 1 : 0))
})

/** Media, in seconds, of a stream with parts when each of its playlists appears, and when it goes live. */
function appearances(gops: readonly number[], options: Parameters<typeof createStream>[0] = {}) {
  const setUp = createStream({ ...LOW_LATENCY, playlistSegments: 8, ...options })
  const viewer = new StreamViewer(setUp.stream, ['cmaf-video-1', 'main'])
  const publication = setUp.publish()
  const at: Record<string, number> = {}
  let frames = 0
  for (const frame of new GopEncoder().frames(gops)) {
    publication.push(frame)
    viewer.look()
    frames++
    for (const name of ALL_PLAYLISTS)
      if (setUp.read(name) !== undefined) at[name] ??= frames / FRAMES_PER_SEC
    if (setUp.stream.live) at['live'] ??= frames / FRAMES_PER_SEC
  }
  return { ...setUp, publication, viewer, at }
}

t.test('with parts, master.m3u8 appears with the second segment', async (t) => {
  const cases: [name: string, gops: number[], durations: number[], target: number][] = [
    ['GOPs of 1 s', [1, 1, 1, 1, 1, 1], [2, 2, 2], 2],
    ['GOPs of 2 s', [2, 2, 2], [2, 2, 2], 2],
    ['GOPs of 4 s', [4, 4, 4], [4, 4, 4], 4],
    ['a scene cut at a whole second', [2, 8.3, 8.3, 8.3], [2, 8.3, 8.3, 8.3], 8],
    ['a scene cut at any frame', [3.2, 8.3, 5, 8.3], [3.2, 8.3, 5, 8.3], 8],
    ['scene cuts in the first segment', [1, 1.4, 8.3, 8.3, 8.3], [2.4, 8.3, 8.3, 8.3], 8],
    ['a scene cut in the second segment', [8.3, 2.1, 8.3, 8.3], [8.3, 2.1, 8.3, 8.3], 8],
  ]
  for (const [name, gops, durations, target] of cases) {
    const { read, at, stream, viewer } = appearances([...gops, 1])
    const [first, second, third] = durations as [number, number, number]
    const appearsWith = (endSec: number, file: string) =>
      t.ok(at[file]! > endSec && at[file]! <= endSec + 0.2, `${name}: ${file} at ${at[file]} s`)
    for (const file of ['master.m3u8', 'cmaf-video-1.m3u8']) appearsWith(first + second, file)
    for (const file of ['ts.m3u8', 'playlist.m3u8', 'live'])
      appearsWith(first + second + third, file)
    t.same(listDurations(read('cmaf-video-1.m3u8')), durations, name)
    t.equal(targetOf(read('cmaf-video-1.m3u8')), target, name)
    t.equal(stream.packaging.forcedCuts, 0, 'no GOP is cut')
    t.same(
      viewer.complaints.filter((it) => OF_TARGETS.test(it)),
      [],
      name,
    )
  }
})

t.test('with parts, what appears first has a segment without parts and one with', async (t) => {
  const { read, stream } = appearances([2, 2, 0.5])
  const text = read('cmaf-video-1.m3u8')
  t.same(listDurations(text), [2, 2])
  t.equal(text?.match(/#EXT-X-PART:/g)?.length, 12)
  t.match(text, /#EXT-X-PART:[^\n]*INDEPENDENT=YES\n#EXT-X-PART:/)
  t.match(read('master.m3u8'), /cmaf-video-1/)
  t.match(read('master.m3u8'), /CLOSED-CAPTIONS=NONE/, 'Shaka would look for captions, and fail')
  t.equal(read('ts.m3u8'), undefined, 'no playlist lists what is not there')
  t.match(stream.report(), { latency: { partMs: 208 } })
  t.equal(stream.live, false)
})

t.test('with parts, audio that begins late is in the first master.m3u8', async (t) => {
  const { read, publish } = createStream({ ...LOW_LATENCY, playlistSegments: 8 })
  const publication = publish()
  const ts = new TsBuilder()
  const [video, audio] = [0x100, 0x101]
  ts.program([
    { pid: video, streamType: 0x1b },
    { pid: audio, streamType: 0x0f },
  ])
  let first: string | undefined
  for (let frame = 0; frame < 10 * FRAMES_PER_SEC; frame++) {
    const ptsTicks = 900_000 + (frame * 90_000) / FRAMES_PER_SEC
    const key = frame % (2 * FRAMES_PER_SEC) === 0
    const unit = h264AccessUnit({ key, sizeBytes: 400 })
    ts.unit(video, pesPacket(unit, { ptsTicks, length: 'none' }))
    if (frame > 5 * FRAMES_PER_SEC)
      ts.unit(audio, pesPacket(adtsFrames(5, 64), { ptsTicks, streamId: 0xc0 }))
    publication.push(Buffer.concat(ts.packets.splice(0)))
    first ??= read('master.m3u8')
  }
  t.match(first, /mp4a/)
})

t.test('with parts, each hint is kept behind a disconnect in the first segment', async (t) => {
  const options = { formats: ['cmaf'], partSec: 0.2, segmentSec: 4, playlistSegments: 8 } as const
  const { stream, publish, pass } = createStream(options)
  const viewer = new StreamViewer(stream, ['cmaf-video-1'])
  const first = publish()
  first.push(new GopEncoder().encode([1]))
  first.end('timeout')
  const second = publish()
  const encoder = new GopEncoder()
  pass(11)
  const send = (...gops: number[]) => {
    for (const frame of encoder.frames(gops)) {
      second.push(frame)
      viewer.look()
    }
  }
  send(1, 3.3, 0.3)
  pass(11)
  viewer.look()
  send(0.3)
  t.same(viewer.complaints, [])
})

t.test('with parts, captions are not denied once three segments are listed', async (t) => {
  const { read } = appearances([2, 2, 2, 2])
  t.notMatch(read('master.m3u8'), /CLOSED-CAPTIONS/)
})

t.test('with parts, media that pauses in the second segment publishes all playlists', async (t) => {
  const { read, pass, stream, viewer } = appearances([2, 1])
  t.equal(read('playlist.m3u8'), undefined)
  pass(11)
  for (const name of ALL_PLAYLISTS) t.ok(read(name), name)
  t.equal(read('cmaf-video-1.m3u8')?.match(/#EXT-X-PART:/g)?.length, 4, 'the parts so far')
  viewer.look()
  t.same(viewer.complaints, [])
  t.equal(stream.live, false)
})

t.test('with parts, a segment that a disconnect cut short fixes no target', async (t) => {
  const { read, publish, pass, at } = appearances([1.5])
  t.same(at, {})
  const second = publish()
  second.push(new GopEncoder().encode([1.2]))
  second.end('timeout')
  pass(1)
  publish().push(new GopEncoder().encode([4, 4, 0.2]))
  const text = read('cmaf-video-1.m3u8')
  t.equal(targetOf(text), 4, 'the first whole GOP counts')
  t.same(listDurations(text), [1.5, 1.2, 4, 4])
  t.equal(text?.split('#EXT-X-PART:').length, 1 + 20, 'the segment behind it has parts')
  t.ok(read('playlist.m3u8'))
})

t.test('with parts, a disconnect in the second segment publishes it', async (t) => {
  const { read, publication, viewer } = appearances([2, 1])
  publication.end('timeout')
  viewer.look()
  const text = read('cmaf-video-1.m3u8')
  t.same(listDurations(text), [2, 1])
  t.equal(text?.match(/#EXT-X-PART:/g)?.length, 5)
  t.ok(read('master.m3u8'))
  t.equal(read('playlist.m3u8'), undefined)
  t.same(viewer.complaints, [])
})

t.test('frames too long for parts: all playlists appear with the second segment', async (t) => {
  const { stream, read, publish } = createStream({ ...LOW_LATENCY, playlistSegments: 8 })
  const publication = publish()
  const encoder = new GopEncoder(0.5)
  publication.push(encoder.encode([4, 4]))
  t.equal(read('master.m3u8'), undefined)
  publication.push(encoder.encode([4, 4]))
  t.ok(read('master.m3u8'))
  t.notMatch(read('cmaf-video-1.m3u8'), /EXT-X-PART/)
  t.equal(stream.live, true)
})

t.test('Video.js begins at most ten parts before a key frame of constant GOPs', async (t) => {
  for (let frames = 10; frames <= 104; frames++) {
    const gopSec = frames / FRAMES_PER_SEC
    const { read, publish } = createStream(LOW_LATENCY)
    publish().push(new GopEncoder().encode(Array<number>(9).fill(gopSec)))
    const text = read('cmaf-video-1.m3u8') ?? ''
    const [, holdBackSec, partSec] = /PART-HOLD-BACK=([\d.]+)[^]*PART-TARGET=([\d.]+)/.exec(text)!
    // It takes the open segment to last for the target.
    const startSec = targetOf(text)! - Number(holdBackSec)
    const waitSec = (Math.ceil(startSec / gopSec - 1e-6) * gopSec - startSec) % gopSec
    const parts = waitSec / Number(partSec)
    if (parts >= 9) t.fail(`GOPs of ${gopSec} s: ${parts} parts from ${startSec} s on`)
  }
  t.pass('for every length')
})

t.test('with parts, GOPs of any length keep to the targets of the first segments', async (t) => {
  const gops = fc.array(fc.integer({ min: 1, max: 130 }), { minLength: 1, maxLength: 6 })
  const settings = fc.record({
    segmentSec: fc.constantFrom(0.5, 1, 2, 4),
    partSec: fc.constantFrom(0.2, 0.333, 0.5),
  })
  fc.assert(
    fc.property(settings, gops, (chosen, lengths) => {
      const { stream, publish } = createStream({ ...LOW_LATENCY, ...chosen, playlistSegments: 8 })
      const viewer = new StreamViewer(stream, ['cmaf-video-1', 'main'])
      const publication = publish()
      for (const frame of new GopEncoder().frames(lengths.map((it) => it / FRAMES_PER_SEC))) {
        publication.push(frame)
        viewer.look()
      }
      stream.stop('api')
      viewer.look()
      deepStrictEqual(
        viewer.complaints.filter((it) => OF_TARGETS.test(it)),
        [],
      )
    }),
    { numRuns: rounds(10, 1000) },
  )
  t.pass('for every length')
})
