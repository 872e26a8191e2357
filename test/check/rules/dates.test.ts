/** Each rule on dates and date ranges, broken once. */
import t from 'tap'
import { ORIGIN } from '../session.ts'
import { breaks, from, keepsAll, load, playlist, versions } from './fixture.ts'

const GOOD = playlist(from(0, 4))
const range = (attributes: string) => `#EXT-X-DATERANGE:${attributes}\n`
const A = 'ID="a",START-DATE="2026-01-01T00:00:03.000Z"'

t.test('finds each rule on dates alone', async (t) => {
  const shifted = (atSec: number, discontinuity = false) =>
    versions(playlist([...from(0, 3), { msn: 3, atSec, discontinuity }]))
  breaks(t, 'DATES_OVERLAP', shifted(4))
  breaks(t, 'DATES_OVERLAP', shifted(4.5, true), 'behind a discontinuity')
  keepsAll(t, shifted(5.2, true), 'less than a second')
  breaks(t, 'DATE_MISSES_EXTINF', shifted(6.5))
  keepsAll(t, shifted(6.2), 'jitter of an arrival time')
  keepsAll(t, shifted(9, true), 'a gap that is marked')
  const coarse = playlist(
    [
      { msn: 0, sec: '2' },
      { msn: 1, sec: '2', atSec: 2.4 },
    ],
    {
      'EXT-X-VERSION': undefined,
    },
  )
  keepsAll(t, versions(coarse), 'EXTINF without decimals')
  const undated = playlist([...from(0, 3), { msn: 3, discontinuity: true }])
  breaks(t, 'DATE_MISSING', versions(undated.replace(/#EXT-X-PROGRAM.*06.000Z\n/, '')))
})

t.test('finds dates off the clock of the server alone', async (t) => {
  breaks(t, 'DATE_OFF_CLOCK', [load(GOOD, 5)], 'ahead')
  breaks(t, 'DATE_OFF_CLOCK', [load(GOOD, 700)], 'behind')
  keepsAll(t, [load(GOOD, 7)], 'within 2 s')
  const told = (date: string, text = GOOD) => {
    const reply = load(text, 5).reply!
    return [load(text, 5, { reply: { ...reply, headers: { ...reply.headers, date } } })]
  }
  keepsAll(t, told('Thu, 01 Jan 2026 00:00:08 GMT'), 'by the clock of the server')
  const later = GOOD.replaceAll('.000Z', '.500Z')
  keepsAll(t, told('Thu, 01 Jan 2026 00:00:06 GMT', later), 'which tells whole seconds')
  breaks(t, 'DATE_OFF_CLOCK', told('Thu, 01 Jan 2026 00:00:05 GMT', later))
  keepsAll(t, told('Fri, 02 Jan 2026 00:00:08 GMT'), 'no clock to trust')
})

t.test('finds each rule on date ranges over versions alone', async (t) => {
  const rolled = playlist(from(2, 4))
  breaks(t, 'DATERANGE_REMOVED', versions(GOOD + range(A), rolled), 'without end')
  breaks(t, 'DATERANGE_REMOVED', versions(GOOD + range(`${A},DURATION=1.5`), rolled))
  keepsAll(t, versions(GOOD + range(`${A},DURATION=0.5`), rolled), 'over')
  breaks(
    t,
    'DATERANGE_CHANGED',
    versions(GOOD + range(`${A},DURATION=1`), playlist(from(0, 5)) + range(`${A},DURATION=2`)),
  )
  breaks(
    t,
    'DATERANGE_CHANGED',
    versions(GOOD + range(`${A},SCTE35-OUT=0xFC`), playlist(from(0, 5)) + range(A)),
    'lost',
  )
  const planned = `${A},PLANNED-DURATION=0.5,SCTE35-OUT=0xFC30`
  keepsAll(
    t,
    versions(
      GOOD + range(planned),
      playlist(from(1, 4)) + range(`${planned},DURATION=0.9`),
      rolled,
    ),
    'grows, and goes when it is over',
  )
})

t.test('finds dates that differ between renditions alone', async (t) => {
  const url = `${ORIGIN}/video/studio/b.m3u8`
  const pair = (other: string) => {
    const loaded = load(other, 8, { url })
    return [
      load(
        '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2,CODECS="mp4a.40.2"\nplaylist.m3u8\n' +
          '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="mp4a.40.2"\nb.m3u8\n',
        8,
        { role: 'multivariant', url: `${ORIGIN}/video/studio/master.m3u8` },
      ),
      load(GOOD, 8),
      loaded,
    ]
  }
  const rule = 'DATES_OF_RENDITIONS_DIFFER'
  breaks(t, rule, pair(GOOD.replaceAll(/#EXT-X-PROGRAM.*\n/g, '')), 'none')
  breaks(t, rule, pair(GOOD.replaceAll('.000Z', '.800Z')), 'apart')
  keepsAll(t, pair(GOOD.replaceAll('.000Z', '.100Z')), 'audio borders')
  const renumbered = playlist(from(0, 4).map(({ msn }) => ({ msn: msn + 1, atSec: msn * 2 })))
  keepsAll(t, pair(renumbered), 'numbers that differ')
})

t.test('a finding quotes no more than 2,000 characters of a line', async (t) => {
  const long = range(`${A},X-LONG="${'x'.repeat(100_000)}"`)
  const [, seen] = breaks(
    t,
    'DATERANGE_CHANGED',
    versions(GOOD + range(`${A},DURATION=1`), playlist(from(0, 5)) + long),
  ).evidence[0]!
  t.match(seen.text, /^ID="a",START-DATE="[^"]+",X-LONG="x+…$/)
  t.equal(seen.text.length, 2001)
})
