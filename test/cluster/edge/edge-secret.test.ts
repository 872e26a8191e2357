/**
 * EDGE_OF together with CLUSTER_SECRET: an edge signs what it asks its origin.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { machineClock } from '../../../src/timing/clock.ts'
import { NODE_CALL, NodeCalls } from '../../../src/auth/node-calls.ts'
import { createLogger } from '../../../src/logger.ts'
import { createEdgeServer } from '../../../src/cluster/edge/edge-server.ts'

const SECRET = 'c'.repeat(32)

t.test('an edge of one origin signs its requests, and names clients', async (t) => {
  const seen: { method: string; path: string; header: string }[] = []
  const origin = createServer(({ method = '', url: path = '', headers }, reply) => {
    seen.push({ method, path, header: String(headers[NODE_CALL] ?? '') })
    reply.writeHead(404).end()
  })
  t.teardown(() => origin.close())
  await once(origin.listen(0, '127.0.0.1'), 'listening')
  const { port } = origin.address() as AddressInfo
  const edge = await createEdgeServer({
    ...{ logLevel: 'silent', public: { host: '127.0.0.1' }, http: { host: '127.0.0.1', port: 0 } },
    ...{ edgeOf: `http://127.0.0.1:${port}`, clusterSecret: SECRET },
    ...{ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) },
  })
  t.teardown(() => edge.close())
  const url = `http://127.0.0.1:${edge.port}`
  await fetch(`${url}/video/studio/playlist.m3u8`)
  await fetch(`${url}/api/status`, { method: 'POST', body: '{}' })
  const calls = new NodeCalls(() => [SECRET], machineClock)
  // The edge asks whether its origin lives, too.
  const verified = seen
    .filter(({ path }) => path !== '/health/live')
    .map(({ header, ...call }) => [call.path, calls.verify(call, header)?.client])
  t.ok(verified.length >= 2)
  t.ok(seen.every(({ header, ...call }) => calls.verify(call, header) !== undefined))
  t.strictSame(Object.fromEntries(verified), {
    '/video/studio/playlist.m3u8': undefined,
    '/api/status': '127.0.0.1',
  })
})

t.test('the log of an edge is limited', async (t) => {
  const lines: string[] = []
  const edge = await createEdgeServer({
    ...{ logger: createLogger('info', { write: (line) => void lines.push(line) }) },
    ...{ public: { host: '127.0.0.1' }, http: { host: '127.0.0.1', port: 0 } },
    ...{ edgeOf: 'http://127.0.0.1:1', hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) },
  })
  t.teardown(() => edge.close())
  for (let line = 0; line < 100; line++) edge.announce()
  t.equal(lines.filter((line) => line.includes('"listening"')).length, 5)
})

t.test('an edge takes no encoders, whatever SRT_STREAM_PORTS', async (t) => {
  const edge = await createEdgeServer({
    ...{ logLevel: 'silent', public: { host: '127.0.0.1' }, http: { host: '127.0.0.1', port: 0 } },
    ...{ redisUrl: 'redis://127.0.0.1:1', clusterSecret: SECRET, srt: { streamPorts: '1-65535' } },
    ...{ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) },
  })
  t.ok(edge.port)
  await edge.close()
})
