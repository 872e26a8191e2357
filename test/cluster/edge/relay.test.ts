/**
 * What an edge passes on to other nodes: everything over the Unix socket of its own service, otherwise player pages and,
 * signed, the API.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request, type IncomingMessage } from 'node:http'
import { BlockList, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify from 'fastify'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Journal } from '../../../src/admin/journal.ts'
import { PlaybackTokens, signPlaybackToken } from '../../../src/auth/playback-token.ts'
import { systemClock } from '../../../src/timing/clock.ts'
import { NodeCalls } from '../../../src/auth/node-calls.ts'
import { IngestNodes } from '../../../src/cluster/edge/ingest-nodes.ts'
import { NodeClient } from '../../../src/cluster/edge/node-client.ts'
import { createRelay } from '../../../src/cluster/edge/relay.ts'
import { buildApp, type AppOptions } from '../../../src/service/app.ts'
import { HttpGuard } from '../../../src/http/guard/http-guard.ts'
import { LiveStore } from '../../playback/live-store.ts'
import {
  call,
  json,
  MemoryService,
  SECRET,
  signedCall,
  speak,
  startApp,
} from '../../http/memory-service.ts'
import { until } from '../../support/until.ts'
import { startEdge, type EdgeApp, type EdgeAppOptions } from './edge-app.ts'
import { nodeCalls } from './fake-node.ts'

const PLAYBACK_SECRET = 'p'.repeat(32)
const PASSWORD = 'a password of an operator'

/** A service on a Unix socket, and a worker in front of it. */
async function serveLocally(
  t: Test,
  options: Partial<AppOptions> = {},
  edgeOptions?: EdgeAppOptions,
) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-relay-'))
  const service = new MemoryService()
  const logger = pino({ level: 'silent' })
  const limits = { maxConnections: 1000, maxBufferedMib: 64 }
  const guard = new HttpGuard({ limits, clock: systemClock, logger })
  const app = buildApp({
    ...{ control: service, playback: service, readHmacSecrets: () => [SECRET] },
    ...{ guard, logger, trustPeers: true, ...options },
  })
  await app.listen({ path: join(folder, 'http') })
  t.teardown(async () => {
    await app.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const worker = await startEdge(t, `unix:${join(folder, 'http')}`, edgeOptions)
  return { service, app, worker }
}

/** A dashboard without streams. */
function dashboardParts() {
  const source = new MemoryService()
  const control = Object.assign(source, { list: () => ({ streams: [] }) })
  const streams = { source, allStreams: source, listPublished: () => [] }
  const readProcess = () => ({ cpuSec: 0, sentBytes: 0, residentBytes: 0, uptimeSec: 0 })
  const own = { journal: new Journal(systemClock), loopbackUrl: () => '' }
  const dashboard = { ...streams, ...own, readProcess, readPassword: () => PASSWORD }
  return { control, dashboard }
}

function logIn(app: Pick<EdgeApp, 'port'>, headers: Record<string, string> = {}) {
  const own = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
  const body = JSON.stringify({ password: PASSWORD })
  return call(app, 'POST', '/admin/login', { headers: { ...own, ...headers }, body })
}

t.test('a worker passes on API calls, the bodies of GET requests included', async (t) => {
  const { service, worker } = await serveLocally(t)
  const started = await signedCall(worker, 'POST', '/api/start-stream', { stream_id: 'demo' })
  t.equal(started.status, 200)
  t.match(service.started, [{ streamId: 'demo' }])
  const status = await signedCall(worker, 'GET', '/api/status', { stream_id: 'demo' })
  t.match(json(status), { success: true, data: { stream_id: 'demo', status: 'READY' } })
  const forged = await signedCall(worker, 'GET', '/api/status', '{}', {
    'lt-signature': 'a'.repeat(64),
  })
  t.match([forged.status, json(forged).code], [403, 'SIGNATURE_INVALID'])
  const unsigned = await call(worker, 'POST', '/api/start-stream', { body: '{}' })
  t.match([unsigned.status, json(unsigned).code], [400, 'SIGNATURE_MISSING'])
})

t.test('a worker refuses a body over 64 KiB itself', async (t) => {
  const { service, worker } = await serveLocally(t)
  const body = Buffer.alloc(65_537, 0x20)
  const reply = await signedCall(worker, 'POST', '/api/start-stream', body)
  t.match([reply.status, json(reply).code], [413, 'BODY_TOO_LARGE'])
  t.same(service.started, [])
})

t.test('a worker passes on health, pages and unknown paths, with their headers', async (t) => {
  const { app, worker } = await serveLocally(t)
  for (const [method, path] of [
    ['GET', '/health/ready'],
    ['GET', '/watch/demo'],
    ['HEAD', '/watch/demo'],
    ['GET', '/watch/assets/player.js'],
    ['GET', '/api/openapi.json'],
    ['GET', '/nothing?here'],
    ['DELETE', '/watch/demo'],
  ] as const) {
    const reply = await call(worker, method, path)
    const direct = await app.inject({ method, url: path })
    const { date: _, connection: __, ...headers } = direct.headers
    t.equal(reply.status, direct.statusCode, `${method} ${path}`)
    t.match(reply.headers, headers)
    t.equal(reply.body.toString(), direct.body)
  }
})

t.test('the origin sees the address of the client behind its worker', async (t) => {
  const apiFrom = new BlockList()
  apiFrom.addAddress('192.0.2.7')
  const { worker } = await serveLocally(t, { apiFrom })
  const refused = await signedCall(worker, 'POST', '/api/streams', {})
  t.match([refused.status, json(refused).code], [403, 'ADDRESS_FORBIDDEN'])
  t.match(json(refused).error, '127.0.0.1', 'the peer of the worker')
  const forged = await signedCall(
    worker,
    'POST',
    '/api/streams',
    {},
    { 'x-forwarded-for': '192.0.2.7' },
  )
  t.equal(forged.status, 403, 'no proxy is trusted')
})

t.test('a worker passes on the events of the dashboard as they come', async (t) => {
  const { worker } = await serveLocally(t, dashboardParts())
  const login = await logIn(worker)
  t.equal(login.status, 200)
  const cookie = String(login.headers['set-cookie']).split(';', 1)[0]!
  const asked = request({
    host: '127.0.0.1',
    port: worker.port,
    path: '/admin/events',
    headers: { cookie },
  })
  const [events] = (await once(asked.end(), 'response')) as [IncomingMessage]
  t.equal(events.headers['content-type'], 'text/event-stream; charset=utf-8')
  let text = ''
  events.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await until('two snapshots', () => text.split('\ndata:').length > 2)
  asked.destroy()
})

t.test('a worker whose origin is away answers 503', async (t) => {
  const { app, worker } = await serveLocally(t)
  await app.close()
  for (const path of ['/api/openapi.json', '/health/ready', '/video/demo/playlist.m3u8']) {
    const reply = await fetch(worker.url + path)
    const { code } = (await reply.json()) as { code: string }
    t.match([reply.status, code], [503, 'ORIGIN_UNREACHABLE'], path)
  }
})

t.test(
  'an edge of another machine passes on player pages alone, and has a health of its own',
  async (t) => {
    const origin = await startApp(t)
    const edge = await startEdge(t, origin.url)
    t.equal((await call(edge, 'GET', '/watch/demo')).status, 200)
    t.equal((await fetch(`${edge.url}/api/streams`, { method: 'POST' })).status, 404)
    t.equal((await call(edge, 'GET', '/admin/')).status, 404)
    t.equal((await call(edge, 'GET', '/health/ready')).status, 200)
    await origin.close()
    await call(edge, 'GET', '/video/demo/playlist.m3u8')
    const unready = await call(edge, 'GET', '/health/ready')
    t.match([unready.status, json(unready)], [503, { reasons: ['origin-away'] }])
    t.equal((await call(edge, 'GET', '/health/live')).status, 200)
  },
)

t.test(
  'an edge that signs its calls passes on the API, for the address of the client',
  async (t) => {
    const service = new MemoryService()
    const lines: string[] = []
    const auditLogger = pino({}, { write: (line: string) => void lines.push(line) })
    const serveFrom = (address: string) => {
      const apiFrom = new BlockList()
      apiFrom.addAddress(address)
      return startApp(t, service, {}, undefined, { apiFrom, nodeCalls, auditLogger })
    }
    // The client is on this machine, like the edge: without the signature both would be refused, or neither.
    const [open, closed] = [await serveFrom('127.0.0.1'), await serveFrom('192.0.2.7')]
    const start = async (origin: { readonly url: string }, options: EdgeAppOptions = {}) =>
      signedCall(await startEdge(t, origin.url, options), 'POST', '/api/start-stream', {
        stream_id: 'demo',
      })
    t.equal((await start(open, { nodeCalls })).status, 200)
    t.match(JSON.parse(lines[0]!), { audit: 'start-stream', client: '127.0.0.1', result: 'ok' })
    const refused = await start(closed, { nodeCalls })
    t.match([refused.status, json(refused).code], [403, 'ADDRESS_FORBIDDEN'])
    const unsigned = await startEdge(t, open.url)
    const { status } = await fetch(`${unsigned.url}/api/start-stream`, { method: 'POST' })
    t.equal(status, 404, 'without CLUSTER_SECRET')
    const others = new NodeCalls(() => ['o'.repeat(32)], systemClock)
    const mistaken = await start(open, { nodeCalls: others })
    t.match([mistaken.status, json(mistaken).code], [503, 'ORIGIN_UNREACHABLE'])
  },
)

t.test('an edge behind a trusted proxy signs the address that the proxy names', async (t) => {
  const apiFrom = new BlockList()
  apiFrom.addAddress('192.0.2.7')
  const origin = await startApp(t, undefined, {}, undefined, { apiFrom, nodeCalls })
  const trustProxy = new BlockList()
  trustProxy.addAddress('127.0.0.1')
  const edge = await startEdge(t, origin.url, { nodeCalls, trustProxy })
  const statusFrom = async (client: string) => {
    const headers = { 'x-forwarded-for': client }
    return (await call(edge, 'GET', '/api/openapi.json', { headers })).status
  }
  t.equal(await statusFrom('192.0.2.7'), 200)
  t.equal(await statusFrom('192.0.2.8'), 403)
})

t.test('the cookie of the dashboard is Secure where the edge is reached over HTTPS', async (t) => {
  const parts = { ...dashboardParts(), nodeCalls }
  const node = await startApp(t, undefined, {}, undefined, parts)
  const { worker } = await serveLocally(t, parts, { nodeCalls })
  const trustProxy = new BlockList()
  trustProxy.addAddress('127.0.0.1')
  const headers = { 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': 'https' }
  for (const origin of [node, worker]) {
    const login = async (options: EdgeAppOptions) => {
      const edge = await startEdge(t, origin.url, { nodeCalls, ...options })
      return String((await logIn(edge, headers)).headers['set-cookie'])
    }
    t.match(await login({ trustProxy }), /^millrace_admin=.*; Secure$/)
    t.match(await login({}), /^millrace_admin=.*; SameSite=Strict$/, 'a client that claims it')
  }
  const direct = String((await logIn(node, headers)).headers['set-cookie'])
  t.match(direct, /^millrace_admin=.*; SameSite=Strict$/, 'no node has signed it')
})

t.test('an edge passes on the API to the ingest node that answers', async (t) => {
  const gone = await startApp(t, undefined, {}, undefined, { nodeCalls })
  const [first, second] = [
    await startApp(t, undefined, {}, undefined, { nodeCalls }),
    await startApp(t, undefined, {}, undefined, { nodeCalls }),
  ]
  await gone.close()
  let urls = [gone.url, first.url, second.url]
  let isAway = false
  const listIngestNodes = async () => {
    if (isAway) throw new Error('the registry is away')
    return urls
  }
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => 0 }
  const edge = await startEdge(t, gone.url, { nodeCalls, listIngestNodes, clock })
  const start = async (streamId: string) =>
    (await signedCall(edge, 'POST', '/api/start-stream', { stream_id: streamId })).status
  t.equal(await start('a'), 200)
  urls = [second.url, first.url]
  nowUs += 1e6
  t.equal(await start('b'), 200, 'the last one is preferred')
  isAway = true
  nowUs += 1e6
  t.equal(await start('c'), 200, 'also while the registry is away')
  t.match(first.service.started, [{ streamId: 'a' }, { streamId: 'b' }, { streamId: 'c' }])
  isAway = false
  await first.close()
  t.equal(await start('d'), 200)
  t.match(second.service.started, [{ streamId: 'd' }])
  urls = []
  nowUs += 1e6
  t.equal(await start('e'), 503)
})

t.test('an edge does without an ingest node that takes requests and does not answer', async (t) => {
  for (const isMute of [true, false]) {
    const halfDead = createServer((_request, reply) => {
      if (isMute) return
      reply.writeHead(200, { 'content-length': 100 })
      reply.write('{')
    })
    await once(halfDead.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => halfDead.close().closeAllConnections())
    const url = `http://127.0.0.1:${(halfDead.address() as AddressInfo).port}`
    const healthy = await startApp(t, undefined, {}, undefined, { nodeCalls })
    const edge = await startEdge(t, url, {
      nodeCalls,
      listIngestNodes: async () => [url, healthy.url],
    })
    const first = await call(edge, 'GET', '/api/openapi.json')
    t.equal(first.status, isMute ? 200 : 503, 'a reply that has begun is not repeated')
    // Of what another node may have done, nothing is repeated; it goes to the other node at once.
    const started = await signedCall(edge, 'POST', '/api/start-stream', { stream_id: 'demo' })
    t.equal(started.status, 200)
  }
})

/** Passes requests on to nodes, of which each sends an event, or as many bytes, every 20 ms without end. */
async function relayTo(t: Test, types: readonly string[]) {
  const asked: string[] = []
  const written: Record<string, number> = {}
  const urls = await Promise.all(
    types.map(async (type) => {
      const server = createServer(async (_request, reply) => {
        asked.push(type)
        reply.writeHead(200, { 'content-type': type })
        // Without a pause, the reply would end at the limit of its size.
        for (; !reply.destroyed; await sleep(20)) {
          reply.write('data: x\n\n')
          written[type] = (written[type] ?? 0) + 1
        }
      })
      await once(server.listen(0, '127.0.0.1'), 'listening')
      t.teardown(() => server.close().closeAllConnections())
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    }),
  )
  const client = new NodeClient()
  const nodes = new IngestNodes({ client, list: async () => urls })
  const app = Fastify()
  /** Exchanges whose time is running. */
  const limited = new Set<() => void>()
  const send = createRelay(app, (fail) => {
    limited.add(fail)
    return () => limited.delete(fail)
  })
  app.all('/*', (asking, reply) => send(asking, reply, (passed) => nodes.pass(passed)))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await app.close()
    await client.close()
  })
  return { asked, written, limited, read: () => fetch(url) }
}

