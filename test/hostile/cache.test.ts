/**
 * The memory for segments, when there is not enough of it.
 */
import t from 'tap'
import { SegmentCache } from '../../src/hls/segment-cache.ts'
import { StreamCrowd, type StreamPlan } from '../support/stream-crowd.ts'

const MIB = 1024 * 1024

function setUp(maxMib: number, plans: readonly StreamPlan[]) {
  const cache = new SegmentCache({ maxBytes: maxMib * MIB })
  return { cache, crowd: new StreamCrowd(cache, plans) }
}

for (const [how, spreadSec] of Object.entries({ 'one after the other': 0.02, 'at once': 0 })) {
  t.test(`100 streams of 5 Mbit/s that cut ${how} have no gap in 512 MiB`, async (t) => {
    const plans = Array.from({ length: 100 }, (_, n) => ({ mbps: 5, fromSec: n * spreadSec }))
    const { cache, crowd } = setUp(512, plans)
    crowd.run(120)
    t.equal(crowd.count('gaps'), 0)
    for (const stream of crowd.streams) {
      const listed = stream.listed()
      t.equal(listed.length, 3)
      t.ok(listed.every(({ uri }) => stream.presentation.segment(uri)))
    }
    const { bytes, maxBytes, neededBytes, releasedEarly } = cache.stats
    t.ok(bytes <= maxBytes)
    t.ok(bytes > maxBytes * 0.99, 'what is not needed for lists is used to retain')
    t.ok(releasedEarly > 0, 'what it cost is counted')
    t.equal(neededBytes, (100 * 6 * 1_250_000) / 0.4)
  })
}

t.test('renditions of a stream give in step', async (t) => {
  const renditions = ['main', 'video-2', 'audio-2'] as const
  const plans = Array.from({ length: 30 }, (_, n) => ({ mbps: 5, renditions, fromSec: n * 0.06 }))
  const { crowd } = setUp(512, plans)
  crowd.run(120, {
    onCut(stream) {
      const [main, ...others] = renditions.map((name) => stream.listed(name).map(numberOf).join())
      if (others.some((numbers) => numbers !== main)) t.fail(`${main}, and ${others.join(' and ')}`)
    },
  })
  t.equal(crowd.count('gaps'), 0)
  t.equal(crowd.streams[0]!.listed().length, 3)
})

t.test('one stream of 60 Mbit/s costs 20 of 5 Mbit/s no gap, and no window', async (t) => {
  const small = Array.from({ length: 20 }, (_, n) => ({ mbps: 5, fromSec: n * 0.1 }))
  // Whole windows of all need 573 MiB, those of the 20 alone 358; in 376 the 21st part is enough for each of the 20.
  for (const maxMib of [376, 384, 448, 512, 573]) {
    const { cache, crowd } = setUp(maxMib, [...small, { mbps: 60, fromSec: 30 }])
    const of20 = crowd.streams.slice(0, 20)
    const large = crowd.streams[20]!
    crowd.run(180)
    t.equal(crowd.count('gaps'), 0, `${maxMib} MiB`)
    t.equal(Math.min(...of20.map((stream) => stream.listed().length)), 6)
    t.ok(large.listed().length >= 3)
    t.equal(cache.shortageOf(large.presentation).unlistedEarly > 0, maxMib < 573, 'it shrinks')
    for (const { presentation } of of20) t.equal(cache.shortageOf(presentation).unlistedEarly, 0)
  }
})

t.test('where not even its shortest window fits, only the large stream has gaps', async (t) => {
  const small = Array.from({ length: 20 }, (_, n) => ({ mbps: 5, fromSec: n * 0.1 }))
  const { crowd } = setUp(100, [...small, { mbps: 60, fromSec: 30 }])
  crowd.run(180)
  t.equal(crowd.count('gaps', crowd.streams.slice(0, 20)), 0)
  t.ok(crowd.streams[20]!.gaps > 0)
  t.ok(crowd.streams[20]!.gaps < crowd.streams[20]!.segments, 'it has its share')
})

t.test('pressure that ends is forgotten: windows grow back by themselves', async (t) => {
  const plans = Array.from({ length: 100 }, (_, n) => ({
    ...{ mbps: 5, fromSec: n * 0.02 },
    ...(n >= 25 && { untilSec: 60 }),
  }))
  const { cache, crowd } = setUp(512, plans)
  crowd.run(60)
  t.equal(crowd.streams[0]!.listed().length, 3)
  crowd.run(80)
  const before = cache.stats
  crowd.run(120)
  t.ok(crowd.running.every((stream) => stream.listed().length === 6))
  const { unlistedEarly, releasedEarly } = before
  t.match(cache.stats, { unlistedEarly, releasedEarly, refused: 0 }, 'nothing is short any more')
})

t.test('a stream that arrives when the memory is full gets its share of it', async (t) => {
  const plans = Array.from({ length: 130 }, (_, n) => ({ mbps: 5, fromSec: n < 120 ? 0 : 60 + n }))
  const { crowd } = setUp(512, plans)
  crowd.run(300)
  t.equal(crowd.count('gaps'), 0)
})

function numberOf({ uri }: { uri: string }): string | undefined {
  return /(\d+)\.ts$/.exec(uri)?.[1]
}
