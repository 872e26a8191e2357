/**
 * Requests that our server takes before its router: their responses are those of the plugin, to the byte.
 */
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { playback, PlaybackTokens } from '../../src/playback/fastify-plugin.ts'
import { LiveStore } from './live-store.ts'
import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import { call, MemoryService, speak, startApp } from '../http/memory-service.ts'

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
  app: { readonly port: number },
  path: string,
  { header = '', status = 200 } = {},
): Promise<string> {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: x', header, 'Accept-Encoding: gzip'].filter(Boolean)
  const last = 'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const text = await speak(app, `${lines.join('\r\n')}\r\n\r\n${last}`)
  t.ok(text.startsWith(`HTTP/1.1 ${status} `), path)
  return text.slice(0, text.indexOf('HTTP/1.1', 10)).replace(/^Date: .*$/m, 'Date:')
}

/** An application of someone else with the plugin, which differs from ours in nothing that viewers see. */
async function startPlugin(
  t: Test,
  tokens?: PlaybackTokens,
  onRequest = async (_url: string): Promise<void> => undefined,
) {
  const app = Fastify({ keepAliveTimeout: 60_000, routerOptions: { maxParamLength: 512 } })
  app.get('/health/live', async () => ({ status: 'live' }))
  app.addHook('onRequest', ({ url }) => onRequest(url))
  await app.register(playback, { prefix: '/video', source: createService(), tokens })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  return { port: (app.server.address() as AddressInfo).port }
}

t.test('our server and an application with the plugin send the same bytes', async (t) => {
  const own = await startApp(t, createService())
  const plugin = await startPlugin(t)
  for (const [name, header, status] of [
    ['playlist.m3u8', '', 200],
    ['playlist.m3u8?_HLS_msn=7&_HLS_part=0', '', 200],
    ['playlist.m3u8?_HLS_part=0', '', 400],
    ['a-7.ts', '', 200],
    ['%61-7.ts', '', 200],
    ['a-7.ts', 'Range: bytes=0-9', 206],
    ['a-7.ts', 'Range: bytes=1000000-', 416],
    ['a-7.ts', 'If-None-Match: "a-7"', 304],
    ['a-p0.m4s', '', 200],
  ] as const) {
    const path = `/video/demo/${name}`
    const response = await exactReply(t, own, path, { header, status })
    t.equal(response, await exactReply(t, plugin, path, { header, status }), `${path} ${header}`)
  }
})

t.test('our server and an application with the plugin send the same refusals', async (t) => {
  const secret = 's'.repeat(32)
  const tokens = new PlaybackTokens(() => [secret])
  for (const [playbackTokens, path, status] of [
    [undefined, '/video/demo/none.ts', 404],
    [undefined, '/video/demo/.hidden?a', 404],
    [undefined, '/video/none/playlist.m3u8', 404],
    [undefined, '/video/demo/playlist.m3u8?_HLS_msn=99', 400],
    [undefined, '/video/demo/.hidden', 404],
    [tokens, '/video/demo/none.ts', 403],
    [tokens, '/video/none/playlist.m3u8', 403],
    [tokens, '/video/demo', 403],
  ] as const) {
    const own = await startApp(t, createService(), {}, undefined, { playbackTokens })
    const plugin = await startPlugin(t, playbackTokens)
    const response = await exactReply(t, own, path, { status })
    t.equal(response, await exactReply(t, plugin, path, { status }), path)
  }
})

t.test('hooks of an application see every request', async (t) => {
  const seen: string[] = []
  const app = await startPlugin(t, undefined, async (url) => void seen.push(url))
  const paths = ['/video/demo/playlist.m3u8', '/video/demo/a-7.ts', '/video/demo/none.ts']
  const statuses = []
  for (const path of paths) statuses.push((await call(app, 'GET', path)).status)
  t.strictSame(statuses, [200, 200, 404])
  t.strictSame(seen, paths)
})

t.test('what is no request for a file goes to the router', async (t) => {
  const app = await startApp(t, createService())
  for (const [method, path, code] of [
    ['POST', '/video/demo/a-7.ts', 'ROUTE_NOT_FOUND'],
    ['GET', '/video/demo', 'ROUTE_NOT_FOUND'],
    ['GET', '/video/demo/', 'ROUTE_NOT_FOUND'],
    ['GET', '/video//a-7.ts', 'ROUTE_NOT_FOUND'],
    ['GET', '/video/demo/a-7.ts/', 'ROUTE_NOT_FOUND'],
    ['GET', '/videos/demo/a-7.ts', 'ROUTE_NOT_FOUND'],
    ['GET', '/t/token/video/demo/a-7.ts', 'ROUTE_NOT_FOUND'],
  ] as const) {
    t.match(
      await speak(app, `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
      code,
      path,
    )
  }
})

t.test('a path that cannot be decoded, or is too long, is malformed', async (t) => {
  const app = await startApp(t, createService())
  for (const name of ['%zz', '%ff', 'a'.repeat(513)]) {
    const response = await call(app, 'GET', `/video/demo/${name}`)
    t.match(response.body.toString(), 'REQUEST_MALFORMED', name)
    t.equal(response.headers['access-control-allow-origin'], '*', 'scripts can read it')
  }
})

t.test('a request target in absolute form is a path', async (t) => {
  const app = await startApp(t, createService())
  const target = 'http://example.org/video/demo/a-7.ts'
  const text = await speak(app, `HEAD ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  t.match(text, /^HTTP\/1\.1 200 /)
})

t.test('a source that fails gets 500 and a line in the log', async (t) => {
  const service = createService()
  const app = await startApp(t, service)
  service.findStream = () => {
    throw new Error('broken')
  }
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const reply = await call(app, 'GET', '/video/demo/a-7.ts', { agent })
  t.equal(reply.status, 500)
  t.match(reply.headers, { 'cache-control': 'no-store', 'access-control-allow-origin': '*' })
  t.equal(app.log.length, 1)
})
