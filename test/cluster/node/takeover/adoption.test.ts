/**
 * Rounds of a node in which it takes streams of others: a registry in memory, virtual time.
 */
import t from 'tap'
import { Adoption } from '../../../../src/cluster/node/takeover/adoption.ts'
import { freePort } from '../../../support/free-port.ts'
import { until } from '../../../support/until.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'

const ROUND_MS = 500
const LEASE_MS = 60_000

/** Rounds of node `a`, with what they do; node `b`, which owned the streams, has left. */
function createNode(streamIds: readonly string[] = ['x', 'y']) {
  const time = new VirtualTime()
  const memory = new MemoryRegistry(time.clock, { leaseMs: LEASE_MS })
  const { model } = memory
  const keyExpiresAtMs = time.clock.wallMs() + 50_000
  for (const node of ['a', 'b']) model.renewNode({ node, url: '' })
  for (const id of streamIds) {
    model.start(id, { options: {}, keyExpiresAtMs })
    model.claim(id, { node: 'b', epoch: 'e', seenFence: 0 })
  }
  model.leaveNode('b')
  const done: string[] = []
  const node = {
    isDraining: false,
    /** What becomes of a claim; default: it is granted. */
    claim: async (id: string): Promise<void> => {
      const { fence: seenFence = 0 } = model.get(id) ?? {}
      model.claim(id, { node: 'a', epoch: 'e', seenFence })
    },
    /** Streams of this node that are not here. */
    missing: [] as readonly string[],
  }
  const adoption = new Adoption({
    node: 'a',
    registry: memory.calls,
    outbox: { look: async () => void done.push('look') },
    owned: {
      reconcile: async ({ running }) => {
        done.push(`reconcile ${[...running.keys()].join()}`)
        return [...node.missing]
      },
    },
    claim: (id) => {
      done.push(id)
      return node.claim(id)
    },
    isDraining: () => node.isDraining,
    timers: time,
  })
  return { time, memory, model, adoption, node, keyExpiresAtMs, take: () => done.splice(0) }
}

t.test('a round takes webhooks first, then streams, and the fourth one compares', async (t) => {
  const { time, adoption, take } = createNode()
  adoption.start()
  await time.pass(ROUND_MS - 1)
  t.strictSame(take(), [])
  await time.pass(1)
  t.strictSame(take(), ['look', 'x', 'y'])
  await time.pass(2 * ROUND_MS)
  t.strictSame(take(), ['look', 'look'])
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', 'reconcile x,y'])
  await adoption.stop()
  await time.pass(10 * ROUND_MS)
  t.strictSame(take(), [])
})

t.test('a round takes 20 streams of an owner, 8 at a time', async (t) => {
  const ids = Array.from({ length: 25 }, (_, index) => `s${10 + index}`)
  const { time, adoption, node, take } = createNode(ids)
  const { claim } = node
  let claiming = 0
  let most = 0
  node.claim = async (id) => {
    most = Math.max(most, ++claiming)
    await claim(id)
    claiming--
  }
  adoption.start()
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', ...ids.slice(0, 20)])
  t.equal(most, 8)
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', ...ids.slice(20)])
})

t.test('a claim that fails delays no other, and is tried again', async (t) => {
  const { time, adoption, node, take } = createNode()
  const { claim } = node
  node.claim = async (id) => {
    if (id === 'x') throw new Error('no room')
    await claim(id)
  }
  adoption.start()
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', 'x', 'y'])
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', 'x'])
})

t.test('a stream whose keys have expired before any encoder called is claimed', async (t) => {
  const { time, model, adoption, keyExpiresAtMs, take } = createNode([])
  model.start('z', { options: {}, keyExpiresAtMs })
  await time.pass(keyExpiresAtMs - time.clock.wallMs() - ROUND_MS - 1)
  adoption.start()
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look'])
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', 'z'])
})

t.test('a node that goes away takes no streams', async (t) => {
  const { time, adoption, node, take } = createNode()
  node.isDraining = true
  adoption.start()
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look'])
})

t.test('a round goes on when the registry is back', async (t) => {
  const { time, memory, adoption, take } = createNode()
  adoption.start()
  memory.fault = 'away'
  await time.pass(2 * ROUND_MS)
  t.strictSame(take(), [])
  memory.fault = undefined
  await time.pass(ROUND_MS)
  t.strictSame(take(), ['look', 'x', 'y'])
})

t.test('no round begins during another, and stop waits for it', async (t) => {
  const { time, adoption, node, take } = createNode(['x'])
  let end: (() => void) | undefined
  node.claim = () => new Promise((resolve) => (end = resolve))
  adoption.start()
  await time.pass(3 * ROUND_MS)
  t.strictSame(take(), ['look', 'x'])
  let isStopped = false
  const stopped = adoption.stop().then(() => (isStopped = true))
  await time.pass(ROUND_MS)
  t.equal(isStopped, false)
  end?.()
  await stopped
})

t.test('a comparison claims what the node has lost, until it has stopped', async (t) => {
  const { adoption, node, take } = createNode()
  node.missing = ['p', 'q']
  await adoption.reconcile()
  t.strictSame(take(), ['reconcile ', 'p', 'q'])
  await adoption.stop()
  await adoption.reconcile()
  t.strictSame(take(), [])
})

t.test('a round ends the lease of the next node if nobody listens at its URL', async (t) => {
  const { time, model, adoption } = createNode([])
  model.renewNode({ node: 'c', url: `http://127.0.0.1:${await freePort()}` })
  const fromMs = time.clock.wallMs()
  adoption.start()
  // Each round asks in real time.
  await until('the end of the lease', async () => {
    await time.pass(ROUND_MS)
    return !model.leases.has('c')
  })
  t.ok(time.clock.wallMs() - fromMs < LEASE_MS, 'before it lapses')
})
