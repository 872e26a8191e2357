import t from 'tap'
import { NodeLease, RENEW_MS } from '../../../../src/cluster/node/takeover/node-lease.ts'
import type { Registry } from '../../../../src/cluster/registry/registry.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'

const LEASE_MS = 2000

function createLease(registry?: Pick<Registry, 'renewNode' | 'leaveNode'>) {
  const time = new VirtualTime()
  const memory = new MemoryRegistry(time.clock, { leaseMs: LEASE_MS })
  const begun: (number | undefined)[] = []
  const lease = new NodeLease({
    registry: registry ?? memory.calls,
    describe: () => ({ node: 'a', url: 'http://127.0.0.1:1' }),
    onBegin: () => begun.push(lease.sinceMs),
    timers: time,
  })
  const isLive = () => memory.model.listLiveNodes().length > 0
  return { time, memory, lease, begun, isLive }
}

t.test('a lease holds for as long as it is renewed, and lapses when it is abandoned', async (t) => {
  const { time, lease, begun, isLive } = createLease()
  t.equal(lease.sinceMs, undefined)
  const startMs = time.clock.wallMs()
  lease.start()
  await time.pass(20 * RENEW_MS)
  t.equal(isLive(), true)
  t.strictSame(begun, [startMs], 'once')
  lease.abandon()
  await time.pass(LEASE_MS - 1)
  t.equal(isLive(), true)
  await time.pass(1)
  t.equal(isLive(), false)
})

t.test('a lease that has lapsed meanwhile begins anew', async (t) => {
  const { time, memory, lease, begun, isLive } = createLease()
  lease.start()
  await time.pass(RENEW_MS)
  memory.fault = 'away'
  t.equal(await lease.renew(), false)
  await time.pass(LEASE_MS)
  t.equal(isLive(), false)
  t.equal(begun.length, 1)
  memory.fault = undefined
  t.equal(await lease.renew(), true)
  t.strictSame(begun, [begun[0], time.clock.wallMs()])
  t.equal(isLive(), true)
})

t.test('a renewal waits for the one before', async (t) => {
  const answers: ((sinceMs: number) => void)[] = []
  const { time, lease, begun } = createLease({
    renewNode: () => new Promise((resolve) => answers.push(resolve)),
    leaveNode: async () => true,
  })
  lease.start()
  await time.pass(5 * RENEW_MS)
  t.equal(answers.length, 1)
  answers[0]?.(7)
  await time.pass(RENEW_MS)
  t.equal(answers.length, 2)
  t.strictSame(begun, [7])
})

t.test('a node that leaves has no lease from then on', async (t) => {
  const { time, memory, lease, isLive } = createLease()
  lease.start()
  await time.pass(0)
  await lease.leave()
  t.ok(memory.model.gone.has('a'), 'all of its numbers are known')
  t.equal(isLive(), false)
  await time.pass(2 * RENEW_MS)
  t.equal(isLive(), false)
  memory.fault = 'away'
  await lease.leave()
})
