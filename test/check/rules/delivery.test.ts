/** Each rule on delta updates, broken once. */
import t from 'tap'
import { breaks, from, keepsAll, load, playlist, PLAYLIST_URL } from './fixture.ts'

const HEAD = { 'EXT-X-SERVER-CONTROL': 'CAN-SKIP-UNTIL=12' }
const FULL = playlist(from(0, 10), HEAD)
const NEXT = playlist(from(0, 11), HEAD)

/** Delta update of the playlist with segments up to `last`. */
const delta = (skipped: number, last: number) =>
  playlist(from(skipped, last + 1 - skipped), {
    ...HEAD,
    ...{ 'EXT-X-VERSION': 9, 'EXT-X-MEDIA-SEQUENCE': 0 },
    'EXT-X-SKIP': `SKIPPED-SEGMENTS=${skipped}`,
  })
const session = (update: string, full = NEXT) => [
  load(FULL, 20),
  load(update, 22, { role: 'delta', url: `${PLAYLIST_URL}?_HLS_skip=YES` }),
  load(full, 22.1),
]

t.test('finds nothing in a delta update that equals the full playlist', async (t) => {
  keepsAll(t, session(delta(4, 10)))
})

t.test('finds each rule on delta updates alone', async (t) => {
  breaks(t, 'DELTA_DIFFERS', session(delta(4, 10), NEXT.replaceAll('a-10.ts', 'a-10.ts?a')))
  breaks(t, 'DELTA_SKIPS_TOO_MUCH', session(delta(8, 10)))
  breaks(t, 'DELTA_MISSING', session(NEXT))
})
