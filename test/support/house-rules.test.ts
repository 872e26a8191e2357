/**
 * Breaks each house rule, since a rule that never complains proves nothing. The rules of HLS have tests of their own.
 */
import t from 'tap'
import { parseMediaPlaylist } from '../../src/check/playlist/media-playlist.ts'
import { from, playlist } from '../check/rules/fixture.ts'
import { compareEdges } from './house-rules.ts'
import { StreamJudge, type StreamJudgeOptions } from './stream-judge.ts'

/** Playlist with parts of 1 s: segments 0 to 2, and a part of segment 3. */
const PARTS = [
  '#EXTM3U',
  '#EXT-X-VERSION:3',
  '#EXT-X-TARGETDURATION:2',
  '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=3.00003,HOLD-BACK=6',
  '#EXT-X-PART-INF:PART-TARGET=1.00001',
  '#EXT-X-MEDIA-SEQUENCE:0',
  '#EXT-X-DISCONTINUITY-SEQUENCE:0',
  ...[0, 1, 2, 3].flatMap((msn) => [
    `#EXT-X-PROGRAM-DATE-TIME:${new Date(msn * 2000).toISOString()}`,
    `#EXT-X-PART:DURATION=1.00001,URI="p${2 * msn}.ts",INDEPENDENT=YES`,
    ...(msn === 3
      ? ['#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p7.ts"']
      : [`#EXT-X-PART:DURATION=1.00001,URI="p${2 * msn + 1}.ts"`, '#EXTINF:2.00000,', `${msn}.ts`]),
  ]),
  '',
].join('\n')

/** The next version: segment 3 is complete. */
const COMPLETE = PARTS.replace(
  /#EXT-X-PRELOAD-HINT.*\n/,
  '#EXT-X-PART:DURATION=1.00001,URI="p7.ts"\n#EXTINF:2.00000,\n3.ts\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p8.ts"\n',
)

const END = '#EXT-X-ENDLIST\n'

/** Ids of the rules that versions of a playlist break. */
function broken(versions: readonly string[], options: StreamJudgeOptions = {}): string[] {
  const judge = new StreamJudge(options)
  const found = versions.flatMap((text) => judge.playlist('playlist.m3u8', text))
  return [...new Set(found.map((finding) => /^\w+/.exec(finding)![0]))]
}

t.test('accepts a playlist that rolls, has a discontinuity and ends', async (t) => {
  const changed = { msn: 4, discontinuity: true, atSec: 30 }
  const after = [32, 34, 36].map((atSec, index) => ({ msn: 5 + index, atSec }))
  const last = playlist(after, { 'EXT-X-DISCONTINUITY-SEQUENCE': 1 })
  const versions = [
    playlist(from(0, 3)),
    playlist(from(1, 3)),
    playlist([...from(2, 2), changed]),
    playlist([changed, ...after.slice(0, 2)]),
    ...[last, last + END],
  ]
  t.same(broken(versions, { watchedFromStart: true }), [])
})

