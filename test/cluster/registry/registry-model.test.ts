/**
 * What time ends in the registry in memory, where Redis does so by itself. All else: `model.test.ts`.
 */
import t from 'tap'
import { RegistryModel } from '../../../src/cluster/registry/registry-model.ts'
import { SEQUENCE_CLOCK } from './memory-registry.ts'

const HOUR_MS = 3_600_000

t.test('a stopped stream loses its window after its linger, and its record later', async (t) => {
  let nowMs = Date.UTC(2026, 11, 1)
  const model = new RegistryModel({
    nowMs: () => nowMs,
    server: () => 'one',
    sequenceClock: SEQUENCE_CLOCK,
  })
  model.renewNode({ node: 'a', url: '' })
  model.start('studio', { options: {}, keyExpiresAtMs: nowMs + HOUR_MS })
  const claimed = model.claim('studio', { node: 'a', epoch: 'e', seenFence: 0 })
  if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
  const { stream, free } = claimed
  const end = (serial: number) =>
    model.advance(
      'studio',
      { node: 'a', fence: stream.fence },
      { serial, first: free.media, free, entries: [{ mediaSequence: free.media, value: serial }] },
    )
  t.match(end(1), { outcome: 'accepted' })
  model.stop('studio', { reason: 'api', lingerMs: 60_000 })
  t.match(end(2), { outcome: 'stopped' })
  nowMs += 59_999
  model.expire()
  t.strictSame(model.windows.get('studio'), [2])
  nowMs += 1
  model.expire()
  t.notOk(model.windows.has('studio'))
  t.match(model.get('studio'), { status: 'STOPPED' })
  nowMs += 2 * HOUR_MS
  t.equal(model.get('studio'), undefined)
})
