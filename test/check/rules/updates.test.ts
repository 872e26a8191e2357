/** Each rule on versions of a playlist, broken once. */
import t from 'tap'
import {
  breaks,
  editMedia,
  from,
  judge,
  keepsAll,
  load,
  playlist,
  recordPlaylists,
  versions,
} from './fixture.ts'

const SESSION = await recordPlaylists({ reconnects: true, stops: true })
const VIDEO = SESSION.filter(({ url }) => url.includes('cmaf-video-1'))
const GOOD = playlist(from(0, 4))
const end = (text: string) => `${text}#EXT-X-ENDLIST\n`

t.test('finds nothing in a playlist that rolls, has a discontinuity and ends', async (t) => {
  const changed = { msn: 4, discontinuity: true, atSec: 30 }
  const after = [5, 6, 7].map((msn) => ({ msn, atSec: 32 + (msn - 5) * 2 }))
  const last = playlist(after, { 'EXT-X-DISCONTINUITY-SEQUENCE': 1 })
  keepsAll(
    t,
    [
      playlist(from(0, 3)),
      playlist(from(1, 3)),
      playlist([...from(2, 2), changed]),
      playlist([changed, ...after.slice(0, 2)]),
      last,
      end(last),
    ].map((text, index) => load(text, 6 + index * 2 + (index > 1 ? 22 : 0))),
  )
})

t.test('finds each rule alone', async (t) => {
  breaks(t, 'MEDIA_SEQUENCE_BACK', versions(playlist(from(100, 4)), playlist(from(0, 4))))
  breaks(t, 'SEGMENT_CHANGED', versions(GOOD, GOOD.replace('a-2', 'b-2')), 'URI')
  breaks(t, 'SEGMENT_CHANGED', versions(GOOD, GOOD.replace('2.000,\na-3', '2.001,\na-3')), 'EXTINF')
  breaks(t, 'SEGMENT_CHANGED', versions(GOOD, GOOD.replace('06.000Z', '06.100Z')), 'date')
  keepsAll(t, versions(GOOD.replace('a-2.ts', 'a-2.ts?t=1'), GOOD), 'a query may change')
  const discontinued = playlist([{ msn: 0, discontinuity: true }, ...from(1, 4)])
  breaks(
    t,
    'DISCONTINUITY_SEQUENCE_WRONG',
    versions(discontinued, playlist(from(1, 4))),
    'not counted',
  )
  breaks(
    t,
    'DISCONTINUITY_SEQUENCE_WRONG',
    versions(
      playlist(from(0, 4), { 'EXT-X-DISCONTINUITY-SEQUENCE': 3 }),
      playlist(from(8, 4), { 'EXT-X-DISCONTINUITY-SEQUENCE': 2 }),
    ),
    'decreases',
  )
  breaks(
    t,
    'DISCONTINUITY_SEQUENCE_WRONG',
    versions(discontinued, playlist(from(5, 4))),
    'not counted where no segment stays',
  )
  breaks(
    t,
    'DISCONTINUITY_SEQUENCE_WRONG',
    versions(GOOD, playlist(from(4, 4), { 'EXT-X-DISCONTINUITY-SEQUENCE': 1 })),
    'counted without a discontinuity',
  )
  breaks(
    t,
    'DISCONTINUITY_SEQUENCE_WRONG',
    versions(discontinued, playlist(from(9, 4))),
    'not counted where segments in between are not known',
  )
  keepsAll(
    t,
    versions(discontinued, playlist(from(9, 4), { 'EXT-X-DISCONTINUITY-SEQUENCE': 3 })),
    'discontinuities of segments that are not known are accepted',
  )
  breaks(t, 'SEGMENT_BECAME_GAP', versions(GOOD, GOOD.replace('#EXTINF', '#EXT-X-GAP\n#EXTINF')))
  breaks(t, 'ENDLIST_REMOVED', versions(end(GOOD), GOOD))
  breaks(t, 'SEGMENT_AFTER_ENDLIST', versions(end(GOOD), end(playlist(from(0, 5)))))
  const typed = (type: string) => ({ 'EXT-X-PLAYLIST-TYPE': type })
  breaks(
    t,
    'PLAYLIST_TYPE_BROKEN',
    versions(playlist(from(0, 4), typed('EVENT')), playlist(from(1, 4), typed('EVENT'))),
    'EVENT',
  )
  breaks(
    t,
    'PLAYLIST_TYPE_BROKEN',
    versions(playlist(from(0, 4), typed('VOD')), playlist(from(0, 5), typed('VOD'))),
    'VOD',
  )
  keepsAll(t, versions(playlist(from(0, 4), typed('EVENT')), playlist(from(0, 5), typed('EVENT'))))
  const key = { tags: ['#EXT-X-KEY:METHOD=AES-128,URI="key"'] }
  breaks(
    t,
    'KEY_REMOVED',
    versions(playlist([...from(0, 1, key), ...from(1, 3)]), playlist(from(1, 4))),
  )
})

