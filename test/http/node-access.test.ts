/**
 * Calls of other nodes over real HTTP: what their signature opens, and what requests without one see.
 */
import { BlockList } from 'node:net'
import t, { type Test } from 'tap'
import { PlaybackTokens } from '../../src/auth/playback-token.ts'
import { sign } from '../../src/auth/signature.ts'
import { systemClock } from '../../src/timing/clock.ts'
import { NodeCalls } from '../../src/auth/node-calls.ts'
import type { AppOptions } from '../../src/service/app.ts'
import { LiveStore } from '../playback/live-store.ts'
import { MemoryService, SECRET, startApp } from './memory-service.ts'

const calls = new NodeCalls(() => ['c'.repeat(32)], systemClock)

interface Asked {
  readonly method?: string
  readonly body?: string
  readonly client?: string
  readonly headers?: Record<string, string>
}

async function serve(t: Test, options: Partial<AppOptions> = {}) {
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  const service = new MemoryService()
  service.stored.set('demo', live)
  const overrides = { nodeCalls: calls, ...options }
  const app = await startApp(t, service, {}, undefined, overrides)
  const ask = async (path: string, { headers = {}, method = 'GET', body }: Asked = {}) => {
    const reply = await fetch(app.url + path, { method, headers, ...(body && { body }) })
    const text = await reply.text()
    const code = text.startsWith('{"success":false') ? (JSON.parse(text) as object) : {}
    return { status: reply.status, fence: reply.headers.get('millrace-fence'), ...code }
  }
  /** Asks as another node. */
  const call = (path: string, { method = 'GET', client, body, headers }: Asked = {}) => {
    const bytes = body === undefined ? undefined : Buffer.from(body)
    const signed = { 'millrace-call': calls.sign({ method, path, client, body: bytes }) }
    return ask(path, { method, ...(body && { body }), headers: { ...signed, ...headers } })
  }
  return { live, service, ask, call }
}

const PLAYLIST = '/video/demo/playlist.m3u8'

t.test('opens a protected stream to a node that has verified the token itself', async (t) => {
  const playbackTokens = new PlaybackTokens(() => ['p'.repeat(32)])
  const { ask, call } = await serve(t, { playbackTokens })
  t.match(await call(`/t/-${PLAYLIST}`), { status: 200 })
  t.match(await call('/t/-/video/demo/a-p0.m4s'), { status: 200 })
  // A request of a viewer that the node passes on.
  const client = '192.0.2.7'
  t.match(await call(`/t/-${PLAYLIST}`, { client }), { status: 403 })
  t.match(await call('/t/-/watch/demo/state', { client }), { status: 403 })
  t.match(await call(PLAYLIST), { status: 403, code: 'PLAYBACK_TOKEN_MISSING' })
  t.match(await call(`/t/x${PLAYLIST}`), { status: 403, code: 'PLAYBACK_TOKEN_INVALID' })
  t.match(await ask(`/t/-${PLAYLIST}`), { status: 403, code: 'PLAYBACK_TOKEN_INVALID' })
})

t.test('tells nodes the fence of their stream, and refuses those of other nodes', async (t) => {
  const fences = new Map([['demo', 7]])
  const { ask, call } = await serve(t, { fenceOf: (streamId) => fences.get(streamId) })
  t.match(await call(PLAYLIST), { status: 200, fence: '7' })
  t.match(await call('/video/demo/a-p0.m4s'), { status: 200, fence: '7' })
  t.match(await call('/video/demo/none.ts'), { status: 404, fence: '7' })
  t.match(await call(PLAYLIST, { method: 'HEAD' }), { status: 200, fence: '7' })
  const known = { 'if-none-match': '*' }
  t.match(await call(PLAYLIST, { headers: known }), { status: 304, fence: '7' })
  t.match(await call('/video/other/playlist.m3u8'), {
    status: 421,
    code: 'NOT_OWNER',
    fence: null,
  })
  t.match(await ask(PLAYLIST), { status: 200, fence: null }, 'viewers see no fence')
  t.match(await ask('/video/other/playlist.m3u8'), { status: 404, code: 'STREAM_NOT_FOUND' })
})

