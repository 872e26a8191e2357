/**
 * Connections of an edge to other nodes.
 */
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { callNode } from '../../../src/cluster/node/call-node.ts'
import { NODE_CALL } from '../../../src/auth/node-calls.ts'
import { NodeClient, ResponseReader } from '../../../src/cluster/edge/node-client.ts'
import { until } from '../../support/until.ts'
import { nodeCalls } from './fake-node.ts'

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
  const refusal = { code: 'TOO_MANY_WAITING', message: /too many bytes/ }
  await t.rejects(client.get(origin, { path: '/large' }), refusal)
  t.equal(client.isAway, false, 'the limit is that of the edge')
  t.equal((await client.get(origin, { path: '/small' })).bytes.toString(), 'small')
  stop.abort()
  await aborted
  const stopAnother = new AbortController()
  const { signal } = stopAnother
  const another = client.get(origin, { path: '/large', signal }, () => heads++)
  const anotherAborted = t.rejects(another, { name: 'AbortError' })
  await until('its head', () => heads === 2)
  stopAnother.abort()
  await anotherAborted
  t.equal(held.length, 3)
})

t.test(
  'a node that has left is forgotten after a minute, though it is asked each second',
  async (t) => {
    // lru-cache takes a start time of 0 as none.
    let nowUs = 1
    const client = new NodeClient({ clock: { nowUs: () => nowUs } })
    t.teardown(() => client.close())
    const ask = () => client.get('http://127.0.0.1:1', { path: '/health/live' })
    t.equal(client.isAway, false)
    for (let sec = 0; sec < 60; sec += 20) {
      await t.rejects(ask())
      t.equal(client.isAway, true, `after ${sec} s`)
      nowUs += 20e6
    }
    t.equal(client.isAway, true, 'within the minute')
    nowUs += 1000
    t.equal(client.isAway, false)
  },
)

t.test('the client of a worker signs its requests for files alone', async (t) => {
  const signed: (string | undefined)[] = []
  const server = createServer(({ url, headers }, reply) => {
    if (NODE_CALL in headers) signed.push(url)
    reply.end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new NodeClient({ calls: nodeCalls, signsFilesOnly: true })
  t.teardown(async () => {
    await client.close()
    server.close().closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { signal } = new AbortController()
  await client.get(url, { path: '/video/demo/a.ts' })
  const passed = { headers: {}, body: Buffer.alloc(0), client: '192.0.2.7', signal }
  for (const isFile of [false, true])
    await (await client.pass(url, { method: 'GET', path: '/api', isFile, ...passed })).read()
  await client.post(url, '/edge-reports', Buffer.from('{}'), signal)
  t.strictSame(signed, ['/video/demo/a.ts'])
})

t.test('a node URL may have a path, which a proxy removes and no signature covers', async (t) => {
  const seen: string[] = []
  const server = createServer(({ method = '', url = '', headers }, reply) => {
    const path = url.replace(/^\/node-1/, '')
    const call = nodeCalls.verify({ method, path }, String(headers[NODE_CALL]))
    seen.push(`${method} ${url} ${call === undefined ? 'forged' : 'signed'}`)
    reply.end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new NodeClient({ calls: nodeCalls })
  t.teardown(async () => {
    await client.close()
    server.close().closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/node-1/`
  const { signal } = new AbortController()
  await client.get(url, { path: '/video/demo/a.ts?b' })
  const passed = { headers: {}, body: Buffer.alloc(0), client: '192.0.2.7', signal }
  ;(await client.pass(url, { method: 'GET', path: '/watch/demo', ...passed })).body.resume()
  await callNode(client, { url, call: 'yield', body: {}, timeoutMs: 5000 })
  const posted = await client.post(url, '/node/edge-report', Buffer.from('{}'), signal)
  t.match(posted, { status: 200, bytes: Buffer.from('{}') })
  t.strictSame(seen, [
    'GET /node-1/video/demo/a.ts?b signed',
    'GET /node-1/watch/demo signed',
    'POST /node-1/node/yield signed',
    'POST /node-1/node/edge-report signed',
  ])
})

t.test('reads a body of unknown size up to the limit, and destroys a larger one', async (t) => {
  const reader = new ResponseReader({ maxBytes: 100, maxTotalBytes: 1000 })
  const body = (chunks: number) =>
    Readable.from(Array.from({ length: chunks }, () => Buffer.alloc(10)))
  t.equal((await reader.read(body(10), 0)).length, 100)
  const large = body(1000)
  await t.rejects(reader.read(large, 0), { message: /too many bytes/ })
  t.equal(large.destroyed, true)
  await t.rejects(reader.read(body(1), 101), { message: /too many bytes/ })
})

t.test('bodies of unknown size count while they are read, one is always read', async (t) => {
  const reader = new ResponseReader({ maxBytes: 100, maxTotalBytes: 50 })
  const [first, second] = [new PassThrough(), new PassThrough()]
  const [whole, refused] = [reader.read(first, 0), reader.read(second, 0)]
  first.write(Buffer.alloc(40))
  await until('the first is being read', () => first.readableLength === 0)
  second.write(Buffer.alloc(20))
  await t.rejects(refused, { message: /too many bytes/ })
  first.end(Buffer.alloc(60))
  t.equal((await whole).length, 100)
  t.equal((await reader.read(Readable.from([Buffer.alloc(50)]), 50)).length, 50)
})

t.test('a reply to a client has 32 MiB at most', async (t) => {
  const chunk = Buffer.alloc(1024 * 1024)
  const server = createServer((_request, reply) => {
    const send = () => {
      while (!reply.destroyed && reply.write(chunk));
    }
    reply.on('drain', send)
    send()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new NodeClient()
  t.teardown(async () => {
    await client.close()
    server.close().closeAllConnections()
  })
  const { signal } = new AbortController()
  const passed = { headers: {}, body: Buffer.alloc(0), client: '192.0.2.7', signal }
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const reply = await client.pass(url, { method: 'GET', path: '/', ...passed })
  await t.rejects(reply.read(), { message: /too many bytes/ })
})
