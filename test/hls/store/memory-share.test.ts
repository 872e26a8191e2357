import * as fc from 'fast-check'
import t from 'tap'
import { fairShare, shareMemory } from '../../../src/hls/store/memory-share.ts'

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)

t.test('small needs leave the rest of the memory to large ones', async (t) => {
  t.equal(fairShare([], 100), Infinity)
  t.equal(fairShare([30, 70], 100), Infinity, 'all fit')
  t.equal(fairShare([50, 50, 50, 50], 100), 25)
  t.equal(fairShare([90, 10, 90], 100), 45)
  t.equal(fairShare([1e9, 1, 2, 3], 100), 94)
  t.equal(fairShare([5, 0], 0), 0)
})

t.test(
  'the share is max-min fair: all of the capacity is used, and no need could get more',
  async (t) => {
    const needs = fc.array(fc.nat(1_000_000), { maxLength: 50 })
    fc.assert(
      fc.property(needs, fc.nat(20_000_000), (all, capacity) => {
        const share = fairShare(all, capacity)
        const given = all.map((need) => Math.min(need, share))
        if (share === Infinity) return sum(all) <= capacity
        return Math.abs(sum(given) - capacity) < 1e-3 && all.some((need) => need > share)
      }),
    )
    t.pass('for every seed')
  },
)

t.test('windows keep to their share, and only what cannot be listed at all is a gap', async (t) => {
  const queuedBytes = 0
  const small = { windowSize: { minBytes: 30, wantedBytes: 60 }, queuedBytes }
  const large = { windowSize: { minBytes: 300, wantedBytes: 600 }, queuedBytes }
  t.same(
    shareMemory([small, large], 2000),
    { windowBytes: Infinity, maxBytes: 2000, queuedBytes },
    'room for all, and for as much and more again',
  )
  t.same(shareMemory([small, large], 1000), { windowBytes: 340, maxBytes: 1000, queuedBytes })
  t.same(shareMemory([small, large], 300), { windowBytes: 60, maxBytes: 240, queuedBytes })
  t.same(shareMemory([small, small], 100), { windowBytes: 20, maxBytes: 100, queuedBytes })
  t.same(shareMemory([small, small], 40), { windowBytes: 8, maxBytes: 20, queuedBytes })
})

t.test(
  'a queue counts for its own stream first, and never takes the share of another',
  async (t) => {
    const small = { windowSize: { minBytes: 30, wantedBytes: 60 }, queuedBytes: 0 }
    const held = (queuedBytes: number) => ({ ...small, queuedBytes })
    t.same(shareMemory([small, held(100)], 1000), {
      ...{ windowBytes: Infinity, maxBytes: 1000 },
      queuedBytes: 100,
    })
    // The window of the first stream stays whole.
    const { windowBytes, maxBytes, queuedBytes } = shareMemory([small, held(200)], 240)
    t.ok(windowBytes >= 60)
    t.equal(maxBytes, 180)
    t.equal(queuedBytes, 180, 'the rest of the queue takes nothing from the first stream')
    t.equal(shareMemory([small, small, held(1e9)], 300).maxBytes, 180)
  },
)
