/**
 * A cluster of real processes: three ingest nodes, three edges, Redis with a replica and three Sentinels; what dies, and
 * what viewers see.
 */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { watchStream, type TestViewer } from '../support/cluster.ts'
import { freePorts } from '../support/free-port.ts'
import { start, type Program } from '../support/process.ts'
import { ask, startRedis, startSentinel } from '../support/redis.ts'
import { callApi } from '../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../support/until.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const CLIP = fileURLToPath(new URL('../../fixtures/demo.mpegts', import.meta.url))

interface Node {
  readonly url: string
  readonly srtPort: number
  readonly program: Program
}

/** Redis with a replica, watched by three Sentinels. */
async function startRegistry(t: Test) {
  const master = await startRedis(t)
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', String(master.port)] })
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, () => startSentinel(t, master.port, { quorum: 2 })),
  )
  await until('the Sentinels know each other and the replica', async () => {
    const replies = await Promise.all(sentinels.map(({ port }) => ask(port, 'SENTINEL MASTERS')))
    return (
      replies.every((reply) => /num-other-sentinels\r\n\$1\r\n2/.test(reply)) &&
      replies.every((reply) => /num-slaves\r\n\$1\r\n1/.test(reply))
    )
  })
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+sentinel://${hosts}/main`, master, replica }
}

async function startNodes(t: Test, env: Record<string, string>, command: 'serve' | 'edge') {
  const ports = await freePorts(6)
  const nodes = [0, 1, 2].map((index): Node => {
    const [httpPort, srtPort] = [ports[index]!, ports[index + 3]!]
    const own = { HTTP_PORT: String(httpPort), SRT_PORT: String(srtPort) }
    const program = start(t, process.execPath, [CLI, command], {
      env: {
        ...env,
        ...own,
        HTTP_HOST: '127.0.0.1',
        SRT_HOST: '127.0.0.1',
        PUBLIC_HOST: '127.0.0.1',
      },
    })
    return { url: `http://127.0.0.1:${httpPort}`, srtPort, program }
  })
  for (const { program } of nodes) {
    await until('listening', () => program.output().includes('"msg":"listening"'))
  }
  return nodes
}

/** ffmpeg in a loop, each time at the next node. */
function encodeInLoop(t: Test, nodes: readonly Node[], srtUrl: string): void {
  let isOver = false
  let turn = 0
  let latest: Program | undefined
  t.teardown(() => (isOver = true))
  const call = () => {
    if (isOver) return
    const port = nodes[turn++ % nodes.length]!.srtPort
    const input = ['-re', '-stream_loop', '-1', '-i', CLIP, '-c', 'copy']
    const url = srtUrl.replace(/:\d+\?/, `:${port}?`)
    latest = start(t, 'ffmpeg', ['-v', 'error', ...input, '-f', 'mpegts', url])
    latest.child.once('exit', () => setTimeout(call, 300))
  }
  call()
}

const latestNumber = (viewer: TestViewer) => viewer.last.segments.at(-1)?.sequence ?? 0

async function allGrow(what: string, viewers: readonly TestViewer[], segments: number) {
  const free = viewers.map(latestNumber)
  await until(
    `${what}: all playlists grow`,
    () =>
      viewers.every(
        (viewer, index) =>
          viewer.last.segments.length > 2 && latestNumber(viewer) >= free[index]! + segments,
      ),
    { timeoutMs: 30_000 },
  )
}

t.test('viewers at three edges see one stream, whatever dies', { timeout: 200_000 }, async (t) => {
  if (!requireTool(t, 'ffmpeg', 'redis-server', 'redis-sentinel')) return
  const registry = await startRegistry(t)
  const hmacSecret = randomBytes(32).toString('hex')
  const env = {
    HMAC_SECRET: hmacSecret,
    JWT_SECRET: randomBytes(32).toString('hex'),
    CLUSTER_SECRET: randomBytes(32).toString('hex'),
    REDIS_URL: registry.url,
    HLS_SEGMENT_SEC: '1',
    NODE_OPTIONS: '',
  }
  const ingest = await startNodes(t, env, 'serve')
  const edges = await startNodes(t, env, 'edge')
  const statusAt = async (node: Node) =>
    (await callApi(node.url, 'status', { stream_id: 'studio' }, hmacSecret)).body.data ?? {}
  const owner = async (): Promise<Node> => {
    for (const node of ingest) {
      const reply = await fetch(`${node.url}/video/studio/playlist.m3u8`).catch(() => undefined)
      if (reply?.status === 200) return node
    }
    throw new Error('no node serves the stream')
  }
  const started = await until('the registry answers', async () => {
    const reply = await callApi(ingest[0]!.url, 'start-stream', { stream_id: 'studio' }, hmacSecret)
    return reply.status === 200 && reply.body.data
  })
  for (const node of [...ingest, ...edges]) {
    t.match(await statusAt(node), { status: 'READY' }, `status at ${node.url}`)
  }
  encodeInLoop(t, ingest, String(started['srt_url']))
  const viewers = edges.map(({ url }) => watchStream(t, () => Number(new URL(url).port), 'studio'))
  await allGrow('at the start', viewers, 2)

  const survivors = new Set(ingest)
  const first = await owner()
  survivors.delete(first)
  first.program.kill('SIGKILL')
  await allGrow('after the death of the owner', viewers, 4)
  for (const node of survivors) t.match(await statusAt(node), { status: 'STREAMING' })
  for (const { complaints } of viewers) t.strictSame(complaints, [])

  registry.master.program.kill('SIGKILL')
  await allGrow('while Redis fails over', viewers, 4)
  const [other] = [...survivors]
  await until(
    'the API is back',
    async () =>
      (await callApi(other!.url, 'start-stream', { stream_id: 'other' }, hmacSecret)).status ===
      200,
    { timeoutMs: 30_000 },
  )
  await allGrow('after the failover', viewers, 2)
  for (const { complaints } of viewers) t.strictSame(complaints, [])

  const second = await owner()
  second.program.kill('SIGSTOP')
  await allGrow('while the owner stands still', viewers, 3)
  second.program.kill('SIGCONT')
  await until(
    'the old owner lets go',
    async () => {
      const reply = await fetch(`${second.url}/video/studio/playlist.m3u8`).catch(() => undefined)
      return reply?.status === 404
    },
    { timeoutMs: 20_000 },
  )
  await allGrow('after its return', viewers, 3)
  // A node that stands still takes its window with it, since it may have used numbers that nobody else knows.
  const isOfWindow = (complaint: string) => /^(WINDOW_TOO_SHORT|HOUSE_WINDOW)/.test(complaint)
  for (const { complaints, texts } of viewers) {
    t.strictSame(
      complaints.filter((complaint) => !isOfWindow(complaint)),
      [],
    )
    t.notMatch(texts.join(''), '#EXT-X-ENDLIST')
  }
})
