/** Each rule on parts, hints and reports, broken once. */
import t from 'tap'
import type { Exchange } from '../../../src/check/exchange.ts'
import { breaks, editMedia, keepsAll, recordPlaylists } from './fixture.ts'

const session = await recordPlaylists()
const ofMain = ({ url }: Exchange) => url.includes('cmaf-video-1')
const main = session.filter(ofMain)
const lost = (await recordPlaylists({ reconnects: true, stops: true })).filter(ofMain)

const inMain = (search: string | RegExp, by: string) =>
  editMedia(main, (text) => text.replaceAll(search, by))
const fromVersion = (first: number, search: string | RegExp, by: string, exchanges = main) =>
  editMedia(exchanges, (text, index) => (index < first ? text : text.replaceAll(search, by)))

t.test('finds each rule on parts alone', async (t) => {
  const after = (part: string) => main.findIndex(({ reply }) => reply!.body.includes(part)) + 1
  const part = 'DURATION=0.20001,URI="e-v1-p7.m4s"'
  const listed = after(part)
  breaks(t, 'PART_CHANGED', fromVersion(listed, part, 'DURATION=0.20001,URI="f-v1-p7.m4s"'), 'URI')
  breaks(
    t,
    'PART_CHANGED',
    fromVersion(listed, part, 'DURATION=0.20100,URI="e-v1-p7.m4s"'),
    'duration',
  )
  const segment = /#EXT-X-PART:.*e-v1-p2[0-4].*\n/g
  breaks(t, 'PARTS_OUT_OF_ORDER', fromVersion(after('URI="e-v1-p25.m4s"'), segment, ''))
  breaks(
    t,
    'PART_BEFORE_ITS_TAGS',
    inMain(/(#EXT-X-PROGRAM-DATE-TIME.*\n)(#EXT-X-PART:.*e-v1-p10\..*\n)/g, '$2$1'),
  )
  breaks(t, 'GAP_PARTS', inMain('URI="e-v1-p10.m4s"', 'URI="e-v1-p10.m4s",GAP=YES'), 'INDEPENDENT')
  breaks(t, 'LOW_LATENCY_WITHOUT_DATES', inMain(/#EXT-X-PROGRAM.*\n/g, ''))
  breaks(t, 'INDEPENDENT_MISSING', inMain('"e-v1-p10.m4s",INDEPENDENT=YES', '"e-v1-p10.m4s"'))
  breaks(t, 'BLOCKING_RELOAD_MISSING', inMain('CAN-BLOCK-RELOAD=YES,', ''))
  const old = `#EXT-X-PART:DURATION=0.20000,URI="o.ts",INDEPENDENT=YES\n`.repeat(5)
  const [version] = editMedia([main[30]!], (text) =>
    text.replace(/#EXTINF.*\n.*\n(?=#EXT-X-PROGRAM)/, `${old}$&`),
  )
  breaks(t, 'PARTS_TOO_LONG_LISTED', [version!])
})

t.test('accepts a segment that an encoder cuts off before its audio has come', async (t) => {
  const last =
    /"(e-v1-p\d+\.m4s)",INDEPENDENT=YES\n(#EXT-X-PART:.*\n)*#EXTINF.*\n.*\n#EXT-X-DISCONTINUITY\n/
  const [, uri] = lost.flatMap(({ reply }) => last.exec(reply!.body.toString()) ?? [])
  t.ok(uri)
  const cut = editMedia(lost, (text) => text.replace(`"${uri}",INDEPENDENT=YES`, `"${uri}"`))
  keepsAll(t, cut)
})

t.test('finds each rule on hints alone', async (t) => {
  breaks(t, 'HINT_MISSING', inMain(/#EXT-X-PRELOAD-HINT.*\n/g, ''))
  breaks(
    t,
    'HINT_AFTER_END',
    editMedia(lost, (text) =>
      text.replace('#EXT-X-ENDLIST\n', '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="e"\n$&'),
    ),
  )
  breaks(t, 'HINT_NOT_KEPT', inMain('TYPE=PART,URI="e-v1-p7.m4s"', 'TYPE=PART,URI="f-v1-p7.m4s"'))
  const second = '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="z.ts"\n'
  breaks(t, 'HINT_REPEATED', inMain(/#EXT-X-PRELOAD-HINT.*\n/g, `$&${second}`))
  const inLost = (search: RegExp, by: string) => editMedia(lost, (text) => text.replace(search, by))
  const announced = /#EXT-X-DISCONTINUITY\n(#EXT-X-RENDITION-REPORT)/
  t.ok(
    lost.some(({ reply }) => announced.test(reply!.body.toString())),
    'a DISCONTINUITY before its segment',
  )
  breaks(t, 'DISCONTINUITY_LATE', inLost(announced, '$1'))
  const hinted = inLost(
    announced,
    '#EXT-X-DISCONTINUITY\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI="e-v1-p46.m4s"\n$1',
  )
  keepsAll(t, hinted)
  const abandoned = editMedia(hinted, (text) => text.replace(/(HINT.*-p4)6/, '$15'))
  keepsAll(t, abandoned)
  breaks(
    t,
    'DISCONTINUITY_WITHDRAWN',
    editMedia(hinted, (text) =>
      text
        .replace(/#EXT-X-DISCONTINUITY\n(#EXT-X-PROGRAM)/, '$1')
        .replace('DISCONTINUITY-SEQUENCE:1\n', 'DISCONTINUITY-SEQUENCE:0\n'),
    ),
  )
  breaks(
    t,
    'MAP_BEHIND_HINT',
    editMedia(hinted, (text) =>
      text.replace(/(#EXT-X-DISCONTINUITY\n)(#EXT-X-PROGRAM)/, '$1#EXT-X-MAP:URI="z.mp4"\n$2'),
    ),
  )
})

t.test('finds each rule on reports alone', async (t) => {
  const inAll = (search: string | RegExp, by: string) =>
    editMedia(session, (text, _, url) => (url.includes('audio') ? text : text.replace(search, by)))
  breaks(t, 'REPORT_MISSING', inAll(/#EXT-X-RENDITION-REPORT.*\n/, ''))
  breaks(
    t,
    'REPORT_ABSOLUTE',
    inAll('URI="cmaf-audio-2', 'URI="https://media.example/video/studio/cmaf-audio-2'),
  )
  const wrong = inAll('LAST-MSN=5,LAST-PART=2', 'LAST-MSN=7,LAST-PART=0')
  breaks(t, 'REPORT_WRONG', wrong.map(afterMain))
  breaks(t, 'RENDITION_BEHIND', inAll('LAST-MSN=5,LAST-PART=4', 'LAST-MSN=5,LAST-PART=0'))
})

/** The audio playlist is asked for when the main one has arrived. */
function afterMain(exchange: Exchange): Exchange {
  const { reply, sentAtMs } = exchange
  if (!exchange.url.includes('audio')) return exchange
  const endedAtMs = reply!.endedAtMs + 10
  return { ...exchange, sentAtMs: sentAtMs + 10, reply: { ...reply!, endedAtMs } }
}
