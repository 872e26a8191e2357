/**
 * Streams that move from node to node, as viewers at an edge see them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { systemClock } from '../../../../src/timing/clock.ts'
import { NODE_CALL, NodeCalls } from '../../../../src/auth/node-calls.ts'
import type { Server } from '../../../../src/service/server.ts'
import {
  complaintsButOfWindow,
  encodeTo,
  killNode,
  linkTo,
  startCluster,
  watchStream,
  type TestCluster,
  type TestViewer,
} from '../../support/cluster.ts'
import { ask } from '../../support/redis.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

/** Waits until the playlist has so many segments more. */
async function grows(viewer: TestViewer, segments: number): Promise<void> {
  const latest = () => viewer.last.segments.at(-1)?.sequence ?? 0
  const free = latest()
  await until(
    'the playlist grows',
    () => viewer.last.segments.length > 2 && latest() >= free + segments,
  )
}

async function isAdopted({ registry }: TestCluster, fence: number): Promise<void> {
  await until('another node adopts the stream', async () => {
    return ((await registry.get('studio').catch(() => undefined))?.fence ?? 0) > fence
  })
}

/** Two nodes, an edge with a viewer, and a stream that the first node has. */
async function startStudio(t: Test, { redisUrl = '', graceSec = 120 } = {}) {
  const cluster = await startCluster(t, { reconnectGraceSec: graceSec })
  const link = await linkTo(t, cluster.redis)
  const a = await cluster.startNode({ redisUrl: redisUrl || link.url })
  const b = await cluster.startNode()
  const edge = await cluster.startEdge()
  const key = await cluster.startStream('studio')
  // On a busy machine a call may not be answered, or is refused since Redis is late.
  const encoder = encodeTo(t, a, key, true)
  const viewer = watchStream(t, () => edge.port, 'studio')
  await grows(viewer, 2)
  const { fence } = (await cluster.registry.get('studio'))!
  return { cluster, link, a, b, key, encoder, viewer, fence }
}

function checkViewer(t: Test, { texts }: TestViewer, complaints: readonly string[]): void {
  t.strictSame(complaints, [])
  // It is before a window that begins anew, as one does where a node has lost sight of the numbers.
  const sequences = new Set(texts.join('').match(/^#EXT-X-DISCONTINUITY-SEQUENCE:.*/gm))
  t.ok(sequences.size > 1 || texts.join('').includes('#EXT-X-DISCONTINUITY\n'), 'a discontinuity')
  t.notMatch(texts.join(''), '#EXT-X-ENDLIST')
}

/** Status with which a node answers another one that asks for the playlist: 421 unless it owns the stream. */
async function statusAt(node: Server, { clusterSecret }: TestCluster): Promise<number> {
  const path = '/video/studio/playlist.m3u8'
  const signature = new NodeCalls(() => [clusterSecret], systemClock).sign({ method: 'GET', path })
  return (await fetch(node.publicUrl + path, { headers: { [NODE_CALL]: signature } })).status
}

t.test('another node continues the stream of one that closes', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, b, key, encoder, viewer, fence } = await startStudio(t)
  t.match(await cluster.registry.get('studio'), { status: 'STREAMING' })
  await a.close()
  encoder.stop()
  await isAdopted(cluster, fence)
  t.match(await cluster.registry.get('studio'), { status: 'INTERRUPTED' })
  encodeTo(t, b, key, true)
  await grows(viewer, 3)
  checkViewer(t, viewer, viewer.complaints)
})

t.test(
  'a node that is drained sends its encoder away, and serves until it has moved',
  async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { cluster, a, b, key, encoder, viewer, fence } = await startStudio(t)
    const reasons: string[] = []
    a.findStream('studio')?.on('interrupted', ({ reason }) => reasons.push(reason))
    const drained = a.drain()
    await until('its encoder is refused', () => /1007/.test(encoder.events.join()))
    encoder.stop()
    t.strictSame(reasons, ['draining'])
    const ready = await fetch(`${a.publicUrl}/health/ready`)
    t.equal(ready.status, 503)
    t.match(await ready.json(), { reasons: ['draining'] })
    await t.rejects(a.startStream({ streamId: 'other' }), { code: 'SHUTTING_DOWN' })
    t.equal(await statusAt(a, cluster), 200)
    t.match(await cluster.registry.get('studio'), { status: 'INTERRUPTED', fence })
    encodeTo(t, b, key, true)
    await grows(viewer, 3)
    t.strictSame(a.list().streams, [], 'it has moved')
    await drained
    await a.close()
    await grows(viewer, 1)
    checkViewer(t, viewer, viewer.complaints)
  },
)

t.test('another node continues the stream of one that is killed', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, b, key, encoder, viewer, fence } = await startStudio(t)
  await killNode(cluster, a)
  encoder.stop()
  await isAdopted(cluster, fence)
  encodeTo(t, b, key, true)
  await grows(viewer, 3)
  // The lease of a node on a busy machine may have lapsed before; see cluster-restart.test.ts for one that has not.
  checkViewer(t, viewer, complaintsButOfWindow(viewer))
})

