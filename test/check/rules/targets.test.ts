/** Each rule on target durations and EXT-X-SERVER-CONTROL, broken once. */
import t from 'tap'
import {
  breaks,
  editMedia,
  from,
  keepsAll,
  load,
  playlist,
  recordPlaylists,
  versions,
} from './fixture.ts'

const session = await recordPlaylists()
const everywhere = (search: string | RegExp, by: string) =>
  editMedia(session, (text) => text.replaceAll(search, by))
const inMain = (search: string | RegExp, by: string) =>
  editMedia(session, (text, _, url) => (url.includes('audio') ? text : text.replaceAll(search, by)))
const mainOnly = session.filter(({ url }) => url.includes('cmaf-video-1'))
const fromVersion = (first: number, search: string | RegExp, by: string) =>
  editMedia(mainOnly, (text, index) => (index < first ? text : text.replaceAll(search, by)))

t.test('finds nothing in a session of our own', async (t) => keepsAll(t, session))

t.test('finds each rule on low latency alone', async (t) => {
  const { evidence, count } = breaks(
    t,
    'PART_OVER_TARGET',
    inMain('DURATION=0.20001,URI="e-v1-p7.m4s"', 'DURATION=0.23333,URI="e-v1-p7.m4s"'),
  )
  t.equal(count, 1, 'a part that many versions list counts once')
  t.match(evidence[0], [
    { text: 'PART-TARGET is 0.21335 s', line: 5 },
    { text: 'part 2 of segment 2 lasts 0.23333 s', line: /\d+/ },
  ])
  breaks(t, 'PART_TARGET_CHANGED', fromVersion(20, 'PART-TARGET=0.21335', 'PART-TARGET=0.21300'))
  breaks(t, 'SERVER_CONTROL_CHANGED', fromVersion(20, 'HOLD-BACK=3\n', 'HOLD-BACK=4\n'))
  breaks(t, 'SERVER_CONTROLS_DIFFER', inMain('HOLD-BACK=3\n', 'HOLD-BACK=4\n'))
  breaks(
    t,
    'PART_TOO_SHORT',
    inMain('DURATION=0.20001,URI="e-v1-p7.m4s"', 'DURATION=0.17000,URI="e-v1-p7.m4s"'),
  )
  breaks(t, 'PART_INF_MISSING', everywhere(/#EXT-X-PART-INF.*\n/g, ''))
  breaks(
    t,
    'PARTS_UNLIKE_SEGMENT',
    inMain('#EXTINF:1.00000,\ne-v1-4.m4s', '#EXTINF:1.1,\ne-v1-4.m4s'),
  )
  breaks(t, 'PART_HOLD_BACK_TOO_SHORT', everywhere('=0.64005', '=0.4'))
  breaks(t, 'PART_HOLD_BACK_TOO_SHORT', everywhere('PART-HOLD-BACK=0.64005,', ''), 'none')
  breaks(t, 'PART_HOLD_BACK_SHORT', everywhere('=0.64005', '=0.5'))
  breaks(t, 'HOLD_BACK_TOO_SHORT', everywhere(',HOLD-BACK=3', ',HOLD-BACK=2.5'))
  breaks(t, 'SKIP_BOUNDARY_TOO_SHORT', everywhere(',HOLD-BACK=3', ',HOLD-BACK=3,CAN-SKIP-UNTIL=5'))
  breaks(
    t,
    'SKIP_BOUNDARY_TOO_SHORT',
    everywhere(',HOLD-BACK=3', ',HOLD-BACK=3,CAN-SKIP-DATERANGES=YES'),
    'alone',
  )
})

t.test('finds each rule on segments alone', async (t) => {
  const good = playlist(from(0, 4))
  breaks(t, 'SEGMENT_OVER_TARGET', versions(good.replace('2.000,\na-3', '2.500,\na-3')))
  keepsAll(t, versions(good.replace('2.000,\na-3', '2.499,\na-3')), 'rounded to the nearest')
  breaks(t, 'WINDOW_TOO_SHORT', versions(good, playlist(from(2, 2))))
  keepsAll(t, versions(playlist(from(0, 1)), playlist(from(0, 2))), 'a stream begins short')
  keepsAll(t, versions(good, `${playlist(from(2, 2))}#EXT-X-ENDLIST\n`), 'and may end short')
  breaks(
    t,
    'TARGETDURATION_CHANGED',
    versions(good, playlist(from(0, 5), { 'EXT-X-TARGETDURATION': 3 })),
  )
})

t.test('finds TARGETDURATIONS_DIFFER alone', async (t) => {
  const other = load(playlist(from(0, 6), { 'EXT-X-TARGETDURATION': 3 }), 12).reply!
  const url = 'https://media.example/video/studio/b.m3u8'
  const multivariant =
    '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2,CODECS="mp4a.40.2"\nplaylist.m3u8\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="mp4a.40.2"\nb.m3u8\n'
  breaks(t, 'TARGETDURATIONS_DIFFER', [
    load(multivariant, 12, { role: 'multivariant', url: new URL('master.m3u8', url).href }),
    load(playlist(from(0, 6)), 12),
    load(playlist(from(0, 6)), 12, { url, reply: { ...other, url } }),
  ])
})
