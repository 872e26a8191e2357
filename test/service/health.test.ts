import t from 'tap'
import { Health } from '../../src/service/health.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'

t.test('a refused segment makes the process unready for 30 s', async (t) => {
  const { stats } = new SegmentCache({ maxBytes: 1 })
  const cache = { stats }
  const health = new Health({
    listener: {
      kernelDrops: async () => 0,
      stats: () => t.fail('no encoder is connected') as never,
    },
    cache,
    listPublished: () => [],
    closeReaders: () => 0,
    onWarning: () => undefined,
  })
  t.teardown(() => health.close())
  health.observe(0)
  t.same(health.reasonsAt(0), [])
  cache.stats = { ...stats, refused: 1 }
  health.observe(1e6)
  t.same(health.reasonsAt(30.9e6), ['memory-short'])
  health.observe(20e6)
  t.same(health.reasonsAt(31e6), [])
})
