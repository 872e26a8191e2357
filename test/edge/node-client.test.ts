/**
 * Connections of an edge to other nodes: what is on its way is bounded.
 */
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { NodeClient } from '../../src/edge/node-client.ts'
import { until } from '../support/until.ts'

const LARGE_BYTES = 200 * 1024 * 1024

t.test('refuses a file while others on their way fill the memory for them', async (t) => {
  const held: ServerResponse[] = []
  const server = createServer(({ url }, reply) => {
    if (url === '/small') {
      reply.end('small')
      return
    }
    reply.writeHead(200, { 'content-length': LARGE_BYTES })
    reply.flushHeaders()
    held.push(reply)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new NodeClient()
  t.teardown(async () => {
    await client.close()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const stop = new AbortController()
  let heads = 0
  const first = client.get(origin, { path: '/large', signal: stop.signal }, () => heads++)
  const aborted = t.rejects(first)
  await until('a head', () => heads === 1)
  await t.rejects(client.get(origin, { path: '/large' }), { message: /too many bytes/ })
  t.equal((await client.get(origin, { path: '/small' })).bytes.toString(), 'small')
  stop.abort()
  await aborted
  const another = client.get(
    origin,
    { path: '/large', signal: AbortSignal.timeout(500) },
    () => heads++,
  )
  await t.rejects(another, { name: 'TimeoutError' })
  t.equal(heads, 2)
  t.equal(held.length, 3)
})
