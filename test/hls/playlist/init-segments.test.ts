/**
 * EXT-X-MAP in media playlists, and the life of init segments.
 */
import t from 'tap'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { PartSource } from './part-source.ts'

const FIRST = 'e-v1-0.mp4'
const SECOND = 'e-v1-1.mp4'

function setUp({ playlistSegments = 4, partTargetSec = 0.208 }: SetUp = {}) {
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const formats = ['ts', 'cmaf'] as const
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments, formats })
  const source = new PartSource(presentation, ['main', 'cmaf-video-1', 'cmaf-audio-1'])
  const { files } = presentation
  source.complete()
  presentation.setTarget(2, partTargetSec)
  source.complete()
  presentation.settle()
  const read = (uri = 'cmaf-video-1.m3u8') => files.get(uri)?.chunks.join('') ?? ''
  /** Another encoder, with another format. */
  const replace = () => {
    source.segment(10, { endsTimeline: true })
    source.changeFormat()
  }
  const mapsIn = (text: string) => text.match(/#EXT-X-MAP:.*/g)
  return { presentation, source, files, read, replace, mapsIn }
}

interface SetUp {
  readonly playlistSegments?: number
  readonly partTargetSec?: number
}

t.test('EXT-X-MAP precedes the first segment, whichever it is (RFC 8216bis 4.4.4.5)', async (t) => {
  const { source, read, mapsIn } = setUp()
  for (let index = 0; index < 8; index++) {
    t.match(read(), new RegExp(`^#EXTM3U\n(#EXT-X-.*\n)*#EXT-X-MAP:URI="${FIRST}"\n`))
    t.match(read('cmaf-audio-1.m3u8'), '#EXT-X-MAP:URI="e-a1-0.mp4"\n')
    t.notMatch(read('playlist.m3u8'), 'EXT-X-MAP')
    t.equal(mapsIn(read())?.length, 1, 'once')
    t.same(parseM3u8(read()).complaints, [])
    source.segment()
  }
})

t.test('a change stands behind its discontinuity, and before its first part', async (t) => {
  const { source, files, read, replace, mapsIn } = setUp()
  replace()
  t.notMatch(read(), SECOND)
  t.equal(files.availability(SECOND), 'unknown')
  source.part()
  const change = `#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="${SECOND}"\n#EXT-X-PROGRAM-DATE-TIME:.*\n`
  t.match(read(), new RegExp(`${change}#EXT-X-PART:.*\n#EXT-X-PRELOAD-HINT`))
  t.equal(files.availability(SECOND), 'current', 'with its first part')
  source.complete()
  t.match(read(), new RegExp(`${change}#EXT-X-PART:.*\n#EXTINF:.*\ne-v1-3.m4s\n`))
  for (let index = 0; index < 2; index++) {
    source.segment()
    t.same(mapsIn(read()), [`#EXT-X-MAP:URI="${FIRST}"`, `#EXT-X-MAP:URI="${SECOND}"`])
  }
  source.segment()
  t.same(mapsIn(read()), [`#EXT-X-MAP:URI="${SECOND}"`], 'the window has left the change')
})

t.test('the same format after a discontinuity has no tag of its own', async (t) => {
  const { source, read, mapsIn } = setUp()
  source.segment(10, { endsTimeline: true })
  source.segment()
  t.same(mapsIn(read()), [`#EXT-X-MAP:URI="${FIRST}"`])
})

t.test('an init segment is immutable, and served like a segment', async (t) => {
  const { files } = setUp()
  t.match(files.get(FIRST), { contentType: 'video/mp4', version: FIRST, immutable: true })
  t.equal(files.get(FIRST)!.chunks.join(''), FIRST)
  t.equal(files.get('e-a1-0.mp4')!.contentType, 'audio/mp4')
  const loan = files.lend(FIRST)!
  loan.end!()
  loan.end!()
  t.equal(files.availability(FIRST), 'current')
})

t.test(
  'an init segment lives in caches for 300 target durations, also the first one',
  async (t) => {
    const { source, files, replace } = setUp()
    replace()
    source.part()
    for (const uri of [FIRST, SECOND]) t.equal(files.get(uri)!.maxAgeSec, 600, uri)
  },
)

t.test(
  'an init segment goes with the last segment that needs it, listed or retained',
  async (t) => {
    const { source, files, read, replace } = setUp()
    replace()
    const isThere = (uri: string) => files.availability(uri) === 'current'
    let segments = 0
    for (; isThere(FIRST) && segments < 20; segments++) {
      const needed = ['e-v1-0.m4s', 'e-v1-1.m4s', 'e-v1-2.m4s'].some(isThere)
      t.ok(isThere(FIRST) || !needed)
      source.segment()
    }
    t.ok(segments > 6, `${segments} segments`)
    t.notOk(['e-v1-0.m4s', 'e-v1-1.m4s', 'e-v1-2.m4s'].some(isThere), 'no segment is left')
    t.ok(isThere(SECOND))
    t.notMatch(read(), FIRST)
  },
)

t.test('formats that come back, or follow each other in one window, are all there', async (t) => {
  const { source, files, read, replace, mapsIn } = setUp({ playlistSegments: 6 })
  for (let index = 0; index < 30; index++) {
    if (index % 3 === 0) replace()
    else source.segment()
    for (const map of mapsIn(read()) ?? []) {
      t.equal(files.availability(/URI="(.*)"/.exec(map)![1]!), 'current', map)
    }
  }
  const inits = Array.from({ length: 11 }, (_, format) => `e-v1-${format}.mp4`)
  const left = inits.filter((uri) => files.availability(uri) === 'current')
  t.ok(left.length >= 3 && left.length <= 6, left.join())
})

t.test('a discarded stream has no init segment', async (t) => {
  const { presentation, files } = setUp()
  presentation.discard()
  t.equal(files.availability(FIRST), 'unknown')
})
