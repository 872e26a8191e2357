/**
 * Breaks each rule once, since a checker that never complains proves nothing.
 */
import t from 'tap'
import { PlaylistRules } from './playlist-rules.ts'

interface Line {
  readonly msn: number
  readonly sec?: string
  readonly discontinuity?: boolean
  readonly atSec?: number
}

function playlist(lines: readonly Line[], head: Record<string, string | number> = {}): string {
  const tags = {
    'EXT-X-VERSION': 3,
    'EXT-X-TARGETDURATION': 2,
    'EXT-X-MEDIA-SEQUENCE': lines[0]?.msn ?? 0,
    'EXT-X-DISCONTINUITY-SEQUENCE': 0,
    ...head,
  }
  return [
    '#EXTM3U',
    ...Object.entries(tags).map(([name, value]) => `#${name}:${value}`),
    ...lines.flatMap(({ msn, sec = '2.000', discontinuity = false, atSec = msn * 2 }) => [
      ...(discontinuity ? ['#EXT-X-DISCONTINUITY'] : []),
      `#EXT-X-PROGRAM-DATE-TIME:${new Date(atSec * 1000).toISOString()}`,
      `#EXTINF:${sec},`,
      `a-${msn}.ts`,
    ]),
    '',
  ].join('\n')
}

const from = (msn: number, count: number): Line[] =>
  Array.from({ length: count }, (_, index) => ({ msn: msn + index }))

const rulesBroken = (...versions: string[]): string[] => {
  const rules = new PlaylistRules()
  return versions.flatMap((text) => rules.check(text)).map((broken) => broken.split(':')[0]!)
}

t.test('accepts a playlist that rolls, has a discontinuity and ends', async (t) => {
  const changed = { msn: 4, discontinuity: true, atSec: 30 }
  const after = [
    { msn: 5, atSec: 32 },
    { msn: 6, atSec: 34 },
    { msn: 7, atSec: 36 },
  ]
  t.same(
    rulesBroken(
      playlist(from(0, 3)),
      playlist(from(1, 3)),
      playlist([...from(2, 2), changed]),
      playlist([changed, ...after.slice(0, 2)]),
      playlist(after, { 'EXT-X-DISCONTINUITY-SEQUENCE': 1 }),
      `${playlist(after, { 'EXT-X-DISCONTINUITY-SEQUENCE': 1 })}#EXT-X-ENDLIST\n`,
    ),
    [],
  )
})

