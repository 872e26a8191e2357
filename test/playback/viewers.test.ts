/**
 * Viewers counted over real HTTP, and replies that are the same whether or not viewers can be told apart.
 */
import { Agent as HttpAgent, type OutgoingHttpHeaders } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { playback } from '../../src/playback/fastify-plugin.ts'
import { machineClock } from '../../src/timing/clock.ts'
import type {
  PlayableStream,
  PlaybackSource,
  ViewerIdentity,
} from '../../src/playback/playback-source.ts'
import { callStream, openSession } from '../http/http2-client.ts'
import { until } from '../support/until.ts'
import { LiveStore } from './live-store.ts'
import { call, MemoryService, startApp, startHttpsApp, type Reply } from '../http/memory-service.ts'

class CountingService extends MemoryService {
  readonly #viewers: ViewerIdentity[] = []

  countViewer(stream: PlayableStream, viewer: ViewerIdentity): void {
    if (stream !== this.stored.get('demo')) throw new Error('another stream')
    this.#viewers.push(viewer)
  }

  /** Viewers since the last call. */
  take(): ViewerIdentity[] {
    return this.#viewers.splice(0)
  }
}

/** A service with a live stream of segments 6 and 7, and two parts of segment 8. */
function createService(): CountingService {
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  for (let part = 0; part < 2; part++) live.addPart()
  const service = new CountingService()
  service.stored.set('demo', live)
  return service
}

async function serve(t: Test) {
  const service = createService()
  const app = await startApp(t, service)
  const ask = (path: string, headers: OutgoingHttpHeaders = {}) =>
    call(app, 'GET', path, { headers })
  return { app, service, ask }
}

const PLAYLIST = '/video/demo/playlist.m3u8'

/** The second that reports go by, see `viewer-reports.ts`. */
const nowSec = () => Math.floor(machineClock.nowUs() / 1e6)

/** Client Data of CTA-5004 as a query argument. */
const cmcd = (data: string) => `CMCD=${encodeURIComponent(data)}`

t.test('takes the session id of a player from header or query (CTA-5004)', async (t) => {
  const { service, ask } = await serve(t)
  for (const [data, sid] of [
    ['sid="6e2fb550-c457-11e9-bb97-0800200c9a66"', '6e2fb550-c457-11e9-bb97-0800200c9a66'],
    ['cid="a,b",pr=1.08,sf=h,sid="one",st=l', 'one'],
    ['bl=21300,bs,cid="sid=two",sid="one"', 'one'],
    ['sf=h, sid="one", st=l', 'one'],
    [`sid="${'x'.repeat(64)}"`, 'x'.repeat(64)],
  ] as const) {
    await ask(PLAYLIST, { 'cmcd-session': data })
    await ask(`${PLAYLIST}?${cmcd(data)}`)
    t.strictSame(service.take(), [[sid], [sid]], data)
  }
})

t.test('takes address and User-Agent without a valid session id', async (t) => {
  const { service, ask } = await serve(t)
  const viewer = ['127.0.0.1', 'VLC/3.0']
  const userAgent = { 'user-agent': 'VLC/3.0' }
  for (const data of [
    ...['', 'sf=h', 'sid', 'sid=', 'sid=""', 'sid=one', 'sid="one', 'xsid="one"', 'cid=",sid="'],
    ...[`sid="${'x'.repeat(65)}"`, 'sid="a\\"b"', '\u00ff'],
  ]) {
    await ask(PLAYLIST, { 'cmcd-session': data, ...userAgent })
    await ask(`${PLAYLIST}?${cmcd(data)}`, userAgent)
    t.strictSame(service.take(), [viewer, viewer], data)
  }
  for (const query of ['CMCD', 'CMCD=%', 'CMCD=%ff', `${cmcd('sid="a"')}&${cmcd('sid="b"')}`]) {
    t.equal((await ask(`${PLAYLIST}?${query}`, userAgent)).status, 200)
    t.strictSame(service.take(), [viewer], query)
  }
  await ask(PLAYLIST)
  await ask(PLAYLIST, { 'user-agent': 'x'.repeat(4000) })
  t.strictSame(service.take(), [
    ['127.0.0.1', ''],
    ['127.0.0.1', 'x'.repeat(256)],
  ])
})

t.test('counts who gets a file or still has it, over HTTP/2 as well', async (t) => {
  const { service, ask } = await serve(t)
  const { etag } = (await ask(PLAYLIST)).headers
  t.equal(service.take().length, 1)
  for (const [path, headers, status, viewers] of [
    [PLAYLIST, { 'if-none-match': etag }, 304, 1],
    ['/video/demo/master.m3u8', {}, 200, 0],
    ['/video/demo/ts.m3u8', {}, 200, 0],
    ['/video/demo/a-p1.m4s', {}, 200, 1],
    ['/video/demo/a-p3.m4s', { range: 'bytes=0-9' }, 206, 1],
    [`${PLAYLIST}?_HLS_msn=8&_HLS_part=1`, {}, 200, 1],
    [`${PLAYLIST}?_HLS_msn=x`, {}, 400, 0],
    ['/video/demo/other.ts', {}, 404, 0],
    ['/video/other/playlist.m3u8', {}, 404, 0],
    ['/watch/demo', {}, 200, 0],
    ['/watch/demo/state', {}, 200, 0],
  ] as const) {
    t.equal((await ask(path, headers as OutgoingHttpHeaders)).status, status, path)
    t.equal(service.take().length, viewers, path)
  }

  const secure = createService()
  const session = await openSession(t, await startHttpsApp(t, secure))
  await callStream(session, 'GET', PLAYLIST, { headers: { 'cmcd-session': 'sid="one"' } })
  const startSec = nowSec()
  for (let i = 0; i < 5; i++) {
    await callStream(session, 'GET', PLAYLIST, { headers: { 'user-agent': 'curl' } })
  }
  const [first, other, ...same] = secure.take()
  t.strictSame([first, other], [['one'], ['127.0.0.1', 'curl']])
  t.ok(same.length <= nowSec() - startSec, 'once a second')
})

