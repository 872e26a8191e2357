import t from 'tap'
import { NO_SHORTAGE } from '../../src/hls/store/cache-account.ts'
import { CacheReport, describeCapacity } from '../../src/service/cache-report.ts'
import type { SegmentCacheStats } from '../../src/hls/store/segment-cache.ts'

const MIB = 1024 * 1024

const STATS: SegmentCacheStats = {
  ...{ maxBytes: 512 * MIB, bytes: 500 * MIB, listedBytes: 300 * MIB, segments: 400 },
  ...{
    queuedBytes: 95 * MIB,
    neededBytes: 1788.1 * MIB,
    advisedBytes: 1788.1 * MIB,
    ...NO_SHORTAGE,
  },
}

t.test('describes the bitrates that the memory suffices for', async (t) => {
  t.equal(
    describeCapacity(512, { formats: ['ts'], segmentSec: 2, playlistSegments: 6 }),
    'CACHE_MAX_MIB is 512: enough for encoders of 143 Mbit/s in all. Above that, playlists get shorter; above 536 Mbit/s, viewers lose segments.',
  )
  t.match(
    describeCapacity(512, { formats: ['ts', 'cmaf'], segmentSec: 2, playlistSegments: 6 }),
    / 71 Mbit\/s .* 268 /,
    'half as much in two formats',
  )
})

t.test('warns of a shortage at once, and at most once a minute', async (t) => {
  const cache = { stats: STATS }
  const report = new CacheReport(cache)
  t.strictSame(report.observe(0), [])
  cache.stats = { ...STATS, unlistedEarly: 1_234_567, releasedEarly: 1_234_567, refused: 1_234_567 }
  const [line] = report.observe(1e6)
  t.equal(
    line,
    'Memory is short: 1234567 segments unlisted, 1234567 released early, 1234567 gaps. Viewers see less. Set CACHE_MAX_MIB to 1789 (now 512, 95 in queues).',
  )
  t.ok(line!.length <= 160)
  cache.stats = { ...cache.stats, refused: 1_234_570 }
  t.strictSame(report.observe(60.9e6), [])
  t.match(report.observe(61e6), [/: 0 segments unlisted, 0 released early, 3 gaps\. /])
  t.strictSame(report.observe(200e6), [], 'it is over')
})