t.test('names the rule that one version breaks', async (t) => {
  const valid = playlist(from(0, 3))
  const cases: [rule: string, text: string][] = [
    ['1', valid.replace('#EXTM3U\n', '')],
    ['1', valid.replace('#EXTINF', '#EXT-X-STREAM-INF:BANDWIDTH=1\n#EXTINF')],
    ['2', playlist(from(0, 3), { 'EXT-X-VERSION': 6 })],
    ['3', playlist(from(0, 3), { 'EXT-X-TARGETDURATION': '2.5' })],
    ['4', playlist([{ msn: 0, sec: '2.500' }])],
    ['6', valid.replace(/#EXT-X-DISCONTINUITY-SEQUENCE:0\n/, '')],
    ['7', playlist(from(0, 3), { 'EXT-X-PLAYLIST-TYPE': 'EVENT' })],
    ['11', playlist([{ msn: 0 }, { msn: 1, atSec: 3 }])],
    ['12', playlist([{ msn: 0 }, { msn: 1, atSec: 1, discontinuity: true }])],
    ['16', `#EXTM3U\n#EXT-X-ENDLIST\n${valid.replace('#EXTM3U\n', '')}`],
  ]
  for (const [rule, text] of cases) t.ok(rulesBroken(text).includes(rule), `rule ${rule}`)
})

t.test('names the rule that a change breaks', async (t) => {
  const ended = `${playlist(from(0, 3))}#EXT-X-ENDLIST\n`
  const cases: [rule: string, before: string, after: string][] = [
    ['3', playlist(from(0, 3)), playlist(from(0, 4), { 'EXT-X-TARGETDURATION': 3 })],
    ['5', playlist(from(1, 3)), playlist(from(0, 4))],
    ['5', playlist(from(0, 3)), playlist([...from(0, 2), { msn: 2, sec: '1.000' }])],
    ['5', playlist(from(0, 3)), playlist(from(0, 2))],
    ['6', playlist([{ msn: 0, discontinuity: true }, ...from(1, 3)]), playlist(from(1, 4))],
    ['8', playlist(from(0, 3)), playlist(from(2, 2))],
    ['16', ended, playlist(from(0, 3))],
    ['16', ended, `${playlist(from(0, 4))}#EXT-X-ENDLIST\n`],
  ]
  for (const [rule, before, after] of cases) {
    t.ok(rulesBroken(before, after).includes(rule), `rule ${rule}`)
  }
})

const range = (attributes: string) => `#EXT-X-DATERANGE:${attributes}\n`
const A = 'ID="a",START-DATE="1970-01-01T00:00:03.000Z"'

t.test('is content with date ranges that grow and go when they are over', async (t) => {
  const rolled = [2, 3].map((msn) => playlist(from(msn, 3)))
  t.same(
    rulesBroken(
      playlist(from(0, 3)) + range(`${A},PLANNED-DURATION=0.5,SCTE35-OUT=0xFC30`),
      playlist(from(1, 3)) +
        range(`${A},PLANNED-DURATION=0.5,DURATION=0.9,SCTE35-OUT=0xFC30,SCTE35-IN=0xFC31`),
      ...rolled,
    ),
    [],
  )
})

t.test('names the rule that a date range breaks', async (t) => {
  const valid = playlist(from(0, 3))
  const cases: [rule: string, ...versions: string[]][] = [
    ['14', valid.replaceAll(/#EXT-X-PROGRAM-DATE-TIME.*\n/g, '') + range(A)],
    ['14', valid + range(A) + range(A)],
    ['14', valid + range('ID="a"')],
    ['14', valid + range('START-DATE="1970-01-01T00:00:03.000Z"')],
    ['14', valid + range('ID="a",START-DATE="1970-01-01"')],
    ['14', valid + range(`${A},SCTE35-OUT=FC30`)],
    ['14', valid + range(`${A},DURATION=-1`)],
    ['14', valid + range(`${A},DURATION=1`), valid + range(`${A},DURATION=2`)],
    ['14', valid + range(`${A},SCTE35-OUT=0xFC`), valid + range(A)],
    ['15', valid + range(A), playlist(from(2, 3))],
    ['15', valid + range(`${A},DURATION=1.5`), playlist(from(2, 3))],
  ]
  for (const [rule, ...versions] of cases) {
    t.ok(rulesBroken(...versions).includes(rule), `rule ${rule}: ${versions.at(-1)}`)
  }
})

t.test('names a segment that comes too late', async (t) => {
  const rules = new PlaylistRules()
  t.same(rules.check(playlist(from(0, 3)), 1000), [])
  t.same(rules.check(playlist(from(0, 4)), 4000), [])
  t.same(rules.check(playlist(from(0, 5)), 7001), [
    '9: a new segment came after 3001 ms, target 2 s',
  ])
})

t.test('names a segment that is not independent where all are said to be', async (t) => {
  const tag = '#EXT-X-INDEPENDENT-SEGMENTS\n'
  const check = (text: string) =>
    new PlaylistRules({ isIndependent: (uri) => uri !== 'a-1.ts' }).check(text)
  t.same(check(playlist(from(0, 3)) + tag), [
    '53: INDEPENDENT-SEGMENTS, but a-1.ts needs another segment',
  ])
  t.same(check(playlist(from(0, 3))), [])
  t.same(check(playlist(from(2, 3)) + tag), [])
  t.same(check(playlist(from(0, 3)).replace('#EXTINF:2.000,\na-1', '#EXT-X-GAP\n$&') + tag), [])
})

t.test('names a playlist that appears with fewer than three segments', async (t) => {
  const check = (text: string) => new PlaylistRules({ watchedFromStart: true }).check(text)
  t.same(check(playlist(from(0, 2))), ['6.3.3: the playlist appeared with 2 segments'])
  t.same(check(playlist(from(0, 3))), [])
  t.same(check(`${playlist(from(0, 2))}#EXT-X-ENDLIST\n`), [])
})
