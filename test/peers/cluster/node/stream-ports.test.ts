/**
 * Ports that a stream has to itself at every node, for an encoder that sends no stream id.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import type { EndpointName } from '../../../../src/api/endpoints.ts'
import type { Server } from '../../../../src/service/server.ts'
import { createLogger, type Logger } from '../../../../src/logger.ts'
import { connect } from '../../../../src/srt/index.ts'
import { killNode, linkTo, startCluster, watchStream } from '../../support/cluster.ts'
import { publishDemo } from '../../../support/demo-encoder.ts'
import { ask } from '../../support/redis.ts'
import { freeRange } from '../../../support/free-port.ts'
import { callApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const STUDIO = { stream_id: 'studio' }

interface StartOptions {
  readonly passphrase?: string
  readonly redisUrl?: string
  readonly logger?: Logger
}

/** Two nodes with the same ports, at addresses of their own; the link is between the second one and Redis. */
async function startPair(t: Parameters<typeof startCluster>[0]) {
  const other = await freeRange(2)
  const port = other + 1
  const cluster = await startCluster(t)
  const link = await linkTo(t, cluster.redis)
  const startAt = (
    host: string,
    { passphrase = '', redisUrl = cluster.redis.url, ...more }: StartOptions = {},
  ) => {
    const srt = { host, passphrase, streamPorts: `${other}-${port}` }
    return cluster.startNode({ srt, redisUrl, ...more })
  }
  const [a, b] = [await startAt('127.0.0.1'), await startAt('127.0.0.2', { redisUrl: link.url })]
  const api = async (node: Server, name: EndpointName, body: object = STUDIO) =>
    (await callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)).body.data
  return { cluster, link, other, port, a, b, startAt, api }
}

t.test('an encoder without a stream id goes on at the same port of another node', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, port, a, b, api } = await startPair(t)
  const started = await api(a, 'start-stream', { ...STUDIO, encryption: true, publish_port: port })
  const passphrase = String(started['passphrase'])
  t.equal(started['publish_url'], `srt://127.0.0.1:${port}?passphrase=${passphrase}&pbkeylen=32`)
  t.equal((await api(b, 'status'))['publish_port'], port, 'nobody owns the stream')

  const viewer = watchStream(t, () => b.httpPort, 'studio')
  const at = (host: string) => `srt://${host}:${port}?passphrase=${passphrase}&pbkeylen=32`
  publishDemo(t, at('127.0.0.1'), { retry: true, mayFail: true })
  await until('segments', () => viewer.last.segments.length > 2)
  t.match(await api(b, 'status'), { status: 'STREAMING', publish_port: port })
  const elsewhere = { host: '127.0.0.2', port, passphrase }
  await t.rejects(connect(elsewhere), /2409/, 'a second encoder at another node')

  const free = viewer.last.segments.at(-1)!.sequence
  await killNode(cluster, a)
  publishDemo(t, at('127.0.0.2'), { retry: true, mayFail: true })
  await until('the stream goes on', () => viewer.last.segments.at(-1)!.sequence > free + 2)
  t.match(await api(b, 'status'), { status: 'STREAMING', publish_port: port })

  await ask(cluster.redis.port, 'FLUSHALL')
  const isKnown = async () => (await cluster.registry.listPorts())[0]?.port === port
  await until('Redis has the port again', isKnown)
  const next = { stream_id: 'next', encryption: true, publish_port: port }
  await t.rejects(api(b, 'start-stream', next), /400.*to another stream/)
  t.equal((await api(b, 'stop-stream'))['publish_port'], undefined)
  t.match(await api(b, 'start-stream', next), { status: 'READY' }, 'the port is free')
})

t.test(
  'an encoder comes back to a node that has adopted its stream while Redis is away',
  async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { cluster, link, port, a, b, api } = await startPair(t)
    const started = await api(a, 'start-stream', {
      ...STUDIO,
      encryption: true,
      publish_port: port,
    })
    const passphrase = String(started['passphrase'])
    const call = async (host: string) => (await connect({ host, port, passphrase })).close()
    await call('127.0.0.1')
    const first = (await cluster.registry.get('studio'))?.owner
    await a.close()
    await until('b has the stream', async () => {
      const owner = (await cluster.registry.get('studio'))?.owner
      return owner !== first && (await api(b, 'status'))['node'] === owner
    })
    link.cut()
    await call('127.0.0.2')
  },
)