t.test('a node that trickles a reply is given up, and another one is asked next', async (t) => {
  const types = ['text/plain', 'text/html']
  const { asked, written, limited, read } = await relayTo(t, types)
  for (const type of types) {
    const reply = read()
    await until('a reply that trickles', () => (written[type] ?? 0) > 3)
    for (const fail of limited) fail()
    t.match(await (await reply).json(), { code: 'ORIGIN_UNREACHABLE' })
  }
  t.strictSame(asked, types)
})

t.test('a node that is silent for 30 s is given up', async (t) => {
  const { setTimeout: startTimer } = globalThis
  const value = (call: () => void, ms: number) => startTimer(call, ms === 30_000 ? 0 : ms)
  t.intercept(globalThis, 'setTimeout', { value })
  const app = Fastify()
  const send = createRelay(app)
  app.all('/*', (asking, reply) =>
    send(asking, reply, async ({ signal }) => {
      await once(signal, 'abort')
      throw signal.reason
    }),
  )
  t.match((await app.inject('/')).json(), { code: 'ORIGIN_UNREACHABLE' })
})

t.test('events go on for longer than any other reply', async (t) => {
  const { limited, read } = await relayTo(t, ['text/event-stream'])
  const { body } = await read()
  let events = 0
  for await (const chunk of body!) {
    events += Buffer.from(chunk).toString().split('\n\n').length - 1
    t.equal(limited.size, 0, 'no time limit')
    if (events > 20) break
  }
  t.ok(events > 20)
})

