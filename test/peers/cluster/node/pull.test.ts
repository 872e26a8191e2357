/**
 * A source that a cluster calls: one node does, and another one takes over with the stream.
 */
import t from 'tap'
import type { Server } from '../../../../src/service/server.ts'
import { encodeTo, killNode, startCluster, watchStream } from '../../support/cluster.ts'
import { ask } from '../../support/redis.ts'
import { freePort } from '../../../support/free-port.ts'
import { start } from '../../../support/process.ts'
import { callApi, tryApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const STUDIO = { stream_id: 'studio' }
const SECRETS = { streamid: 'a-secret-stream-id', passphrase: 'a-secret-passphrase' }

t.test('one node calls the source, and another one takes over with the stream', async (t) => {
  if (!requireTool(t, 'redis-server', 'ffmpeg')) return
  const cluster = await startCluster(t)
  const [a, b] = [await cluster.startNode(), await cluster.startNode()]
  const api = async (node: Server, name: 'start-stream' | 'status', body: object = STUDIO) =>
    (await callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)).body.data
  const port = await freePort()
  const { streamid, passphrase } = SECRETS
  const target = `srt://127.0.0.1:${port}?mode=listener&passphrase=${passphrase}`
  const clip = '-v error -re -stream_loop -1 -i fixtures/demo.mpegts -c copy -f mpegts'
  start(t, 'bash', ['-c', `until false; do ffmpeg ${clip} '${target}'; sleep 0.2; done`])

  await api(a, 'start-stream', {
    ...STUDIO,
    pull_url: `srt://127.0.0.1:${port}?streamid=${streamid}&passphrase=${passphrase}`,
  })
  const isPulledBy = async (node: Server) => {
    const { status, pull } = node.findStream('studio') === undefined ? {} : node.status('studio')
    return status === 'STREAMING' && pull?.state === 'CONNECTED'
  }
  await until('live', async () => (await api(a, 'status'))['live'])
  t.equal(await isPulledBy(a), true, 'by the node that was asked')
  t.match(await api(b, 'status'), { pull: { remote: `127.0.0.1:${port}`, state: 'CONNECTED' } })
  const record = await ask(cluster.redis.port, 'HGETALL mr:{studio}')
  t.match(record, /s\.pullUrl/)
  t.notMatch(record, new RegExp(Object.values(SECRETS).join('|')), 'sealed in Redis')

  const viewer = watchStream(t, () => b.httpPort, 'studio')
  await until('segments', () => viewer.last.segments.length > 2)
  await killNode(cluster, a)
  await until('the other node calls', () => isPulledBy(b))
  await until('live again', async () => (await api(b, 'status'))['live'])
  t.strictSame(viewer.complaints, [])

  const { stream_key: key } = await api(b, 'start-stream', { ...STUDIO, pull_url: '' })
  await until('called no more', async () => (await api(b, 'status'))['pull'] === undefined)
  encodeTo(t, b, String(key), true)
  await until('an encoder has its place', async () => (await api(b, 'status'))['live'])
})

t.test('a node without room for the stream does not register it', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const node = await cluster.startNode({ maxStreams: 1 })
  // The cluster has room.
  await cluster.startNode({ maxStreams: 1 })
  const api = async (name: 'start-stream' | 'status', body: object) =>
    tryApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)
  const pull_url = `srt://127.0.0.1:${await freePort()}`
  const camera = { stream_id: 'camera', pull_url }
  t.equal((await api('start-stream', camera)).status, 200)
  const refused = await api('start-stream', { ...STUDIO, pull_url })
  t.match(refused, { status: 503, body: { code: 'TOO_MANY_STREAMS' } })
  t.equal((await api('status', STUDIO)).status, 404)
  t.equal((await api('start-stream', camera)).status, 200, 'one that runs')
})