t.test('whoever finds the port moves no stream', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, port, a, b, api } = await startPair(t)
  const call = (options: object) => connect({ host: '127.0.0.2', port, ...options })
  await t.rejects(call({}), /1010/, 'nobody has the port')
  await api(b, 'start-stream', { ...STUDIO, encryption: true, publish_port: port })
  await t.rejects(call({}), /1011/, 'no passphrase')
  await t.rejects(call({ passphrase: 'not the passphrase' }), /1010/)
  t.equal((await cluster.registry.get('studio'))?.fence, 0, 'nobody has claimed it')

  const other = { stream_id: 'other', allow_from: ['192.0.2.0/24'] }
  await t.rejects(api(a, 'start-stream', { ...other, publish_port: port }), /to another stream/)
  await t.rejects(api(a, 'start-stream', { ...other, publish_port: port + 1 }), /one of SRT_/)
  await t.rejects(api(a, 'start-stream', { stream_id: 'other', publish_port: port }), /another/)
  await api(a, 'stop-stream')
  await t.rejects(
    api(a, 'start-stream', { stream_id: 'other', publish_port: port }),
    /requires encryption/,
  )
  await api(b, 'start-stream', { ...other, publish_port: port })
  await t.rejects(call({}), /2403/, 'the address is not allowed')
  t.equal((await cluster.registry.get('other'))?.fence, 0)

  const key = String((await api(b, 'start-stream', STUDIO))['stream_key'])
  await t.rejects(call({ streamId: key }), /1010/, 'a key of another stream')
})

t.test('each stream has its own port, and another one after a stop', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, other, port, a, b, api } = await startPair(t)
  const start = async (streamId: string, publishPort: number) => {
    const request = { stream_id: streamId, encryption: true, publish_port: publishPort }
    return String((await api(a, 'start-stream', request))['passphrase'])
  }
  const call = async (at: number, passphrase: string, host = '127.0.0.2') =>
    (await connect({ host, port: at, passphrase })).close()
  const [studio, next] = [await start('studio', port), await start('next', other)]
  await t.rejects(call(port, next), /1010/)
  await t.rejects(call(other, studio), /1010/)
  await call(port, studio)
  await call(other, next)
  t.match(await cluster.registry.listPorts(), [
    { port: other, streamId: 'next' },
    { port, streamId: 'studio' },
  ])
  await api(b, 'stop-stream', { stream_id: 'next' })
  await t.rejects(start('studio', other), `publish_port must be ${port} until`)
  await api(b, 'stop-stream')
  await call(other, await start('studio', other), '127.0.0.1')
  t.match(await cluster.registry.listPorts(), [{ port: other, streamId: 'studio' }])
  t.equal((await api(b, 'status'))['publish_port'], other)
})

t.test('a port that a stream was given at its owner outlives a loss of Redis', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, port, a, b, api } = await startPair(t)
  const { stream_key: streamId } = await api(a, 'start-stream', { ...STUDIO, encryption: false })
  const key = { host: '127.0.0.2', port: b.srtPort, streamId: String(streamId) }
  await (await connect(key)).close()
  await api(a, 'start-stream', { ...STUDIO, publish_port: port, allow_from: ['127.0.0.0/8'] })
  await ask(cluster.redis.port, 'FLUSHALL')
  const ports = () => cluster.registry.listPorts()
  await until('Redis has the port again', async () => (await ports())[0]?.port === port)
  await (await connect({ host: '127.0.0.1', port })).close()
})

t.test('a stream whose port another one got while Redis had lost it has no port', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, link, port, a, b, api } = await startPair(t)
  const options = { encryption: true, publish_port: port }
  const { passphrase } = await api(a, 'start-stream', { ...STUDIO, ...options })
  const at = { host: '127.0.0.2', port, passphrase: String(passphrase) }
  await (await connect(at)).close()
  link.cut()
  await ask(cluster.redis.port, 'FLUSHALL')
  await api(a, 'start-stream', { stream_id: 'next', ...options })
  link.mend()
  const statusOf = async (streamId: string) => api(b, 'status', { stream_id: streamId })
  await until('the owner knows', async () => (await statusOf('studio'))['publish_port'] !== port)
  t.equal((await statusOf('next'))['publish_port'], port)
  t.match(await cluster.registry.listPorts(), [{ port, streamId: 'next' }])
})

t.test('a node starts without a port of the range that another program has', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { port, startAt } = await startPair(t)
  const other = createSocket('udp4').bind(port, '127.0.0.3')
  await once(other, 'listening')
  t.teardown(() => void other.close())
  const lines: string[] = []
  const logger = createLogger('warn', { write: (line) => void lines.push(line) })
  await startAt('127.0.0.3', { logger })
  t.match(lines.join(''), `port ${port} on 127.0.0.3 is in use`)
})

t.test('a port that only SRT_PASSPHRASE protects is closed at a node without it', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, port, startAt, api } = await startPair(t)
  const passphrase = 'the passphrase of all'
  const c = await startAt('127.0.0.3', { passphrase })
  await api(c, 'start-stream', { ...STUDIO, publish_port: port })
  const call = (host: string, options: object = {}) => connect({ host, port, ...options })
  await t.rejects(call('127.0.0.2'), /1011/)
  t.equal((await cluster.registry.get('studio'))?.fence, 0, 'nobody has claimed it')
  await t.rejects(call('127.0.0.3'), /1011/)
  const caller = await call('127.0.0.3', { passphrase })
  await caller.close()
  const owner = async () => (await cluster.registry.get('studio'))?.owner
  const first = await owner()
  await c.close()
  await until('another node has the stream', async () => (await owner()) !== first)
  for (const host of ['127.0.0.1', '127.0.0.2'])
    await t.rejects(call(host), /1011/, 'the owner, too')
})
