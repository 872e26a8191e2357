/**
 * What a node knows of the edges that read its streams.
 */
import t from 'tap'
import type { StreamFile } from '../../../src/playback/playback-source.ts'
import { createStreamFile } from '../../../src/hls/store/stream-file.ts'
import { Edges } from '../../../src/service/viewers/edges.ts'

const START_MS = Date.parse('2026-01-01T00:00:00Z')

/** Playlist of a complete segment of 2 s and two parts of the next. */
const PLAYLIST = [
  '#EXTM3U',
  '#EXT-X-PROGRAM-DATE-TIME:2025-12-31T23:59:58.000Z',
  '#EXTINF:2.00000,',
  'a.ts',
  '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z',
  '#EXT-X-PART:DURATION=1.00000,URI="b.0.ts"',
  '#EXT-X-PART:DURATION=1.00000,URI="b.1.ts"',
  '#EXTINF:2.00000,',
  'b.ts',
  '#EXT-X-PART:DURATION=0.50000,URI="c.0.ts",INDEPENDENT=YES',
  '#EXT-X-PART:INDEPENDENT=YES,DURATION=0.25000,URI="c.1.ts"',
  '',
].join('\n')

function setUp() {
  const chunks = [Buffer.from(PLAYLIST)]
  const file: StreamFile = createStreamFile('media-playlist', {
    chunks,
    version: '1',
    targetDurationSec: 2,
  })
  const files = { get: (name: string) => (name === 'playlist.m3u8' ? file : undefined) }
  const studio = { status: 'STREAMING' as const, live: true, files }
  const counted: number[] = []
  const streams = {
    find: (id: string) => (id === 'studio' ? studio : undefined),
    countViewer: (_: unknown, viewer: number) => void counted.push(viewer),
  }
  let nowUs = 0
  const foreign: unknown[] = []
  const edges = new Edges(streams, { nowUs: () => nowUs }, (...viewers) => foreign.push(viewers))
  const report = (edge: string, endMs?: number, viewers: number[] = []) => {
    const newest = endMs === undefined ? undefined : { playlist: 'playlist.m3u8', endMs }
    edges.take({ edge, streams: { studio: { viewers, ...(newest && { newest }) } } })
  }
  const advance = (sec: number) => void (nowUs += sec * 1e6)
  return { edges, studio, counted, foreign, report, advance }
}

t.test('an edge lags by the media that the owner lists and it does not', async (t) => {
  const { edges, studio, report } = setUp()
  t.equal(edges.of(studio), undefined)
  report('b:1', START_MS + 2750)
  report('a:1', START_MS + 2500)
  // Without its clock an edge may round up.
  report('c:1', START_MS + 2750.4)
  report('d:1')
  t.strictSame(edges.of(studio), [
    { edge: 'a:1', lagMs: 250 },
    { edge: 'b:1', lagMs: 0 },
    { edge: 'c:1', lagMs: 0 },
  ])
  report('a:1', START_MS)
  t.equal(edges.of(studio)?.[0]?.lagMs, 2750)
})

t.test('an edge without a report for 15 s reads no more', async (t) => {
  const { edges, studio, report, advance } = setUp()
  report('a:1', START_MS)
  advance(14)
  report('b:1', START_MS)
  advance(2)
  t.same(
    edges.of(studio)?.map(({ edge }) => edge),
    ['b:1'],
  )
  advance(14)
  t.equal(edges.of(studio), undefined)
})

t.test('knows 1,000 edges, the latest ones', async (t) => {
  const { edges, studio, report } = setUp()
  for (let n = 1; n <= 1001; n++) report(`${n}`, START_MS)
  const names = edges.of(studio)?.map(({ edge }) => edge)
  t.equal(names?.length, 1000)
  t.notOk(names?.includes('1'))
})

t.test('counts viewers, of streams that are here', async (t) => {
  const { edges, counted, report } = setUp()
  report('a:1', undefined, [1, -2])
  edges.take({ edge: 'a:1', streams: { elsewhere: { viewers: [3] } } })
  t.strictSame(counted, [1, -2])
})

t.test('refuses what is no report', async (t) => {
  const { edges } = setUp()
  const of = (stream: unknown) => ({ edge: 'a:1', streams: { studio: stream } })
  const newest = { playlist: 'playlist.m3u8', endMs: 'soon' }
  for (const body of [
    null,
    [],
    { edge: '', streams: {} },
    { streams: {} },
    of([1]),
    of({ viewers: ['x'] }),
    of({ viewers: [1.5] }),
    of({ viewers: [], newest }),
  ]) {
    t.throws(() => edges.take(body), { code: 'BODY_INVALID' })
  }
})

t.test('viewers of a stream of another process are told to that one', async (t) => {
  const { edges, counted, foreign } = setUp()
  edges.take({ edge: 'a:1', streams: { other: { viewers: [1, 2] }, studio: { viewers: [3] } } })
  t.strictSame(foreign, [['other', [1, 2]]])
  t.strictSame(counted, [3])
})