t.test('reports a viewer of a connection once a second, and each other one', async (t) => {
  for (const [start, agent] of [
    [startApp, new HttpAgent({ keepAlive: true, maxSockets: 1 })],
    [startHttpsApp, new HttpsAgent({ keepAlive: true, maxSockets: 1 })],
  ] as const) {
    t.teardown(() => agent.destroy())
    const service = createService()
    const app = await start(t, service)
    const ask = (headers: OutgoingHttpHeaders, query = '') =>
      call(app, 'GET', `${PLAYLIST}${query}`, { headers, agent })
    const desktop = { 'user-agent': 'Desktop' }
    const startSec = nowSec()
    for (let i = 0; i < 10; i++) await ask(desktop)
    t.ok(service.take().length <= 1 + nowSec() - startSec)
    for (const headers of [
      { 'user-agent': 'Phone' },
      { 'user-agent': 'Phone', 'cmcd-session': 'sid="one"' },
      { 'user-agent': 'Phone', 'cmcd-session': 'sid="two"' },
      { 'user-agent': 'Phone', 'x-forwarded-for': '192.0.2.1' },
      desktop,
    ]) {
      await ask(headers)
      t.equal(service.take().length, 1, JSON.stringify(headers))
    }
    for (let i = 0; i < 2; i++) await ask({ 'user-agent': 'x'.repeat(300) })
    t.equal(service.take().length, 2, 'long headers are not remembered')
    for (const session of ['one', 'two']) await ask(desktop, `?${cmcd(`sid="${session}"`)}`)
    t.strictSame(service.take(), [['one'], ['two']])
    const again = await until('again, so that a viewer who stays counts', async () => {
      await ask(desktop)
      return service.take()[0]
    })
    t.strictSame(again, ['127.0.0.1', 'Desktop'])
  }
})

t.test('Client Data changes no reply on any route', async (t) => {
  const { service, ask } = await serve(t)
  const same = ({ status, headers, body }: Reply) => {
    const { date: _date, 'content-length': length, ...rest } = headers
    return { status, headers: rest, length, body: body.toString('latin1') }
  }
  const data = `bl=2100,nor="..%2Fplaylist.m3u8?_HLS_msn=9000",nrr="0-",sid="${'a'.repeat(36)}",st=l`
  for (const path of [
    PLAYLIST,
    ...['_HLS_msn=7', '_HLS_msn=8&_HLS_part=1', '_HLS_skip=YES', '_HLS_msn=x', '_HLS_part=1'].map(
      (directives) => `${PLAYLIST}?${directives}`,
    ),
    `${PLAYLIST}?_HLS_msn=9000`,
    '/video/demo/master.m3u8',
    '/video/demo/a-p1.m4s',
    '/video/demo/a-p3.m4s',
    '/video/demo/other.ts',
    '/video/other/playlist.m3u8',
    ...['/watch/demo', '/watch/assets/player.js', '/watch/other/state'],
    ...['/health/live', '/health/ready', '/api/openapi.json', '/other'],
  ]) {
    const [url, directives] = path.split('?')
    const plain = same(await ask(path))
    service.take()
    const session = { 'cmcd-session': data, 'cmcd-object': 'br=5000', 'cmcd-request': 'su' }
    t.strictSame(same(await ask(path, session)), plain, `${path}, in headers`)
    for (const argument of [cmcd(data), 'CMCD=%', 'CMCD']) {
      const before = `${url}?${argument}${directives === undefined ? '' : `&${directives}`}`
      const after = `${url}?${directives === undefined ? '' : `${directives}&`}${argument}`
      for (const queried of [before, after]) t.strictSame(same(await ask(queried)), plain, queried)
    }
  }
})

t.test('millrace/fastify serves with and without counting', async (t) => {
  const service = createService()
  const app = Fastify()
  t.teardown(() => app.close())
  const other: PlaybackSource = { findStream: (id) => service.findStream(id) }
  await app.register(playback, { prefix: '/counted', source: service })
  await app.register(playback, { prefix: '/other', source: other })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  for (const [prefix, viewers] of [
    ['counted', [['one']]],
    ['other', []],
  ] as const) {
    const url = `http://127.0.0.1:${port}/${prefix}/demo/playlist.m3u8`
    const reply = await fetch(url, { headers: { 'CMCD-Session': 'sid="one"' } })
    t.match(await reply.text(), /^#EXTM3U/)
    t.strictSame(service.take(), viewers)
  }
})
