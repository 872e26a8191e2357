/**
 * The reports for machines: JSON, JUnit and the exit status.
 */
import t from 'tap'
import { formatJson, formatJunit } from '../../../src/check/report/machine.ts'
import { exitStatus, verdicts } from '../../../src/check/report/verdicts.ts'
import { finding, nothingFetched, PART_EVIDENCE, result, rule } from './results.ts'

const SHOULD = finding({ id: 'STALE', level: 'SHOULD', effects: {} })
const HOSTILE = ']]></failure><!--\u001b[2J\u009b\u202e\u0000\ufffe\ud800&amp;"\'\n'
const HOSTILE_FINDING = finding(
  {},
  { evidence: [[{ text: HOSTILE, url: HOSTILE, line: 3 }, PART_EVIDENCE[1]]] },
)

t.test('JSON has all findings, playlists and verdicts', async (t) => {
  const report = JSON.parse(formatJson(result([finding(), SHOULD]))) as Record<string, any>
  t.match(report, {
    format: 1,
    url: 'https://media.example/video/studio/master.m3u8',
    startedAt: '2026-01-01T12:00:00.000Z',
    durationSec: 60.04,
    exitStatus: 1,
    playlists: [
      {
        targetDurationSec: 2,
        partTargetSec: 0.208,
        tracks: [{ width: 160 }, {}],
        peakBps: 101_235,
      },
      { tracks: [{ kind: 'audio', codec: 'mp4a.40.2' }] },
    ],
    verdicts: {
      apple: { outcome: 'stops', rules: ['PART_OVER_TARGET'] },
      android: { outcome: 'plays', rules: [] },
    },
    findings: [
      {
        id: 'PART_OVER_TARGET',
        level: 'MUST',
        count: 3,
        firstAt: '2026-01-01T12:00:03.200Z',
        evidence: [{ claim: PART_EVIDENCE[0], seen: PART_EVIDENCE[1] }],
      },
      { id: 'STALE', effects: {} },
    ],
  })
})

t.test('JSON and JUnit tell a web page from a playlist', async (t) => {
  const page = { ...nothingFetched(), isWebPage: true }
  t.match(JSON.parse(formatJson(page)), { webPage: true, exitStatus: 2 })
  t.match(
    formatJunit(page, []),
    '<error message="this is a web page, not a playlist" type="FETCH"/>',
  )
  t.match(JSON.parse(formatJson(result([]))), { webPage: false })
})

t.test('JSON counts the requests that a full record lacks', async (t) => {
  t.match(JSON.parse(formatJson(result([], { unrecorded: 3 }))), { unrecorded: 3 })
})

t.test('JSON keeps hostile text, and shows none of it raw', async (t) => {
  const text = formatJson(result([HOSTILE_FINDING]))
  t.notMatch(text, /[^\P{C}\n]/u)
  const { findings } = JSON.parse(text) as { findings: { evidence: { claim: object }[] }[] }
  t.same(findings[0]?.evidence[0]?.claim, { text: HOSTILE, url: HOSTILE, line: 3 })
})

t.test('JUnit has a test case for each rule: failed, skipped or passed', async (t) => {
  const rules = [rule(), SHOULD.rule, rule({ id: 'KEPT' })]
  t.equal(
    formatJunit(result([finding(), SHOULD]), rules),
    `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="0" skipped="1" time="60.040">
  <testsuite name="millrace check https://media.example/video/studio/master.m3u8" tests="4" failures="1" errors="0" skipped="1" time="60.040" timestamp="2026-01-01T12:00:00">
    <testcase name="FETCH" classname="millrace.check" time="0"/>
    <testcase name="PART_OVER_TARGET (RFC 8216bis 4.4.4.9)" classname="millrace.check" time="0"><failure message="No part is longer than PART-TARGET. Broken 3 times." type="PART_OVER_TARGET">MUST, RFC 8216bis 4.4.4.9

- PART-TARGET is 0.20800 s (https://media.example/video/studio/playlist.m3u8, line 5)
- this part lasts 0.23333 s (https://media.example/video/studio/playlist.m3u8, line 21)

Remedy: Announce the longest part that can occur as PART-TARGET.</failure></testcase>
    <testcase name="STALE (RFC 8216bis 4.4.4.9)" classname="millrace.check" time="0"><skipped message="No part is longer than PART-TARGET. Broken 3 times."/><system-out>SHOULD, RFC 8216bis 4.4.4.9

- PART-TARGET is 0.20800 s (https://media.example/video/studio/playlist.m3u8, line 5)
- this part lasts 0.23333 s (https://media.example/video/studio/playlist.m3u8, line 21)

Remedy: Announce the longest part that can occur as PART-TARGET.</system-out></testcase>
    <testcase name="KEPT (RFC 8216bis 4.4.4.9)" classname="millrace.check" time="0"/>
  </testsuite>
</testsuites>
`,
  )
})

t.test('JUnit stays well-formed with hostile text', async (t) => {
  const xml = formatJunit(result([HOSTILE_FINDING], { url: `https://a/${HOSTILE}` }), [rule()])
  // XML 1.0, production 2: no other control characters, surrogates or noncharacters.
  t.notMatch(xml, /[^\P{C}\n]/u)
  t.match(xml, ']]&gt;&lt;/failure&gt;&lt;!--\\u{1b}[2J')
  const tags = xml.match(/<[^>]*>/g)!.map((tag) => /^<[?/]?[\w]+/.exec(tag)?.[0])
  t.same(tags, [
    ...['<?xml', '<testsuites', '<testsuite', '<testcase', '<testcase', '<failure', '</failure'],
    ...['</testcase', '</testsuite', '</testsuites'],
  ])
  t.notMatch(xml.replace(/&(amp|lt|gt|quot);/g, ''), '&')
})

t.test('JUnit has an error if no playlist could be fetched', async (t) => {
  const xml = formatJunit(nothingFetched(), [rule()])
  t.match(xml, /<testsuite .* errors="1"/)
  t.match(xml, '<error message="no playlist could be fetched" type="FETCH"/></testcase>')
})

t.test('a verdict is the worst effect, with the rules that have it', async (t) => {
  const stalls = { apple: { severity: 'stalls', text: 'Waits.' } } as const
  t.same(verdicts([finding({ id: 'A', effects: stalls }), finding({ id: 'B' }), finding()]), {
    apple: { outcome: 'stops', rules: ['B', 'PART_OVER_TARGET'] },
    hlsjs: { outcome: 'degrades', rules: ['B', 'PART_OVER_TARGET'] },
    shaka: { outcome: 'plays', rules: [] },
    videojs: { outcome: 'plays', rules: [] },
    android: { outcome: 'plays', rules: [] },
  })
})

t.test(
  'the exit status is 0 with SHOULD rules broken, 1 with MUST, 2 with nothing fetched',
  async (t) => {
    t.equal(exitStatus(result([])), 0)
    t.equal(exitStatus(result([SHOULD])), 0)
    t.equal(exitStatus(result([SHOULD, finding()])), 1)
    t.equal(exitStatus(nothingFetched()), 2)
  },
)
