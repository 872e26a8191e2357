/**
 * Nodes that reach one another through a proxy, at a path of its own for each.
 */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import t, { type Test } from 'tap'
import { encodeTo, startCluster, watchStream, type TestCluster } from '../../support/cluster.ts'
import { freePort } from '../../../support/free-port.ts'
import { callApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

t.test('calls between nodes go through the path of NODE_URL', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const [a, b] = [await startBehindProxy(t, cluster), await startBehindProxy(t, cluster)]
  const edge = await cluster.startEdge()
  encodeTo(t, a.server, await cluster.startStream('studio'), true)
  const statusAt = async (port: number) =>
    (
      await callApi(
        `http://127.0.0.1:${port}`,
        'status',
        { stream_id: 'studio' },
        cluster.hmacSecret,
      )
    ).body.data
  await until('the other node has the record of the owner', async () => {
    const { live, pending_writes: isOfOwner } = await statusAt(b.server.httpPort)
    return live === true && isOfOwner !== undefined
  })
  const viewer = watchStream(t, () => edge.port, 'studio')
  await until('a playlist at the edge', () => viewer.last.segments.length > 2)
  await until('the owner counts the viewer of the edge', async () => {
    return (await statusAt(a.server.httpPort))['viewers'] === 1
  })
  const paths = new Set(
    [...a.paths, ...b.paths].map((path) => path.split('/').slice(0, 3).join('/')),
  )
  t.ok(paths.has('/behind/node'), 'calls of nodes')
  t.ok(paths.has('/behind/video'), 'media')
  t.strictSame(
    [...paths].filter((path) => !path.startsWith('/behind/')),
    [],
  )
})

/** Starts a node whose NODE_URL is that of a proxy which removes the path before it passes requests on. */
async function startBehindProxy(t: Test, cluster: TestCluster) {
  const port = await freePort()
  const paths: string[] = []
  const proxy = createServer((asked, reply) => {
    const { method, headers, url = '' } = asked
    paths.push(url)
    const options = { host: '127.0.0.1', port, path: url.replace('/behind', ''), method, headers }
    const passed = request(options, (answer) => {
      reply.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(reply)
    })
    passed.on('error', () => reply.destroy())
    reply.on('close', () => passed.destroy())
    asked.pipe(passed)
  })
  t.teardown(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const address = proxy.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const server = await cluster.startNode({
    http: { host: '127.0.0.1', port },
    nodeUrl: `http://127.0.0.1:${address.port}/behind`,
  })
  return { server, paths }
}