t.test('has neither fence nor 421 unless the service supplies fences', async (t) => {
  const { call } = await serve(t)
  t.match(await call(PLAYLIST), { status: 200, fence: null })
  t.match(await call('/video/other/a.ts'), { status: 404, code: 'STREAM_NOT_FOUND' })
})

t.test('refuses a signature that is not valid, and every one without CLUSTER_SECRET', async (t) => {
  const { ask, call } = await serve(t)
  const signed = { 'millrace-call': calls.sign({ method: 'GET', path: PLAYLIST }) }
  t.match(await ask(PLAYLIST, { headers: signed }), { status: 200 })
  t.match(await ask(`${PLAYLIST}?x`, { headers: signed }), { code: 'NODE_CALL_INVALID' })
  t.match(await ask(PLAYLIST, { headers: { 'millrace-call': 'x' } }), { status: 403 })
  const { 'millrace-call': twice } = signed
  t.match(await call(PLAYLIST, { headers: { 'millrace-call': `${twice}, ${twice}` } }), {
    status: 403,
  })
  const without = await serve(t, { nodeCalls: undefined })
  t.match(await without.call(PLAYLIST), { status: 403, code: 'NODE_CALL_INVALID' })
  t.match(await without.ask(PLAYLIST), { status: 200 })
})

t.test('believes the address of the client that a node passes on', async (t) => {
  const apiFrom = new BlockList()
  apiFrom.addAddress('192.0.2.7')
  const { service, ask, call } = await serve(t, { apiFrom })
  const path = '/api/start-stream'
  const body = '{"stream_id":"new"}'
  const headers = {
    'content-type': 'application/json',
    'lt-signature': sign(Buffer.from(body), SECRET),
    'x-forwarded-for': '192.0.2.7',
  }
  const start = { method: 'POST', body, headers }
  t.match(await ask(path, start), { status: 403, code: 'ADDRESS_FORBIDDEN' })
  t.match(await call(path, start), { code: 'ADDRESS_FORBIDDEN' }, 'a call of the node itself')
  t.match(await call(path, { ...start, client: '192.0.2.8' }), { code: 'ADDRESS_FORBIDDEN' })
  t.match(await call(path, { ...start, client: '192.0.2.7' }), { status: 200 })
  t.match(service.started, [{ streamId: 'new' }])
})

t.test('counts the rate of the API by the client that a node passes on', async (t) => {
  const { call } = await serve(t, { apiRate: 1 })
  const from = async (client: string) => {
    const { status } = await call('/api/openapi.json', { client })
    return status
  }
  t.strictSame(
    [await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.2')],
    [200, 429, 200],
  )
})

t.test('refuses a body other than the one that the node has signed', async (t) => {
  const { service, ask } = await serve(t)
  const [path, method] = ['/api/start-stream', 'POST']
  const body = '{"stream_id":"new"}'
  for (const signed of ['{"stream_id":"old"}', '']) {
    const headers = {
      'content-type': 'application/json',
      'lt-signature': sign(Buffer.from(body), SECRET),
      'millrace-call': calls.sign({ method, path, body: Buffer.from(signed) }),
    }
    t.match(await ask(path, { method, body, headers }), { code: 'NODE_CALL_INVALID' })
  }
  t.strictSame(service.started, [])
})

t.test('counts no node as a viewer', async (t) => {
  const counted: unknown[] = []
  const service = new MemoryService()
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  service.stored.set('demo', live)
  const playback = {
    findStream: (streamId: string) => service.findStream(streamId),
    countViewer: (_stream: unknown, viewer: readonly string[]) => void counted.push(viewer),
  }
  const app = await startApp(t, service, {}, undefined, { nodeCalls: calls, playback })
  const signed = { 'millrace-call': calls.sign({ method: 'GET', path: PLAYLIST }) }
  t.equal((await fetch(app.url + PLAYLIST, { headers: signed })).status, 200)
  t.strictSame(counted, [])
  await fetch(app.url + PLAYLIST, { headers: { 'user-agent': 'player' } })
  t.strictSame(counted, [['127.0.0.1', 'player']])
})
