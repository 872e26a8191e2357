/**
 * Every call of the API on every node: real services and encoders over a real Redis.
 */
import t from 'tap'
import type { EndpointName } from '../../../../src/api/endpoints.ts'
import type { Server } from '../../../../src/service/server.ts'
import { encodeTo, startCluster } from '../../support/cluster.ts'
import { freePort } from '../../../support/free-port.ts'
import { callApi, tryApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'

const STUDIO = { stream_id: 'studio' }
const TOKEN = 'm'.repeat(32)

t.test('every call works on every node', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t, { metrics: { token: TOKEN } })
  const [a, b, c] = [
    await cluster.startNode(),
    await cluster.startNode(),
    await cluster.startNode(),
  ]
  const receiver = await startWebhookReceiver(t)
  const api = (node: Server, name: EndpointName, body: object = STUDIO) =>
    callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)

  const started = await api(a, 'start-stream', { ...STUDIO, webhook_urls: [receiver.url] })
  t.match(started.body.data, { status: 'READY' })
  const key = String(started.body.data['stream_key'])
  const encoder = encodeTo(t, b, key, true)
  const ofOwner = async (node: Server, expected: object) =>
    until('the record', async () => {
      const { data } = (await api(node, 'status')).body
      return Object.entries(expected).every(([name, value]) => data[name] === value) && data
    })
  const { node } = await ofOwner(b, { live: true })
  t.match(node, /^[0-9a-f]{12}$/)
  for (const each of [a, b, c]) {
    const record = await ofOwner(each, { live: true, node })
    t.match(record, { publisher: { remote: /^127/ }, tracks: [{}, {}] })
    t.notOk('stale' in record)
    const { streams } = (await api(each, 'streams')).body.data
    t.match(streams, [{ stream_id: 'studio', status: 'STREAMING', live: true, node }])
  }
  for (const each of [a, b, c]) {
    const reply = await fetch(`http://127.0.0.1:${each.httpPort}/metrics`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    })
    const text = await reply.text()
    t.match(text, `millrace_cluster_owned_streams ${each === b ? 1 : 0}\n`)
    t.match(text, 'millrace_cluster_registry_ready 1\n')
    t.equal(text.includes(`millrace_cluster_node_info{node="${node}"} 1`), each === b)
  }

  const { fence = 0 } = (await cluster.registry.get('studio')) ?? {}
  t.match((await api(c, 'status')).body.data, { node, fence, pending_writes: Number })
  const { nodes } = (await api(c, 'nodes', {})).body.data
  t.strictSame(
    nodes,
    [a, b, c]
      .map(({ publicUrl: url }) => ({
        url,
        role: 'all',
        live: true,
        streams: Number(url === b.publicUrl),
      }))
      .toSorted((one, other) => (one.url < other.url ? -1 : 1))
      .map((each, index) => ({ ...each, node: nodes[index].node })),
  )
  t.ok(nodes.some((each: object) => 'node' in each && each.node === node))

  const again = await api(c, 'start-stream', { ...STUDIO, latency_ms: 300 })
  t.match(again.body.data, { status: 'STREAMING' })
  t.not(again.body.data['stream_key'], key)
  t.match((await api(a, 'status')).body.data, { live: true, options: { latency_ms: 300 } })

  const kicked = await api(c, 'kick', { ...STUDIO, ban_sec: 2 })
  t.match(kicked.body.data, { status: 'INTERRUPTED', publisher: null, node })
  await ofOwner(a, { status: 'STREAMING' })

  const stopped = await api(a, 'stop-stream', { ...STUDIO, revoke: true })
  t.match(stopped.body.data, { status: 'STOPPED', node, publisher: null })
  encoder.stop()
  const playlist = await fetch(`http://127.0.0.1:${b.httpPort}/video/studio/playlist.m3u8`)
  t.match(await playlist.text(), '#EXT-X-ENDLIST')
  for (const each of [a, b, c]) t.match((await api(each, 'status')).body.data['status'], 'STOPPED')

  const renewed = await api(c, 'start-stream')
  t.match(await encodeTo(t, a, key).end, { code: 'SRT_REJECTED', message: /1010/ }, 'revoked')
  const next = encodeTo(t, a, String(renewed.body.data['stream_key']))
  const { node: other } = await ofOwner(c, { live: true })
  t.not(other, node)
  t.match(await encodeTo(t, a, key).end, { code: 'SRT_REJECTED' }, 'revoked where it is owned')
  next.stop()
  t.match((await api(b, 'stop-stream')).body.data, { status: 'STOPPED', node: other })
  const types = receiver.received.map(({ event }) => event.type)
  t.equal(types.filter((type) => type === 'stream.stopped').length, 1, 'from the owner, once')
  t.equal(types.filter((type) => type === 'stream.ready').length, 2, 'from the asked nodes')
})

