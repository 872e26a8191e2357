import t, { type Test } from 'tap'
import { LivePlaylist } from '../../../src/hls/playlist/live-playlist.ts'
import { FileStore } from '../../../src/hls/store/file-store.ts'
import type { SegmentOwner } from '../../../src/hls/store/cache-account.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { createSegment, type Segment } from '../../../src/hls/store/segment.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { StreamJudge } from '../../support/stream-judge.ts'
import { AUDIO, VIDEO } from '../source.ts'

const WALL_MS = Date.UTC(2026, 0, 1)

const DISCONTINUITY = { discontinuity: true, discontinuitySequence: 1 }

/** Segment of 2 s after the previous one, unless `changes` say otherwise. */
function segment(
  mediaSequence: number,
  changes: Partial<Omit<Segment, 'bytes' | 'sizeBytes'>> = {},
): Segment {
  return createSegment({
    epoch: 'e',
    mediaSequence,
    rendition: 'main',
    uri: `e-${mediaSequence}.ts`,
    chunks: [Buffer.alloc(188_000, mediaSequence)],
    durationSec: 2,
    startTicks: mediaSequence * 180_000,
    endTicks: (mediaSequence + 1) * 180_000,
    programDateTimeMs: WALL_MS + mediaSequence * 2000,
    discontinuity: false,
    discontinuitySequence: 0,
    independent: true,
    startsWithKeyFrame: true,
    tracks: [VIDEO, AUDIO],
    parts: [],
    nextDateTimeMs: WALL_MS + (mediaSequence + 1) * 2000,
    videoFrames: 60,
    ...changes,
  })
}

/** Playlist of which each version is checked against the rules and by m3u8-parser. */
function watched(t: Test, options: { playlistSegments?: number; maxBytes?: number } = {}) {
  const { playlistSegments = 4, maxBytes = 1e9 } = options
  const cache = new SegmentCache({ maxBytes })
  const owner: SegmentOwner = {
    get windowSize() {
      return playlist.windowSize
    },
    shrink: (nowMs) => playlist.shrink(nowMs),
    drop: (uri) => playlist.drop(uri),
  }
  const files = new FileStore({ cache, owner })
  const playlist = new LivePlaylist({ files, rendition: 'main', epoch: 'e', playlistSegments })
  playlist.open(2)
  const judge = new StreamJudge()
  const media = () => files.get('playlist.m3u8')
  const readText = () => media()!.chunks.join('')
  const manifest = () => {
    const text = readText()
    const { manifest, complaints } = parseM3u8(text)
    t.same([...judge.playlist('playlist.m3u8', text), ...complaints], [])
    return manifest
  }
  return {
    ...{ cache, files, playlist, media, readText, manifest },
    append: (value: Segment, nowMs = value.mediaSequence * 2000) => {
      playlist.append(value, nowMs)
      return manifest()
    },
  }
}

const uris = ({ segments = [] }: ReturnType<ReturnType<typeof watched>['manifest']>) =>
  segments.map(({ uri }) => uri)

t.test('there is no playlist before the first segment', async (t) => {
  const { files, playlist, media } = watched(t)
  t.equal(media(), undefined)
  t.equal(playlist.summary, undefined)
  t.equal(files.get('e-0.ts'), undefined)
})

t.test('renders the tags that RFC 8216 asks for, and no more', async (t) => {
  const { append, readText } = watched(t)
  append(segment(0, { durationSec: 2.002 }))
  append(segment(1, { ...DISCONTINUITY, programDateTimeMs: WALL_MS + 60_000 }))
  t.equal(
    readText(),
    [
      '#EXTM3U',
      '#EXT-X-VERSION:3',
      '#EXT-X-TARGETDURATION:2',
      '#EXT-X-MEDIA-SEQUENCE:0',
      '#EXT-X-DISCONTINUITY-SEQUENCE:0',
      '#EXT-X-INDEPENDENT-SEGMENTS',
      '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z',
      '#EXTINF:2.00200,',
      'e-0.ts',
      '#EXT-X-DISCONTINUITY',
      '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:01:00.000Z',
      '#EXTINF:2.00000,',
      'e-1.ts',
      '',
    ].join('\n'),
  )
})

t.test('lists as many segments as configured, and at least three target durations', async (t) => {
  const { append } = watched(t, { playlistSegments: 4 })
  const listed = Array.from({ length: 8 }, (_, msn) => uris(append(segment(msn))))
  t.same(listed.at(-1), ['e-4.ts', 'e-5.ts', 'e-6.ts', 'e-7.ts'])
  const short = watched(t, { playlistSegments: 3 })
  for (let msn = 0; msn < 12; msn++) {
    const programDateTimeMs = WALL_MS + msn * 1000
    const { segments } = short.append(segment(msn, { durationSec: 1, programDateTimeMs }))
    t.equal(segments!.length, Math.min(msn + 1, 6), '3 x 2 s')
  }
})

