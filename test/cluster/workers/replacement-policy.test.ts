import t from 'tap'
import { ReplacementPolicy } from '../../../src/cluster/workers/replacement-policy.ts'

t.test('replaces a child at once, however young', async (t) => {
  const policy = new ReplacementPolicy()
  t.equal(policy.pauseAfter({ startedMs: 0, wasReplacement: false }, 1), 0)
  t.equal(policy.pauseAfter({ startedMs: 0, wasReplacement: false }, 50_000), 0)
})

t.test('replaces a replacement after 1 s if it dies within 10 s', async (t) => {
  const policy = new ReplacementPolicy()
  t.equal(policy.pauseAfter({ startedMs: 5000, wasReplacement: true }, 14_999), 1000)
  t.equal(policy.pauseAfter({ startedMs: 15_000, wasReplacement: true }, 25_000), 0)
})

t.test('ends the service at the fifth death within a minute', async (t) => {
  const policy = new ReplacementPolicy()
  const dieAt = (nowMs: number) => policy.pauseAfter({ startedMs: 0, wasReplacement: false }, nowMs)
  for (const nowMs of [0, 20_000, 40_000, 59_998]) t.equal(dieAt(nowMs), 0)
  t.equal(dieAt(59_999), undefined)
})

t.test('forgets deaths after a minute', async (t) => {
  const policy = new ReplacementPolicy()
  const dieAt = (nowMs: number) => policy.pauseAfter({ startedMs: 0, wasReplacement: false }, nowMs)
  for (let nowMs = 0; nowMs < 600_000; nowMs += 15_000) t.equal(dieAt(nowMs), 0)
})
