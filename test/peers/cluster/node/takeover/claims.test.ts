/**
 * Which node claims what, over a real Redis.
 */
import t from 'tap'
import type { StreamKeyClaims } from '../../../../../src/auth/stream-key.ts'
import { systemClock } from '../../../../../src/timing/clock.ts'
import { callNode } from '../../../../../src/cluster/node/call-node.ts'
import { NodeCalls } from '../../../../../src/auth/node-calls.ts'
import { Redis } from '../../../../../src/cluster/registry/redis.ts'
import type { Handover } from '../../../../../src/cluster/registry/registered.ts'
import { MillraceError } from '../../../../../src/errors.ts'
import { createLogger } from '../../../../../src/logger.ts'
import type { LiveStream } from '../../../../../src/stream/live-stream.ts'
import { Claims } from '../../../../../src/cluster/node/takeover/claims.ts'
import { openRedis, openRegistry } from '../../registry/open-registry.ts'
import { listOwned, OwnedStreams } from '../../../../../src/cluster/node/owned/owned-streams.ts'
import { encodeTo, startCluster } from '../../../support/cluster.ts'
import { startRedis } from '../../../support/redis.ts'
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

t.test('each encoder is judged by its own stream key', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url } = await startRedis(t)
  const redis = new Redis({ url, timeoutMs: 5000 })
  t.teardown(() => redis.close())
  redis.connect()
  await until('a connection', () => redis.isReady)
  const registry = openRegistry(redis, { leaseMs: 60_000 })
  await registry.renewNode({ node: 'a', url: 'http://127.0.0.1:1' })
  const start = () =>
    registry.start('studio', { options: {}, keyExpiresAtMs: Date.now() + 3_600_000 })
  await start()
  await registry.stop('studio', { reason: 'api', lingerMs: 1000, revoke: true })
  await start()
  const floorSec = (await registry.get('studio'))?.keyFloorSec ?? 0
  t.ok(floorSec > 0)

  const owned = new Set<string>()
  const claims = new Claims({
    ...{ node: 'a', registry, readMedia: undefined },
    ...{ readRoom: () => 1, refresh: async () => undefined },
    call: async () => t.fail('there is no other node'),
    owned: { has: (id) => owned.has(id), own: (_stream, { stream }) => owned.add(stream.id) },
    continueStream: () => ({}) as LiveStream,
  })
  const keyOf = (issuedAtSec: number): StreamKeyClaims => ({
    ...{ streamId: 'studio', issuedAtSec, expiresAtSec: floorSec + 3600 },
  })
  const answers = await Promise.allSettled([
    claims.admit(keyOf(floorSec - 1)),
    claims.admit(keyOf(floorSec + 1)),
    claims.admit(keyOf(floorSec + 1)),
  ])
  t.match(answers, [
    { status: 'rejected', reason: { code: 'STREAM_KEY_REVOKED' } },
    { status: 'fulfilled' },
    { status: 'fulfilled' },
  ])
  t.equal((await registry.get('studio'))?.owner, 'a')
})

t.test('encoders without a stream key are checked one at a time', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const redis = await openRedis(t)
  const registry = openRegistry(redis)
  await registry.renewNode({ node: 'a', url: 'http://127.0.0.1:1' })
  await registry.start('studio', { options: {}, keyExpiresAtMs: Date.now() + 3_600_000 })
  const owned = new Set<string>()
  const claims = new Claims({
    ...{ node: 'a', registry, readMedia: undefined },
    ...{ readRoom: () => 1, refresh: async () => undefined },
    call: async () => t.fail('there is no other node'),
    owned: { has: (id) => owned.has(id), own: (_stream, { stream }) => owned.add(stream.id) },
    continueStream: () => ({}) as LiveStream,
  })
  let checks = 0
  let end: ((error: Error) => void) | undefined
  const call = () =>
    claims.admitUnkeyed('studio', () => {
      checks++
      return new Promise((_, reject) => (end = reject))
    })
  const first = call()
  await t.rejects(call(), { code: 'STREAM_BUSY' })
  end?.(new MillraceError('PASSPHRASE_WRONG'))
  await t.rejects(first, { code: 'PASSPHRASE_WRONG' })
  t.equal(checks, 1)
  t.equal((await registry.get('studio'))?.fence, 0, 'nobody has claimed it')
  await claims.admitUnkeyed('studio', async () => undefined)
  t.strictSame([...owned], ['studio'])
  await claims.admitUnkeyed('studio', async () => void t.fail('the stream is here'))
})

t.test('a stopped stream that cannot be served is adopted in a later round', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const redis = await openRedis(t)
  const registry = openRegistry(redis)
  const keyExpiresAtMs = Date.now() + 3_600_000
  for (const node of ['a', 'b']) await registry.renewNode({ node, url: 'http://127.0.0.1:1' })
  await registry.start('studio', { options: {}, keyExpiresAtMs })
  const claimed = await registry.claim('studio', { node: 'a', epoch: 'e', seenFence: 0 })
  if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
  const { fence } = claimed.stream
  const { media, discontinuity } = claimed.free
  await registry.advance(
    'studio',
    { node: 'a', fence },
    {
      ...{ serial: 1, first: media, free: { media: media + 1, discontinuity } },
      ...{ entries: [{ mediaSequence: media, value: 'segment' }], leaseSinceMs: 0 },
    },
  )
  await registry.stop('studio', { reason: 'api', lingerMs: 60_000 })
  await registry.leaveNode('a')

  const owned = new OwnedStreams({
    ...{ node: 'b', registry, backup: undefined, lingerMs: 60_000, logger: createLogger('silent') },
    readLeaseSince: () => undefined,
    keyUsesOf: () => ({}),
    leave: () => undefined,
    reclaim: () => undefined,
  })
  const adopted: Handover[] = []
  const claims = new Claims({
    ...{ node: 'b', registry, readMedia: undefined },
    ...{ readRoom: () => 1, refresh: async () => undefined },
    call: async () => t.fail('nobody is asked'),
    owned: { has: () => false, own: () => undefined },
    continueStream: (handover) => {
      adopted.push(handover)
      if (adopted.length === 1) throw new MillraceError('TOO_MANY_STREAMS')
      return {} as LiveStream
    },
  })
  await t.rejects(claims.claim('studio'), { code: 'TOO_MANY_STREAMS' })
  t.strictSame(await registry.orphans('b', { limit: 9 }), [])
  const left = await owned.reconcile(await listOwned(registry, 'b'))
  t.strictSame(left, ['studio'])
  await claims.claim('studio')
  t.match(adopted[1], { stream: { status: 'STOPPED', owner: 'b' } })
  t.strictSame(adopted[1]?.entries, adopted[0]?.entries)
  t.equal(adopted[1]?.entries.length, 1)
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
  const askToYield = (body: object) =>
    callNode(calls, { url: node.publicUrl, call: 'yield', body, timeoutMs: 30_000 })
  await t.rejects(askToYield({ stream_id: 'studio' }), { code: 'BODY_INVALID' })
  await askToYield({ stream_id: 'studio', fence: fence - 1 })
  t.equal(node.findStream('studio'), stream, 'of an earlier claim')
  t.strictSame(await askToYield({ stream_id: 'studio', fence }), { yielded: true })
  t.not(node.findStream('studio'), stream)
})