t.test('keys of both forms work on every node, and one of them is revoked on all', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const [a, b] = [await cluster.startNode(), await cluster.startNode()]
  const api = async (node: Server, name: EndpointName, body: object = STUDIO) =>
    (await callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)).body.data
  const leaked = await api(a, 'start-stream', { ...STUDIO, key_lifetime_sec: 86_400 })
  const usedKey = async (node: Server) =>
    (await api(node, 'status'))['keys'].find(
      (key: { last_used_at?: string }) => key.last_used_at !== undefined,
    )
  const shortKey = String(leaked['short_stream_key'])
  const first = encodeTo(t, b, shortKey)
  const { key_id: keyId, expires_at } = await until('its use', () => usedKey(a))
  t.equal(expires_at, leaked['expires_at'])
  await until('the registry knows', async () => {
    const { keys = {} } = (await cluster.registry.get('studio')) ?? {}
    return keys[keyId]! > 0
  })
  first.stop()
  await b.close()
  const c = await cluster.startNode()
  t.match(await usedKey(c), { key_id: keyId }, 'after a restart, by another node')
  const second = encodeTo(t, c, shortKey)
  await until('live', async () => (await api(a, 'status'))['live'] === true)

  const kept = await api(a, 'start-stream')
  t.match(await api(a, 'revoke-key', { ...STUDIO, key_id: keyId }), { status: 'INTERRUPTED' })
  second.stop()
  t.equal(await usedKey(c), undefined)
  for (const node of [a, c])
    for (const key of [shortKey, String(leaked['stream_key'])])
      t.match(await encodeTo(t, node, key).end, { code: 'SRT_REJECTED', message: /1010/ })
  const third = encodeTo(t, a, String(kept['short_stream_key']))
  await until('live with the other key', async () => (await api(c, 'status'))['live'] === true)
  third.stop()
})

t.test('the API at API_PORT of one node is that of the cluster, and edges have none', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const apart = async () => {
    const apiPort = await freePort()
    const node = await cluster.startNode({ apiPort, apiHost: '127.0.0.2' })
    const api = (name: EndpointName) =>
      callApi(`http://127.0.0.2:${apiPort}`, name, STUDIO, cluster.hmacSecret)
    return { node, api }
  }
  const [a, b] = [await apart(), await apart()]
  const edge = await cluster.startEdge()
  const { body } = await a.api('start-stream')
  encodeTo(t, a.node, String(body.data['stream_key']))
  const record = await until('live', async () => {
    const { data } = (await b.api('status')).body
    return data['live'] === true && data
  })
  t.notOk('stale' in record, 'the owner answers at HTTP_PORT')
  t.match((await b.api('streams')).body.data['streams'], [{ live: true, node: record['node'] }])
  t.match((await b.api('kick')).body.data, { status: 'INTERRUPTED', node: record['node'] })
  for (const port of [a.node.httpPort, edge.port]) {
    const reply = await fetch(`http://127.0.0.1:${port}/api/streams`, { method: 'POST' })
    t.match([reply.status, await reply.json()], [404, { code: 'ROUTE_NOT_FOUND' }])
  }
  t.match((await b.api('stop-stream')).body.data, { status: 'STOPPED', node: record['node'] })
})

t.test('the calls of the library start and stop streams of the cluster', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const a = await cluster.startNode()
  const b = await cluster.startNode()
  const { status, streamKey } = await a.startStream({ streamId: 'studio' })
  t.equal(status, 'READY')
  t.match(await b.control.status('studio'), { status: 'READY' })
  t.throws(() => a.status('studio'), { code: 'STREAM_NOT_FOUND' }, 'no process has it')
  encodeTo(t, b, streamKey)
  await until('live', async () => (await a.control.status('studio')).live)
  const { node } = b.status('studio')
  t.match(await a.control.list(), { streams: [{ streamId: 'studio', node, live: true }] })
  t.match(await a.control.kick('studio'), { status: 'INTERRUPTED', node })
  t.match(await a.stopStream('studio'), { status: 'STOPPED', node })
  t.equal(b.status('studio').status, 'STOPPED')
})

t.test('calls while the owner is dead, and while Redis is away', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const a = await cluster.startNode()
  const b = await cluster.startNode()
  const api = (node: Server, name: EndpointName, body: object = STUDIO) =>
    callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)
  const tried = (name: EndpointName) => tryApi(b.publicUrl, name, STUDIO, cluster.hmacSecret)
  const { body } = await api(b, 'start-stream')
  const encoder = encodeTo(t, a, String(body.data['stream_key']))
  await until('live', async () => (await api(b, 'status')).body.data['live'])
  const { node } = (await api(b, 'status')).body.data

  cluster.redis.program.kill('SIGSTOP')
  for (const name of ['start-stream', 'stop-stream', 'kick', 'status', 'streams'] as const) {
    const reply = await tried(name)
    t.match(reply, { status: 503, body: { code: 'REGISTRY_UNAVAILABLE' } }, name)
  }
  t.match((await api(a, 'status')).body.data, { live: true, node })
  cluster.redis.program.kill('SIGCONT')
  await until('Redis is back', async () => (await tried('status')).status === 200)

  await a.abandon()
  encoder.stop()
  const stale = await api(b, 'status')
  t.match(stale.body.data, { stream_id: 'studio', node })
  const adopted = await until('adopted', async () => {
    const { data } = (await api(b, 'status')).body
    return data['node'] !== node && !('stale' in data) && data
  })
  t.match(adopted, { status: 'INTERRUPTED' })
  t.match((await api(b, 'stop-stream')).body.data, { status: 'STOPPED' })
  t.match((await api(b, 'streams')).body.data['streams'], [{ stream_id: 'studio' }])
})
