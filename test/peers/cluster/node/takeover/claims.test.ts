/**
 * Which node claims what, over a real Redis.
 */
import t from 'tap'
import { systemClock } from '../../../../../src/timing/clock.ts'
import { NodeClient } from '../../../../../src/cluster/edge/node-client.ts'
import { callNode } from '../../../../../src/cluster/node/call-node.ts'
import { NodeCalls } from '../../../../../src/auth/node-calls.ts'
import { encodeTo, startCluster } from '../../../support/cluster.ts'
import { requireTool } from '../../../support/tools.ts'
import { until } from '../../../../support/until.ts'

t.test('streams of a dead node go to nodes that have room', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const { registry } = cluster
  const ids = ['one', 'two', 'three', 'four']
  await registry.renewNode({ node: 'gone', url: 'http://127.0.0.1:1' })
  for (const id of ids) {
    await cluster.startStream(id)
    await registry.claim(id, { node: 'gone', epoch: `e-${id}`, seenFence: 0 })
  }
  await registry.leaveNode('gone')
  const owners = async () => {
    const streams = await Promise.all(ids.map((id) => registry.get(id)))
    return streams.map((stream) => stream?.owner)
  }
  const countOf = (all: readonly (string | undefined)[], owner: string | undefined) =>
    all.filter((each) => each === owner).length

  await cluster.startNode({ maxStreams: 1 })
  const small = await until('one is adopted', async () =>
    (await owners()).find((owner) => owner !== 'gone'),
  )
  await cluster.startNode()
  await until('all are adopted', async () => countOf(await owners(), 'gone') === 0)
  t.equal(countOf(await owners(), small), 1)
})

t.test('a call to yield counts for the claim that it names alone', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const node = await cluster.startNode()
  const encoder = encodeTo(t, node, await cluster.startStream('studio'))
  await until('live', () => node.findStream('studio')?.status === 'STREAMING')
  encoder.stop()
  await until('interrupted', () => node.findStream('studio')?.status === 'INTERRUPTED')
  const stream = node.findStream('studio')
  const { fence = 0 } = (await cluster.registry.get('studio')) ?? {}
  const calls = new NodeCalls(() => [cluster.clusterSecret], systemClock)
  const client = new NodeClient({ calls })
  const askToYield = (body: object) =>
    callNode(client, { url: node.publicUrl, call: 'yield', body, timeoutMs: 30_000 })
  await t.rejects(askToYield({ stream_id: 'studio' }), { code: 'BODY_INVALID' })
  await askToYield({ stream_id: 'studio', fence: fence - 1 })
  t.equal(node.findStream('studio'), stream, 'of an earlier claim')
  t.strictSame(await askToYield({ stream_id: 'studio', fence }), { yielded: true })
  t.not(node.findStream('studio'), stream)
})