t.test('a stream whose encoder does not return ends at the node that adopts it', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, b, encoder, viewer } = await startStudio(t, { graceSec: 2 })
  const reasons: string[] = []
  b.on('stream', (stream) => stream.once('end', ({ reason }) => reasons.push(reason)))
  await a.close()
  encoder.stop()
  await until('the playlist ends', () => viewer.texts.at(-1)?.includes('#EXT-X-ENDLIST'))
  await until('the registry knows', async () => {
    return (await cluster.registry.get('studio'))?.status === 'STOPPED'
  })
  t.strictSame(reasons, ['grace-expired'])
  t.strictSame(viewer.complaints, [])
})

t.test(
  'an encoder takes its stream along to another node, unless one publishes there',
  async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { cluster, a, b, key, encoder, viewer, fence } = await startStudio(t)
    t.match(await encodeTo(t, b, key).end, { code: 'SRT_REJECTED', message: /2409/ })
    t.equal((await cluster.registry.get('studio'))?.fence, fence)
    encoder.stop()
    await encoder.end
    encodeTo(t, b, key, true)
    await grows(viewer, 3)
    t.strictSame([await statusAt(a, cluster), await statusAt(b, cluster)], [421, 200])
    checkViewer(t, viewer, viewer.complaints)
  },
)

t.test('a stopped stream outlives its owner for the linger, with ENDLIST', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const stop = { reason: 'api', lingerMs: 60_000 } as const
  for (const end of ['close', 'abandon'] as const) {
    const { cluster, link, a, b, encoder, viewer, fence } = await startStudio(t)
    b.on('stream', () => t.fail('its end is told again'))
    if (end === 'close') {
      await a.stopStream('studio')
      await a.close()
    } else {
      // The owner does not learn of the stop, and no other node adopts the stream before it.
      link.cut()
      const abandoned = a.abandon()
      await cluster.registry.stop('studio', stop)
      await abandoned
    }
    encoder.stop()
    await isAdopted(cluster, fence)
    const edge = await cluster.startEdge()
    const playlist = await until('the playlist', async () => {
      const reply = await fetch(`http://127.0.0.1:${edge.port}/video/studio/playlist.m3u8`)
      return reply.ok && reply.text()
    })
    t.match(playlist, '#EXT-X-ENDLIST')
    t.match(playlist, '.ts')
    t.match(await b.control.status('studio'), { status: 'STOPPED' })
    t.equal(b.list().streams.length, 1)
    await until('its viewer has the end', () => viewer.texts.at(-1)?.includes('#EXT-X-ENDLIST'))
    t.strictSame(viewer.complaints, [])
    await b.close()
  }
})

t.test(
  'a stream that is started again goes on at another node while its end lingers',
  async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { cluster, a, b, encoder, viewer } = await startStudio(t)
    const latest = () => viewer.last.segments.at(-1)?.sequence ?? 0
    await a.stopStream('studio')
    encoder.stop()
    await until('the end', () => viewer.texts.at(-1)?.includes('#EXT-X-ENDLIST'))
    const last = latest()
    encodeTo(t, b, await cluster.startStream('studio'), true)
    await until('the next run', () => latest() > last && viewer.last.segments.length > 2)
    t.notMatch(viewer.texts.at(-1), '#EXT-X-ENDLIST')
    t.equal(await statusAt(a, cluster), 421)
  },
)

t.test('a stop that Redis has lost is told again', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, encoder } = await startStudio(t)
  const { redis } = cluster
  const before = await ask(redis.port, 'HMGET mr:{studio} status')
  t.match(before, 'STREAMING')
  await a.stopStream('studio')
  encoder.stop()
  t.match(await cluster.registry.get('studio'), { status: 'STOPPED' })
  // As a replica has it that did not get the stop.
  const { owner } = (await cluster.registry.get('studio'))!
  await ask(redis.port, 'HSET mr:{studio} status STREAMING')
  await ask(redis.port, `ZADD mr:node:${owner}:streams 0 studio`)
  await until(
    'the stop is back',
    async () => (await cluster.registry.get('studio'))?.status === 'STOPPED',
  )
  t.match(a.list().streams, [{ streamId: 'studio', status: 'STOPPED' }])
})

t.test('neither publishers nor viewers notice that Redis is away', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, b, key, encoder, viewer, fence } = await startStudio(t)
  cluster.redis.program.kill('SIGSTOP')
  await sleep(3000)
  await grows(viewer, 2)
  t.match(await encodeTo(t, b, key).end, { code: 'SRT_REJECTED' }, 'nobody is admitted anew')
  cluster.redis.program.kill('SIGCONT')
  await grows(viewer, 3)
  await until('the registry has what it missed', async () => {
    const stream = await cluster.registry.get('studio').catch(() => undefined)
    return stream?.fence === fence && stream.status === 'STREAMING'
  })
  t.equal(a.status('studio').live, true)
  t.notMatch(encoder.events.join(), 'lost')
  t.strictSame(viewer.complaints, [])
  t.strictSame(
    viewer.failures.filter((status) => status !== 404),
    [],
  )
})

t.test('a node that was cut off gives its stream up, and edges never go back', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, link, a, b, key, encoder, viewer, fence } = await startStudio(t)
  link.cut()
  await isAdopted(cluster, fence)
  t.equal(a.status('studio').live, true, 'its publisher goes on')
  encodeTo(t, b, key, true)
  await grows(viewer, 3)
  link.mend()
  await until('the node gives the stream up', async () => (await statusAt(a, cluster)) === 421)
  encoder.stop()
  await grows(viewer, 2)
  checkViewer(t, viewer, complaintsButOfWindow(viewer))
})
