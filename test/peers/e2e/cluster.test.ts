/**
 * A cluster of real processes: three ingest nodes, three edges, Redis with a replica and three Sentinels; what dies, and
 * what viewers see.
 */
import t from 'tap'
import { complaintsButOfWindow, watchStream, type TestViewer } from '../support/cluster.ts'
import {
  createSecrets,
  encodeInLoop,
  startNodes,
  startRegistry,
  type NodeProcess,
} from '../support/node-processes.ts'
import { tryApi } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const latestNumber = (viewer: TestViewer) => viewer.last.segments.at(-1)?.sequence ?? 0

async function allGrow(what: string, viewers: readonly TestViewer[], segments: number) {
  const free = viewers.map(latestNumber)
  await until(`${what}: all playlists grow`, () =>
    viewers.every(
      (viewer, index) =>
        viewer.last.segments.length > 2 && latestNumber(viewer) >= free[index]! + segments,
    ),
  )
}

t.test('viewers at three edges see one stream, whatever dies', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'redis-server', 'redis-sentinel')) return
  const registry = await startRegistry(t)
  const secrets = createSecrets()
  const env = {
    ...secrets,
    REDIS_URL: registry.url,
    HLS_SEGMENT_SEC: '1',
  }
  const ingest = await startNodes(t, 'serve', env)
  const edges = await startNodes(t, 'edge', env)
  const statusAt = async (node: NodeProcess) =>
    (await tryApi(node.url, 'status', { stream_id: 'studio' }, secrets.HMAC_SECRET)).body.data ?? {}
  const owner = () =>
    until('a live owner', async () => {
      const { node } = await statusAt(edges[0]!)
      return ingest.find(({ id }) => id() === node)
    })
  const started = await until('the registry answers', async () => {
    const reply = await tryApi(
      ingest[0]!.url,
      'start-stream',
      { stream_id: 'studio' },
      secrets.HMAC_SECRET,
    )
    return reply.status === 200 && reply.body.data
  })
  for (const node of [...ingest, ...edges]) {
    await until(
      `every node knows the stream, ${node.url} too`,
      async () => (await statusAt(node))['status'] === 'READY',
    )
  }
  encodeInLoop(t, ingest, String(started['srt_url']))
  const viewers = edges.map(({ url }) => watchStream(t, () => Number(new URL(url).port), 'studio'))
  await allGrow('at the start', viewers, 2)

  const survivors = new Set(ingest)
  const first = await owner()
  survivors.delete(first)
  first.program.kill('SIGKILL')
  await allGrow('after the death of the owner', viewers, 4)
  for (const node of survivors) {
    await until(`${node.url} knows that it goes on`, async () => {
      return (await statusAt(node))['status'] === 'STREAMING'
    })
  }
  for (const viewer of viewers) t.strictSame(complaintsButOfWindow(viewer), [])

  registry.master.program.kill('SIGKILL')
  await allGrow('while Redis fails over', viewers, 4)
  const [other] = [...survivors]
  await until(
    'the API is back',
    async () =>
      (await tryApi(other!.url, 'start-stream', { stream_id: 'other' }, secrets.HMAC_SECRET))
        .status === 200,
  )
  await allGrow('after the failover', viewers, 2)
  for (const viewer of viewers) t.strictSame(complaintsButOfWindow(viewer), [])

  const second = await owner()
  second.program.kill('SIGSTOP')
  await allGrow('while the owner stands still', viewers, 3)
  second.program.kill('SIGCONT')
  await until('the old owner lets go', () =>
    second.program.output().includes('another node owns the stream now'),
  )
  await allGrow('after its return', viewers, 3)
  for (const viewer of viewers) {
    t.strictSame(complaintsButOfWindow(viewer), [])
    t.notMatch(viewer.texts.join(''), '#EXT-X-ENDLIST')
  }
})