t.test('accepts parts, their segment and the end', async (t) => {
  const ended = COMPLETE.replace(/#EXT-X-PRELOAD-HINT.*\n/, END)
  t.same(broken([PARTS, COMPLETE, ended], { lowLatency: true }), [])
})

const valid = playlist(from(0, 3))
const A = 'ID="a",START-DATE="2026-01-01T00:00:03.000Z"'
const ranges = (...values: string[]) =>
  valid + values.map((value) => `#EXT-X-DATERANGE:${value}\n`).join('')
const edit = (text: string, before: string | RegExp, after: string) => {
  const edited = text.replace(before, after)
  if (edited === text) throw new Error(`${before} is not there`)
  return edited
}
const gap = (text: string) => edit(text, '#EXTINF:2.000,\na-1', '#EXT-X-GAP\n$&')

const CASES: readonly (readonly [id: string, title: string, ...versions: string[]])[] = [
  ['HEAD', 'a line feed after #EXTM3U', valid.replaceAll('\n', '\r\n')],
  ['HEAD', 'no media sequence', edit(valid, '#EXT-X-MEDIA-SEQUENCE:0\n', '')],
  ['HEAD', 'no discontinuity sequence', edit(valid, '#EXT-X-DISCONTINUITY-SEQUENCE:0\n', '')],
  ['HEAD', 'a type', playlist(from(0, 3), { 'EXT-X-PLAYLIST-TYPE': 'EVENT' })],
  ['END', 'ENDLIST in the head', edit(valid, '#EXT-X-VERSION', `${END}$&`)],
  [
    'END',
    'a report after the end',
    `${COMPLETE.replace(/#EXT-X-PRELOAD.*\n/, '#EXT-X-RENDITION-REPORT:URI="b"\n')}${END}`,
  ],
  ['END', 'a discontinuity after the last segment', `${valid}#EXT-X-DISCONTINUITY\n${END}`],
  [
    'DURATION',
    'EXTINF of 0',
    playlist([{ msn: 0 }, { msn: 1, sec: '0.000' }, { msn: 2, atSec: 2 }]),
  ],
  ['DATE', 'a segment without date', edit(valid, /#EXT-X-PROGRAM.*02.000Z\n/, '')],
  ['DATE', 'an open segment without date', edit(PARTS, /#EXT-X-PROGRAM.*06.000Z\n/, '')],
  ['DATE', '15 ms more than EXTINF', playlist([{ msn: 0 }, { msn: 1, atSec: 2.015 }])],
  ['DATE', '15 ms less than EXTINF', playlist([{ msn: 0 }, { msn: 1, atSec: 1.985 }])],
  [
    'DATE',
    'overlap at a discontinuity',
    playlist([{ msn: 0 }, { msn: 1, atSec: 1.5, discontinuity: true }]),
  ],
  ['DATERANGE', 'two tags of an ID', ranges(A, A)],
  ['DATERANGE', 'an empty ID', ranges(A.replace('"a"', '""'))],
  ['DATERANGE', 'a date without milliseconds', ranges(A.replace('.000Z', 'Z'))],
  ['DATERANGE', 'half a byte', ranges(`${A},SCTE35-OUT=0xFC3`)],
  ['DATERANGE', 'a number without leading zero', ranges(`${A},PLANNED-DURATION=.5`)],
  ['PART_SUM', '100 µs less than EXTINF', edit(PARTS, '1.00001,URI="p3', '0.99990,URI="p3')],
  ['KEPT', 'all segments removed', valid, playlist([])],
  ['KEPT', 'EXTINF with another decimal', valid, edit(valid, '2.000,\na-1', '2.0000,\na-1')],
  ['KEPT', 'a date removed', valid, edit(valid, /#EXT-X-PROGRAM.*02.000Z\n/, '')],
  ['KEPT', 'a gap that is no gap', gap(valid), valid],
  ['KEPT', 'the date of an open segment changed', PARTS, edit(COMPLETE, '06.000Z', '06.0000Z')],
  ['KEPT', 'parts of an open segment removed', PARTS, edit(COMPLETE, /#EXT-X-PART:.*p6.*\n/, '')],
  [
    'WINDOW',
    '5 ms less than three target durations',
    valid,
    playlist([...from(1, 2), { msn: 3, sec: '1.995' }]),
  ],
  ['PART_NAME', 'a name of two parts', edit(PARTS, 'p5', 'p0')],
  [
    'PART_NAME',
    'a name that was removed',
    PARTS,
    edit(PARTS, /#EXT-X-PART:.*p[01].*\n/g, ''),
    edit(COMPLETE, 'p7', 'p0').replace(/#EXT-X-PART:.*p1.*\n/, ''),
  ],
]

t.test('names the house rule that a playlist breaks', async (t) => {
  for (const [id, title, ...versions] of CASES) {
    const found = broken(versions)
    t.ok(found.includes(`HOUSE_${id}`), `${id}, ${title}: ${found.join()}`)
  }
})

t.test('names the tags that a low-latency playlist lacks', async (t) => {
  const cases: [title: string, text: string][] = [
    ['no parts and no tags of low latency', valid],
    ['no PART-TARGET', edit(PARTS, /#EXT-X-PART-INF.*\n/, '')],
    ['no CAN-BLOCK-RELOAD', edit(PARTS, 'CAN-BLOCK-RELOAD=YES,', '')],
    ['no HOLD-BACK', edit(PARTS, ',HOLD-BACK=6', '')],
    [
      'two hints',
      edit(PARTS, /#EXT-X-PRELOAD-HINT.*\n/, '$&#EXT-X-PRELOAD-HINT:TYPE=MAP,URI="m"\n'),
    ],
  ]
  for (const [title, text] of cases) {
    t.ok(broken([text], { lowLatency: true }).includes('HOUSE_CONTROL'), title)
  }
})

t.test('names a segment that comes too late', async (t) => {
  const judge = new StreamJudge({ isTimed: true, except: ['DATE_OFF_CLOCK'] })
  const check = (count: number, atMs: number) =>
    judge.playlist('playlist.m3u8', playlist(from(0, count)), atMs)
  t.same(check(3, 1000), [])
  t.same(check(4, 4000), [])
  t.same(check(4, 5000), [], 'nothing new')
  t.match(check(5, 7001), [/^HOUSE_PACE .*3001 ms/])
})

t.test('names a playlist that appears with too few segments', async (t) => {
  const check = (text: string) => broken([text], { watchedFromStart: true })
  t.same(check(playlist(from(0, 2))), ['HOUSE_START'])
  t.same(check(valid), [])
  t.same(check(playlist(from(0, 2)) + END), [])
  const withParts = (count: number) =>
    check(playlist(from(0, count)).replace('#EXTINF', '#EXT-X-PART-INF:PART-TARGET=1\n$&'))
  t.ok(withParts(1).includes('HOUSE_START'))
  t.notOk(withParts(2).includes('HOUSE_START'))
})

t.test('names what a multivariant playlist promises too much', async (t) => {
  const video = (range: string) =>
    `#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.42c00d",RESOLUTION=2x2,FRAME-RATE=30${range}\nmain.m3u8\n`
  const check = (text: string) => new StreamJudge().multivariant(`#EXTM3U\n${text}`)
  const [none, sdr, hlg, pq] = ['', 'SDR', 'HLG', 'PQ'].map((range) =>
    video(range === '' ? '' : `,VIDEO-RANGE=${range}`),
  )
  t.same([none! + none!, none! + sdr!, pq! + sdr!].flatMap(check), [])
  t.match(check(hlg! + none!), [/^HOUSE_VIDEO_RANGE .*HLG\//])
  t.match(check(`#EXT-X-INDEPENDENT-SEGMENTS\n${none!}`), [/^HOUSE_INDEPENDENT /])
})

t.test('compares the reports of all playlists with what they list', async (t) => {
  const report = (uri: string, last = 'LAST-MSN=3,LAST-PART=0') =>
    `#EXT-X-RENDITION-REPORT:URI="${uri}",${last}\n`
  const compare = (a: string, b: string) =>
    compareEdges([
      parseMediaPlaylist(a, 'https://media.example/a.m3u8'),
      parseMediaPlaylist(b, 'https://media.example/b.m3u8'),
    ])
  const [a, b] = [PARTS + report('b.m3u8'), PARTS + report('a.m3u8')]
  t.same(compare(a, b), [])
  t.match(compare(a, PARTS), [/b.m3u8 reports .*a.m3u8 at undefined: 3.0/])
  t.match(compare(a, PARTS + report('a.m3u8', 'LAST-MSN=2,LAST-PART=1')), [/at 2.1: 3.0/])
  t.match(compare(a, COMPLETE + report('a.m3u8')), [/a.m3u8 reports/, /b.m3u8 is at 3.1/])
  t.same(compare(PARTS + END, PARTS + END), [])
})
