/**
 * What an owner does when Redis loses its stream, or knows of numbers that it has not used.
 */
import t, { type Test } from 'tap'
import {
  complaintsButOfWindow,
  encodeTo,
  startCluster,
  watchStream,
  type TestViewer,
} from '../../support/cluster.ts'
import type { RegisteredStream } from '../../../../src/cluster/registry/registered.ts'
import { ask } from '../../support/redis.ts'
import { callApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const latest = ({ last }: TestViewer) => last.segments.at(-1)?.sequence ?? 0

async function startStudio(t: Test) {
  const cluster = await startCluster(t)
  const node = await cluster.startNode()
  const edge = await cluster.startEdge()
  const key = await cluster.startStream('studio')
  const encoder = encodeTo(t, node, key, true)
  const viewer = watchStream(t, () => edge.port, 'studio')
  await grows(viewer, 4)
  const changed = { stream_id: 'studio', latency_ms: 250, key_lifetime_sec: 86_400 }
  await callApi(node.publicUrl, 'start-stream', changed, cluster.hmacSecret)
  const registered = (await cluster.registry.get('studio'))!
  return { cluster, node, edge, encoder, viewer, registered }
}

async function grows(viewer: TestViewer, segments: number): Promise<void> {
  const free = latest(viewer) || Infinity
  await until('the playlist is there', () => viewer.last.segments.length > 2)
  const from = Math.min(free, latest(viewer))
  await until('the playlist grows', () => latest(viewer) >= from + segments)
}

for (const [what, command] of [
  ['everything', 'FLUSHALL'],
  ['a stream', 'DEL mr:{studio} mr:{studio}:list'],
] as const) {
  t.test(`the owner gives its stream back to a Redis that has lost ${what}`, async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { cluster, node, edge, encoder, viewer, registered } = await startStudio(t)
    t.equal(encoder.events.length, 1, encoder.events.join())
    await ask(cluster.redis.port, command)
    // The stream may be back before the address of its node.
    const restored = await until('the stream is back', async () => {
      const stream = await cluster.registry.get('studio')
      return stream?.ownerUrl !== undefined && stream
    })
    // The times of use are by the clock of the node.
    const known = ({ keys, ...stream }: RegisteredStream) => [stream, Object.keys(keys).toSorted()]
    t.strictSame(known(restored), known(registered), 'with all that was known of it')
    await grows(viewer, 2)
    t.strictSame(viewer.complaints, [])
    t.notMatch(viewer.texts.join(''), '#EXT-X-DISCONTINUITY\n')
    t.equal(encoder.events.length, 1, 'its encoder stays')

    const call = (name: 'status' | 'stop-stream', port = node.httpPort) =>
      callApi(`http://127.0.0.1:${port}`, name, { stream_id: 'studio' }, cluster.hmacSecret)
    t.match((await call('status', edge.port)).body.data, { status: 'STREAMING' })
    await t.test('so that another node continues it', async (t) => {
      const other = await cluster.startNode()
      await until('all is written', async () => {
        const { status } = (await cluster.registry.get('studio')) ?? {}
        return status === 'STREAMING'
      })
      await node.abandon()
      await until('the adoption', async () => {
        return ((await cluster.registry.get('studio'))?.fence ?? 0) > registered.fence
      })
      t.match((await call('stop-stream', other.httpPort)).body.data, { status: 'STOPPED' })
      await until('the end', () => viewer.texts.at(-1)?.includes('#EXT-X-ENDLIST'))
      t.ok(latest(viewer) > 0)
    })
  })
}

t.test('an owner that was overtaken claims its stream again, above all numbers', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, node, encoder, viewer, registered } = await startStudio(t)
  // What an owner of an earlier fence tells when it is back: its viewers have seen these numbers.
  const free = { media: latest(viewer) + 50, discontinuity: 1_000_000 }
  const by = { node: 'earlier', fence: registered.fence - 1 }
  const told = { serial: 1, entries: [], first: free.media, free }
  t.match(await cluster.registry.advance('studio', by, told), { outcome: 'stale' })
  const claimed = await until('another claim', async () => {
    const stream = await cluster.registry.get('studio')
    return (stream?.fence ?? 0) > registered.fence && stream
  })
  t.match(claimed, { owner: registered.owner, run: registered.run })
  await until('the encoder is back', () => node.status('studio').live)
  await until('the viewer sees it', () => latest(viewer) >= free.media)
  await grows(viewer, 2)
  t.ok(viewer.last.discontinuitySequence >= free.discontinuity)
  t.match(encoder.events.join(), 'lost')
  t.strictSame(complaintsButOfWindow(viewer), [])
})
