/**
 * The report for people.
 */
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { formatText, progressLine } from '../../../src/check/report/text.ts'
import { BASE, finding, nothingFetched, PART_EVIDENCE, result } from './results.ts'

const CORS = {
  id: 'CORS_MISSING',
  clause: 'Fetch, CORS',
  level: 'SHOULD',
  requirement: 'Replies allow other origins to read them.',
  effects: { hlsjs: { severity: 'stops', text: 'Cannot read the reply.' } },
  remedy: 'Send Access-Control-Allow-Origin.',
} as const

const HOSTILE = '\u001b[2J\u009b31m\u202etxt.\u0000\u0007\r\n\u2028<b>&"\'\ud800'

t.test('tells the worst rule first, its facts with their places, effects and remedy', async (t) => {
  const text = formatText(result([finding({}, { count: 1 }), finding(CORS)]))
  t.equal(
    text,
    `https://media.example/video/studio/master.m3u8
  2 playlists: avc1.64000a 160x90 15 fps+mp4a.40.2, mp4a.40.2 · live · target 2 s · low latency,
    parts 0.208 s
  60 s from 2026-01-01T12:00:00Z · 912 requests, 1.2 MB

MUST   PART_OVER_TARGET  RFC 8216bis 4.4.4.9 · 1 time, first 2026-01-01T12:00:03Z
  No part is longer than PART-TARGET.
    - PART-TARGET is 0.20800 s  (playlist.m3u8, line 5)
    - this part lasts 0.23333 s  (playlist.m3u8, line 21)
  Apple    stops: Refuses the playlist.
  hls.js   degrades: Estimates the live edge wrongly.
  Remedy: Announce the longest part that can occur as PART-TARGET.

SHOULD CORS_MISSING  Fetch, CORS · 3 times, first 2026-01-01T12:00:03Z
  Replies allow other origins to read them.
    - PART-TARGET is 0.20800 s  (playlist.m3u8, line 5)
    - this part lasts 0.23333 s  (playlist.m3u8, line 21)
  hls.js   stops: Cannot read the reply.
  Remedy: Send Access-Control-Allow-Origin.

Apple    stops    PART_OVER_TARGET
hls.js   stops    CORS_MISSING
Shaka    plays
video.js plays
Android  plays

Broken: 1 MUST, 1 SHOULD.
`,
  )
})

t.test('tells only of the players asked for', async (t) => {
  const text = formatText(result([finding()]), { players: ['apple'] })
  t.match(text, 'Apple    stops')
  t.notMatch(text, /hls\.js|Shaka|video\.js|Android/)
})

t.test('tells that no rule is broken, and that every player plays', async (t) => {
  t.match(
    formatText(result([])),
    '\n\nApple    plays\nhls.js   plays\nShaka    plays\nvideo.js plays\nAndroid  plays\n\nNo rule is broken.\n',
  )
})

t.test('tells that a full record lacks requests', async (t) => {
  const text = formatText(result([], { unrecorded: 3 }))
  t.match(text, /\n  The record is full at 2 GiB: it lacks 3 requests\.\n/)
  t.notMatch(formatText(result([])), /The record/)
})

t.test('gives no verdict if no playlist could be fetched', async (t) => {
  t.equal(
    formatText(nothingFetched()),
    `https://media.example/video/studio/master.m3u8
  10 s from 2026-01-01T12:00:00Z · 3 requests, 0 kB · 3 without a reply

No playlist could be fetched: nothing was checked.
`,
  )
})

t.test(
  'tells a web page from a playlist, and which playlist was checked in its place',
  async (t) => {
    const url = 'https://media.example/watch/studio'
    const nothing = { ...nothingFetched(), url, isWebPage: true, failures: 0 }
    t.equal(
      formatText({ ...nothing, requests: 1 }),
      `This is a web page, not a playlist: ${url}. Give the URL of the
playlist, which ends in .m3u8.
`,
    )
    t.equal(
      formatText(nothing),
      `This is a web page, not a playlist: ${url}. Its stream has no playlist:
start the stream and its encoder.
`,
    )
    const checked = formatText(result([finding()], { url, isWebPage: true }))
    t.match(
      checked,
      `This is a web page, not a playlist: its stream was checked,\n    ${BASE}playlist.m3u8\n`,
    )
    t.match(checked, '(playlist.m3u8, line 5)')
  },
)

t.test('shows control characters of a server, and obeys none', async (t) => {
  const [, seen] = PART_EVIDENCE
  const text = formatText(
    result([finding({}, { evidence: [[{ text: HOSTILE, url: HOSTILE }, seen]] })], {
      url: `${BASE}${HOSTILE}`,
    }),
  )
  t.notMatch(text, /[^\P{C}\n]/u)
  t.match(text, '\\u{1b}[2J\\u{9b}31m\\u{202e}txt.\\u{0}\\u{7}')
})

t.test('has no line of more than 100 columns, however long the facts and names are', async (t) => {
  const long = 'x'.repeat(5000)
  const words = 'word '.repeat(300)
  const text = { requirement: words, remedy: words, clause: words }
  const effects = { android: { severity: 'stalls', text: `${words} ${long}` } } as const
  const evidence = [[{ text: words }, { text: long, url: `https://a/${long}`, line: 9 }]] as const
  const written = formatText(
    result([finding({ ...text, effects }, { evidence })], { url: `${BASE}${long}` }),
  )
  t.same(
    written.split('\n').filter((line) => line.length > 100),
    [],
  )
  t.match(written, ', line 9)')
})

t.test('is colored for a terminal that wants colors, and else never', async (t) => {
  const colored = result([finding()])
  const plain = formatText(colored)
  t.notMatch(plain, '\u001b')
  t.equal(formatText(colored, { stream: { isTTY: false, hasColors: () => true } }), plain)
  t.equal(formatText(colored, { stream: { isTTY: true, hasColors: () => false } }), plain)
  const painted = formatText(colored, { stream: { isTTY: true, hasColors: () => true } })
  t.match(painted, '\u001b[')
  t.equal(stripVTControlCharacters(painted), plain)
})

t.test(
  'the line of progress tells time, traffic, media, the live edge and what is broken',
  async (t) => {
    const progress = { elapsedSec: 12.7, seconds: 60, requests: 1, bytes: 5_400_000 }
    t.equal(
      progressLine({ ...progress, segments: 12, parts: 0, broken: 0 }),
      '12/60 s · 1 request, 5.4 MB · 12 segments · nothing broken',
    )
    const edge = 'segment 1042, part 3'
    t.equal(
      progressLine({ ...progress, segments: 1, parts: 58, edge, broken: 2 }),
      '12/60 s · 1 request, 5.4 MB · 1 segment and 58 parts · at segment 1042, part 3 · 2 rules broken',
    )
    t.ok(
      progressLine({ ...progress, segments: 1, parts: 1, edge: '\n'.repeat(99), broken: 1 })
        .length < 100,
    )
  },
)