t.test(
  'a signed call plays a protected stream for viewers whose token the edge knows',
  async (t) => {
    const live = new LiveStore()
    for (let part = 0; part < 3; part++) live.addPart()
    live.endSegment()
    const service = new MemoryService()
    service.stored.set('secret', live)
    // Another secret than that of the edge: the signature counts, not the token.
    const playbackTokens = new PlaybackTokens(() => ['q'.repeat(32)])
    const origin = await startApp(t, service, {}, undefined, { nodeCalls, playbackTokens })
    const edge = await startEdge(t, origin.url, { nodeCalls, playbackSecret: PLAYBACK_SECRET })
    const expiresAt = new Date(Date.now() + 60_000)
    const token = signPlaybackToken({ streamId: 'secret', secret: PLAYBACK_SECRET, expiresAt })
    for (const file of ['playlist.m3u8', 'a-p0.m4s']) {
      t.equal((await call(edge, 'GET', `/t/${token}/video/secret/${file}`)).status, 200)
      for (const prefix of ['', '/t/-', '/t/x']) {
        t.equal((await call(edge, 'GET', `${prefix}/video/secret/${file}`)).status, 403, prefix)
      }
    }
  },
)

t.test('a worker passes on calls of other nodes for files, as they were signed', async (t) => {
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  const fenceOf = (streamId: string) => (streamId === 'demo' ? 7 : undefined)
  const { service, app, worker } = await serveLocally(t, { nodeCalls, fenceOf }, { nodeCalls })
  service.stored.set('demo', live)
  const ask = (path: string) => {
    const signature = nodeCalls.sign({ method: 'GET', path })
    return fetch(worker.url + path, { headers: { 'millrace-call': signature } })
  }
  let asked = 0
  app.server.on('request', () => asked++)
  const headers = { 'millrace-call': 'x' }
  for (const path of ['/video/demo/a.ts', '/api/openapi.json', '/watch/demo']) {
    t.equal((await fetch(worker.url + path, { headers })).status, 403, path)
  }
  t.equal(asked, 0, 'a call that is not valid costs the ingest process nothing')
  const owned = await ask('/video/demo/playlist.m3u8')
  t.strictSame([owned.status, owned.headers.get('millrace-fence')], [200, '7'])
  t.equal((await ask('/video/other/playlist.m3u8')).status, 421)
  const viewer = await fetch(`${worker.url}/video/demo/playlist.m3u8`)
  t.strictSame([viewer.status, viewer.headers.get('millrace-fence')], [200, null])
})