t.test('finds an older version alone, and no other fault in it', async (t) => {
  const texts = [GOOD, playlist(from(1, 4)), playlist(from(2, 4))]
  breaks(t, 'OLDER_VERSION', versions(...texts, texts[0]!, texts[1]!), 'seen before')
  breaks(t, 'OLDER_VERSION', versions(GOOD, playlist(from(0, 3))), 'never seen')
  breaks(t, 'OLDER_VERSION', versions(GOOD, end(GOOD), GOOD), 'before its end')
  const [first, second] = versions(...texts)
  const overtaken = { ...first!, sentAtMs: second!.sentAtMs - 1 }
  keepsAll(t, [first!, second!, overtaken], 'a reply that was overtaken')
})

t.test('finds a playlist that is stale, once for each time', async (t) => {
  const grown = playlist(from(0, 5))
  const polls = [8, 10, 11.1, 12, 13].map((sec) => load(GOOD, sec))
  const { count, evidence } = breaks(t, 'PLAYLIST_STALE', [...polls, load(grown, 14)])
  t.equal(count, 1)
  t.match(evidence[0]?.[1], { text: '3.1 s after segment 3 none had followed' })
  keepsAll(t, [load(GOOD, 8), load(GOOD, 11), load(grown, 20)], 'a client that asked too seldom')
  const held = load(grown, 12, { role: 'blocking' })
  const late = { ...held, sentAtMs: held.sentAtMs - 4000 }
  breaks(t, 'PLAYLIST_STALE', [load(GOOD, 8), late], 'a reply that was held')
})

t.test('finds parts that are stale alone', async (t) => {
  const at = VIDEO.findIndex(({ url }) => url.includes('_HLS_msn=5&_HLS_part=0'))
  const poll = (afterMs: number) => {
    const { reply, sentAtMs } = VIDEO[at]!
    const atMs = sentAtMs + afterMs
    const times = { headersAtMs: atMs, endedAtMs: atMs }
    return { ...VIDEO[at]!, sentAtMs: atMs, reply: { ...reply!, ...times } }
  }
  breaks(t, 'PARTS_STALE', [...VIDEO.slice(0, at + 1), poll(200), poll(800), poll(1250)])
  keepsAll(t, [...VIDEO.slice(0, at + 1), poll(200), poll(400)])
})

t.test('finds no stale parts where the encoder was away for 2.5 s', async (t) => {
  const heldAt = (at: number) =>
    VIDEO.map(({ sentAtMs, reply, ...rest }, index) => {
      const lateMs = index < at ? 0 : 2500
      const headersAtMs = reply!.headersAtMs + lateMs
      const times = { headersAtMs, endedAtMs: reply!.endedAtMs + lateMs }
      // The reply that was held brings the next part.
      const sent = { sentAtMs: index === at ? sentAtMs : sentAtMs + lateMs }
      return { ...rest, ...sent, reply: { ...reply!, ...times } }
    })
  const after = VIDEO.findIndex(({ reply }) =>
    /DISCONTINUITY\n.*\n#EXT-X-PART:/.test(String(reply!.body)),
  )
  const ids = (at: number) => judge(heldAt(at)).map(({ rule }) => rule.id)
  t.same(ids(after), ['PLAYLIST_STALE'])
  t.same(ids(after + 2), ['PLAYLIST_STALE', 'PARTS_STALE'])
})

t.test('judges deltas and versions of low latency as one timeline', async (t) => {
  keepsAll(t, SESSION)
  const renamed = editMedia(SESSION, (text, index) =>
    index > 30 ? text.replaceAll('\ne-v1-4.m4s', '\nf-v1-4.m4s') : text,
  )
  t.same(
    judge(renamed).map(({ rule }) => rule.id),
    ['SEGMENT_CHANGED'],
  )
})
