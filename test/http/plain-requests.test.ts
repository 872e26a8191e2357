/**
 * Requests that are answered before Fastify's router: their replies are those of the router, to the byte.
 */
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { playback, PlaybackTokens } from '../../src/http/playback.ts'
import { LiveStore } from './live-store.ts'
import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import { call, MemoryService, speak, startApp, type TestApp } from './memory-service.ts'

function createService(): MemoryService {
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart(100_000)
  const chunks = [Buffer.alloc(100_000, 1), Buffer.alloc(100_000, 2)]
  const segment = { chunks, version: 'a-7', targetDurationSec: 2 }
  live.files.put('a-7.ts', createStreamFile('segment', segment), 0)
  live.endSegment()
  const service = new MemoryService()
  service.stored.set('demo', live)
  return service
}

/** Exact bytes of a reply, but for the value of Date. */
async function exactReply(
  t: Test,
  app: TestApp,
  path: string,
  { header = '', status = 200 } = {},
): Promise<string> {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: x', header, 'Accept-Encoding: gzip'].filter(Boolean)
  const last = 'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const text = await speak(app, `${lines.join('\r\n')}\r\n\r\n${last}`)
  t.ok(text.startsWith(`HTTP/1.1 ${status} `), path)
  return text.slice(0, text.indexOf('HTTP/1.1', 10)).replace(/^Date: .*$/m, 'Date:')
}

t.test('a plain request gets the reply of the router, to the byte', async (t) => {
  const app = await startApp(t, createService())
  for (const name of ['playlist.m3u8', 'a-7.ts', 'a-p0.m4s']) {
    const path = `/video/demo/${name}`
    const plain = await exactReply(t, app, path)
    t.ok(plain.length > 500)
    t.equal(plain, await exactReply(t, app, path, { header: 'Prefer: handling=strict' }), name)
  }
})

t.test('a request without a file gets the refusal of the router, to the byte', async (t) => {
  const secret = 's'.repeat(32)
  const tokens = new PlaybackTokens(() => [secret])
  for (const [playbackTokens, path, status] of [
    [undefined, '/video/demo/none.ts', 404],
    [undefined, '/video/none/playlist.m3u8', 404],
    [undefined, '/video/demo/playlist.m3u8?_HLS_msn=99', 400],
    [tokens, '/video/demo/none.ts', 403],
    [tokens, '/video/none/playlist.m3u8', 403],
  ] as const) {
    const app = await startApp(t, createService(), {}, undefined, { playbackTokens })
    const plain = await exactReply(t, app, path, { status })
    const header = 'Prefer: handling=strict'
    t.equal(plain, await exactReply(t, app, path, { header, status }), path)
  }
})

/** Starts an application for clients that keep their connections; both end with the test. */
async function listen(t: Test, app: FastifyInstance) {
  const agent = new Agent({ keepAlive: true })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    agent.destroy()
    await app.close()
  })
  return { port: (app.server.address() as AddressInfo).port, agent }
}

t.test('hooks of an application see every request, unless it says otherwise', async (t) => {
  for (const beforeRouter of [undefined, false, true]) {
    const app = Fastify()
    const seen: string[] = []
    app.addHook('onRequest', async ({ url }) => void seen.push(url))
    const own = beforeRouter === undefined ? {} : { beforeRouter }
    await app.register(playback, { prefix: '/live', source: createService(), ...own })
    const target = await listen(t, app)
    const paths = ['/live/demo/playlist.m3u8', '/live/demo/a-7.ts', '/live/demo/none.ts']
    const statuses = []
    for (const path of paths)
      statuses.push((await call(target, 'GET', path, { agent: target.agent })).status)
    t.strictSame(statuses, [200, 200, 404])
    t.strictSame(seen, beforeRouter === true ? [] : paths)
  }
})

t.test('what asks for more than a file goes to the router', async (t) => {
  const app = Fastify()
  const seen: string[] = []
  app.addHook('onRequest', async ({ method, url }) => void seen.push(`${method} ${url}`))
  await app.register(playback, { prefix: '/live', source: createService(), beforeRouter: true })
  const target = await listen(t, app)
  const segment = '/live/demo/a-7.ts'
  const special = [
    ['HEAD', segment, {}],
    ['GET', '/live/demo/playlist.m3u8?_HLS_part=1', {}],
    ['GET', '/live/demo/.hidden?a', {}],
    ['GET', segment, { range: 'bytes=0-9' }],
    ['GET', segment, { 'if-none-match': '"a"' }],
    ['GET', segment, { connection: 'close' }],
    ['GET', '/live/demo/%61-7.ts', {}],
    ['GET', '/live/demo/.hidden', {}],
    ['GET', '/live//a-7.ts', {}],
    ['GET', '/liveness/demo/a-7.ts', {}],
  ] as const
  for (const [method, path, headers] of special) {
    await call(target, method, path, { headers, agent: target.agent })
  }
  t.strictSame(
    seen,
    special.map(([method, path]) => `${method} ${path}`),
  )
})

t.test('a source that fails gets the failure of the router', async (t) => {
  const service = createService()
  const app = await startApp(t, service)
  service.findStream = () => {
    throw new Error('broken')
  }
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const reply = await call(app, 'GET', '/video/demo/a-7.ts', { agent })
  t.equal(reply.status, 500)
  t.equal(app.log.length, 1)
})