t.test('an edge passes on no path that another server could resolve elsewhere', async (t) => {
  const origin = await startApp(t)
  const edge = await startEdge(t, origin.url)
  for (const path of [
    '/watch/../metrics',
    '/watch/%2e%2e/metrics',
    '/watch/..\\metrics',
    '/watch/..%2fmetrics',
    '/watch/.%2E%5cmetrics',
    '/watch/..',
  ]) {
    const text = await speak(edge, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    t.match(text, /^HTTP\/1.1 404 [^]*ROUTE_NOT_FOUND/, path)
  }
  t.strictSame(origin.log, [])
  const absolute = `GET http://a/watch/demo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
  t.match(await speak(edge, absolute), /^HTTP\/1.1 (200|404)/)
})

t.test(
  'an edge verifies playback tokens, and asks its origin which streams are public',
  async (t) => {
    const live = new LiveStore()
    for (let part = 0; part < 3; part++) live.addPart()
    live.endSegment()
    const playbackTokens = new PlaybackTokens(() => [PLAYBACK_SECRET])
    const { service, worker } = await serveLocally(
      t,
      { playbackTokens },
      { playbackSecret: PLAYBACK_SECRET },
    )
    service.stored.set('secret', live)
    service.stored.set(
      'public',
      Object.assign(new LiveStore(), { policy: { playbackToken: false } }),
    )
    const publicLive = service.stored.get('public') as LiveStore
    for (let part = 0; part < 3; part++) publicLive.addPart()
    publicLive.endSegment()
    const expiresAt = new Date(Date.now() + 60_000)
    const token = signPlaybackToken({ streamId: 'secret', secret: PLAYBACK_SECRET, expiresAt })
    const read = (path: string) => call(worker, 'GET', path)
    for (const file of ['playlist.m3u8', 'a-p0.m4s']) {
      const played = await read(`/t/${token}/video/secret/${file}`)
      t.equal(played.status, 200)
      t.match(played.headers['cache-control'], /^public, max-age=\d+/)
      const refused = await read(`/video/secret/${file}`)
      t.match([refused.status, json(refused).code], [403, 'PLAYBACK_TOKEN_MISSING'])
      t.equal(refused.headers['cache-control'], 'no-store')
      t.equal((await read(`/video/public/${file}`)).status, 200)
    }
    t.equal((await read(`/t/${token}/video/public/playlist.m3u8`)).status, 403)
    t.equal((await read('/t/1.x/video/secret/playlist.m3u8')).status, 403)
  },
)