t.test('DISCONTINUITY-SEQUENCE counts the discontinuities that left the playlist', async (t) => {
  const { append } = watched(t, { playlistSegments: 3 })
  const sequences = Array.from({ length: 9 }, (_, msn) => {
    const discontinuity = msn === 2 || msn === 3
    const discontinuitySequence = msn < 2 ? 0 : msn === 2 ? 1 : 2
    const manifest = append(segment(msn, { discontinuity, discontinuitySequence }))
    return manifest.discontinuitySequence
  })
  t.same(sequences, [0, 0, 0, 0, 0, 1, 2, 2, 2])
})

t.test(
  'INDEPENDENT-SEGMENTS holds for each listed segment with media (RFC 8216bis 4.4.2.1)',
  async (t) => {
    const { append } = watched(t, { playlistSegments: 3 })
    const flags = Array.from({ length: 9 }, (_, msn) => {
      const independent = msn !== 1
      const chunks = msn === 5 ? [] : undefined
      const changes = { independent: independent && msn !== 5, ...(chunks && { chunks }) }
      return append(segment(msn, changes)).independentSegments ?? false
    })
    t.same(flags, [true, false, false, false, true, true, true, true, true])
  },
)

t.test('an ended playlist has ENDLIST, and its segments stay', async (t) => {
  const { append, playlist, files, manifest } = watched(t)
  for (let msn = 0; msn < 6; msn++) append(segment(msn))
  playlist.end()
  const ended = manifest()
  t.equal(ended.endList, true)
  t.same(uris(ended), ['e-2.ts', 'e-3.ts', 'e-4.ts', 'e-5.ts'])
  for (const uri of uris(ended)) t.ok(files.get(uri))
  playlist.discard()
  files.discard()
  t.equal(files.get('playlist.m3u8'), undefined)
  t.equal(files.get('e-5.ts'), undefined)
})

t.test('renders a playlist once for each change, with a version of its own', async (t) => {
  const { append, playlist, media } = watched(t)
  append(segment(0))
  const first = media()!
  t.equal(media(), first)
  const versions = new Set([first.version])
  for (let msn = 1; msn < 6; msn++) {
    append(segment(msn))
    versions.add(media()!.version)
  }
  playlist.end()
  versions.add(media()!.version)
  t.equal(versions.size, 7)
  t.match([...versions][0], /^[\w-]+$/, 'fit for an ETag')
})

t.test('a removed segment stays for its duration and its longest playlist', async (t) => {
  // RFC 8216 6.2.2. The playlist lasts 8 s at most, and 7 s when the second segment has left it.
  const { append, files, readText } = watched(t, { playlistSegments: 4 })
  for (let msn = 0; msn < 4; msn++) append(segment(msn), msn * 2000)
  append(segment(4, { durationSec: 1 }), 8000)
  append(segment(5, { durationSec: 1, programDateTimeMs: WALL_MS + 9000 }), 9000)
  t.notMatch(readText(), 'e-1.ts')
  const after = (msn: number) => segment(msn, { programDateTimeMs: WALL_MS + msn * 2000 - 2000 })
  append(after(6), 17_999)
  t.ok(files.get('e-0.ts'), 'left at 8 s, retained for 2 + 8 s')
  append(after(7), 18_999)
  t.notOk(files.get('e-0.ts'))
  t.ok(files.get('e-1.ts'), 'left at 9 s, retained for 2 + 8 s')
  append(after(8), 19_000)
  t.notOk(files.get('e-1.ts'))
})

t.test('a segment for which the cache has no room is a gap (RFC 8216bis 4.4.4.7)', async (t) => {
  const { append, files, readText, cache } = watched(t, { maxBytes: 1_000_000 })
  append(segment(0))
  append(segment(1, { chunks: [Buffer.alloc(188 * 5000)] }))
  append(segment(2))
  t.match(readText(), /#EXT-X-GAP\n#EXT-X-PROG.*\n#EXTINF.*\ne-1.ts\n#EXT-X-PROG/)
  t.equal(files.get('e-1.ts'), undefined)
  t.ok(files.get('e-2.ts'))
  t.equal(cache.stats.refused, 1)
})

t.test('the size of a window follows the present segments, however short they are', async (t) => {
  const { append, playlist } = watched(t, { playlistSegments: 6 })
  t.same(playlist.windowSize, { minBytes: 0, wantedBytes: 0 })
  append(segment(0))
  append(segment(1))
  t.same(playlist.windowSize, { minBytes: 3 * 188_000, wantedBytes: 6 * 188_000 })
  append(segment(2, { durationSec: 1, chunks: [Buffer.alloc(94_000)] }))
  t.same(playlist.windowSize, { minBytes: 626_667, wantedBytes: 940_000 }, '4 of 1.67 s, and 6')
  const other = watched(t).playlist
  other.append(segment(0, { durationSec: 0 }), 0)
  t.same(other.windowSize, { minBytes: 188_000_000, wantedBytes: 188_000_000 })
})

t.test('lists at most 256 segments, however short they are', async (t) => {
  const { playlist, append } = watched(t)
  const short = { durationSec: 0.01, chunks: [Buffer.alloc(188)] }
  for (let number = 0; number < 300; number++) {
    const programDateTimeMs = WALL_MS + number * 10
    const value = segment(number, { ...short, programDateTimeMs })
    if (number < 299) playlist.append(value, number * 10)
    else t.equal(append(value, number * 10).segments?.length, 256)
  }
  t.equal(playlist.mediaSequence, 44)
})
