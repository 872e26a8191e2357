import * as fc from 'fast-check'
import t from 'tap'
import type { SequenceNumbers } from '../../src/hls/cut/segment-plan.ts'
import { SequenceStarts } from '../../src/stream/sequence-starts.ts'

const NOW_MS = Date.UTC(2026, 10, 22)

t.test('media sequence rises by 4 a second and fits 32 bits until 2043', async (t) => {
  const starts = new SequenceStarts(NOW_MS)
  const { media } = starts.next('a', NOW_MS)
  t.equal(starts.next('a', NOW_MS + 10_000).media - media, 40)
  t.ok(starts.next('a', Date.UTC(2043, 0, 1)).media < 2 ** 31)
})

t.test(
  'discontinuity sequence numbers stay small for years: hls.js makes an array of that length',
  async (t) => {
    t.ok(new SequenceStarts(NOW_MS).next('a', Date.UTC(2028, 0, 1)).discontinuity < 100_000)
  },
)

t.test('a machine with a wrong clock counts segments from 0, discontinuities from 1', async (t) => {
  t.strictSame(new SequenceStarts(0).next('a', 0), { media: 0, discontinuity: 1 })
})

t.test('a process begins above the discontinuity sequence of the one before it', async (t) => {
  const before = new SequenceStarts(NOW_MS)
  const startedMs = NOW_MS + 3_600_000
  const used = before.next('a', startedMs - 1).discontinuity
  const after = new SequenceStarts(startedMs)
  const first = after.next('a', startedMs)
  t.equal(first.discontinuity, used + 1)
  const resumed = after.next('c', startedMs, { resumed: true })
  t.equal(resumed.discontinuity, used + 2, 'above a process that ran for moments only')
  after.leave('a', first, startedMs)
  t.equal(after.next('a', startedMs + 1000).discontinuity, used + 1, 'once a process')
  t.equal(after.next('b', startedMs + 600_000).discontinuity, used + 1, 'the clock caught up')
})

t.test(
  'sequence numbers of an id never go back, for any clock (RFC 8216bis 6.2.1, 6.2.2)',
  async () => {
    const steps = fc.array(
      fc.record({
        id: fc.constantFrom('a', 'b', 'c'),
        stepMs: fc.integer({ min: -1_000_000, max: 1_000_000 }),
        segments: fc.nat(1000),
        discontinuities: fc.nat(10),
        tookMs: fc.integer({ min: -500_000, max: 500_000 }),
      }),
    )
    fc.assert(
      fc.property(steps, (all) => {
        const starts = new SequenceStarts(NOW_MS)
        const free = new Map<string, SequenceNumbers>()
        let wallMs = NOW_MS
        return all.every(({ id, stepMs, segments, discontinuities, tookMs }) => {
          wallMs += stepMs
          const first = starts.next(id, wallMs)
          const before = free.get(id) ?? { media: 0, discontinuity: 0 }
          const used = {
            media: first.media + segments,
            discontinuity: first.discontinuity + discontinuities,
          }
          free.set(id, used)
          wallMs += tookMs
          starts.leave(id, used, wallMs)
          return first.media >= before.media && first.discontinuity >= before.discontinuity
        })
      }),
    )
  },
)

t.test('no more than 10,000 ids are remembered', async (t) => {
  const starts = new SequenceStarts(NOW_MS)
  const clock = starts.next('a', NOW_MS)
  const free = { ...clock, media: clock.media + 1000 }
  for (let i = 0; i < 10_001; i++) starts.leave(`s${i}`, free, NOW_MS)
  t.strictSame(starts.next('s0', NOW_MS), clock, 'the oldest is forgotten')
  t.strictSame(starts.next('s1', NOW_MS), free)
})
