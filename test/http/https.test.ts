/**
 * The API, playback and the player page over HTTPS, with HTTP/2 and HTTP/1.1.
 */
import { once } from 'node:events'
import { request } from 'node:http'
import { Agent, get } from 'node:https'
import { connect as connectTls } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { sign } from '../../src/auth/signature.ts'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import type { StreamFile } from '../../src/playback/playback-source.ts'
import { callStream, openSession } from './http2-client.ts'
import {
  call,
  json,
  MemoryService,
  MemoryStream,
  SECRET,
  signedCall,
  speak,
  startHttpsApp,
} from './memory-service.ts'

const PLAYLIST = Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:5\n')
const SEGMENT = Buffer.from(Uint8Array.from({ length: 188 * 5000 }, (_, index) => index % 251))
const CHUNKS = [0, 188, 100_016, 100_204].map((start, index, starts) =>
  SEGMENT.subarray(start, starts[index + 1]),
)

function playing(): MemoryService {
  const service = new MemoryService()
  const stream = new MemoryStream()
  stream.status = 'STREAMING'
  const add = (name: string, file: StreamFile) => stream.files.set(name, file)
  const media = { version: 'a1-7', targetDurationSec: 5 }
  add('playlist.m3u8', createStreamFile('media-playlist', { ...media, chunks: [PLAYLIST] }))
  add('a1-7.ts', createStreamFile('segment', { ...media, chunks: CHUNKS }))
  service.streams.set('demo', stream)
  return service
}

t.test('sends over HTTP/2 what it sends over HTTP/1.1', async (t) => {
  const app = await startHttpsApp(t, playing())
  t.match(app.url, /^https:/)
  const session = await openSession(t, app)
  t.equal(session.alpnProtocol, 'h2')
  const requests: [method: string, path: string, headers?: Record<string, string>][] = [
    ['GET', '/video/demo/playlist.m3u8'],
    ['HEAD', '/video/demo/playlist.m3u8'],
    ['GET', '/video/demo/playlist.m3u8', { 'accept-encoding': 'gzip' }],
    ['GET', '/video/demo/playlist.m3u8', { 'if-none-match': '"a1-7"' }],
    ['GET', '/video/demo/a1-7.ts'],
    ['HEAD', '/video/demo/a1-7.ts'],
    ['GET', '/video/demo/a1-7.ts', { range: 'bytes=100-100300' }],
    ['GET', '/video/demo/a1-7.ts', { range: 'bytes=99999999-' }],
    ['GET', '/video/demo/gone.ts'],
    ['GET', '/video/none/playlist.m3u8'],
    ['OPTIONS', '/video/demo/a1-7.ts'],
    ['POST', '/video/demo/a1-7.ts'],
    ['GET', '/nowhere'],
    ['GET', '/watch/demo'],
    ['GET', '/watch/assets/hls.min.js'],
    ['GET', '/api/status'],
  ]
  for (const [method, path, headers = {}] of requests) {
    const title = `${method} ${path} ${JSON.stringify(headers)}`
    const first = await call(app, method, path, { headers })
    const second = await callStream(session, method, path, { headers })
    t.equal(second.status, first.status, title)
    t.ok(second.body.equals(first.body), `${title}: ${second.body.length} bytes`)
    const { connection, 'keep-alive': keepAlive, date, ...common } = first.headers
    t.match(second.headers, common, title)
    t.notOk(second.headers['connection'] ?? second.headers['keep-alive'], title)
    void [connection, keepAlive, date]
  }
  t.strictSame(app.log, [])
})

t.test('answers many requests of one connection at once, each with its own bytes', async (t) => {
  const app = await startHttpsApp(t, playing())
  const session = await openSession(t, app)
  const replies = await Promise.all(
    Array.from({ length: 90 }, (_, index) =>
      index % 2 === 0
        ? callStream(session, 'GET', '/video/demo/a1-7.ts')
        : callStream(session, 'GET', '/video/demo/playlist.m3u8', {
            headers: { 'accept-encoding': 'gzip' },
          }),
    ),
  )
  for (const [index, { status, body }] of replies.entries()) {
    t.equal(status, 200)
    t.ok(index % 2 === 0 ? body.equals(SEGMENT) : gunzipSync(body).equals(PLAYLIST), `${index}`)
  }
})

t.test('verifies signed API requests over HTTP/2, with and without Content-Length', async (t) => {
  const app = await startHttpsApp(t)
  const session = await openSession(t, app)
  const body = JSON.stringify({ stream_id: 'studio' })
  const headers = {
    'content-type': 'application/json',
    'lt-signature': sign(Buffer.from(body), SECRET),
  }
  const started = await callStream(session, 'POST', '/api/start-stream', { headers, body })
  t.match(json(started), { success: true, data: { stream_id: 'studio' } })
  const length = { 'content-length': Buffer.byteLength(body) }
  const status = await callStream(session, 'GET', '/api/status', {
    headers: { ...headers, ...length },
    body,
  })
  t.match(json(status), { success: true, data: { status: 'READY' } })
  const forged = await callStream(session, 'POST', '/api/start-stream', { headers, body: '{}' })
  t.equal(forged.status, 403)
  t.match(json(forged), { error: 'Invalid Request' })
  const unsigned = await callStream(session, 'POST', '/api/start-stream', { body })
  t.match(json(unsigned), { error: 'Missing Header for Verification!' })
  const large = await callStream(session, 'POST', '/api/start-stream', {
    headers,
    body: 'x'.repeat(70_000),
  }).catch(() => undefined)
  t.equal(large?.status ?? 413, 413)
  const first = await signedCall(app, 'POST', '/api/stop-stream', { stream_id: 'studio' })
  t.equal(first.status, 200, 'over HTTP/1.1')
})

t.test('keeps an HTTP/1.1 connection over TLS open for further requests', async (t) => {
  const app = await startHttpsApp(t, playing())
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  t.teardown(() => agent.destroy())
  const ports = new Set<number | undefined>()
  for (let i = 0; i < 3; i++) {
    const outgoing = get(`${app.url}/video/demo/a1-7.ts`, { agent })
    const [incoming] = (await once(outgoing, 'response')) as [NodeJS.ReadableStream]
    const chunks = await (incoming as unknown as { toArray(): Promise<Buffer[]> }).toArray()
    t.ok(Buffer.concat(chunks).equals(SEGMENT))
    ports.add(outgoing.socket?.localPort)
  }
  t.equal(ports.size, 1)
})

t.test('answers pipelined HTTP/1.1 requests over TLS in order', async (t) => {
  const app = await startHttpsApp(t, playing())
  const socket = connectTls({ port: app.port, host: '127.0.0.1', rejectUnauthorized: false })
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
  socket.write(
    get('/video/demo/playlist.m3u8').repeat(50) +
      get('/video/demo/gone.ts', 'Connection: close\r\n'),
  )
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  await once(socket, 'close')
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  t.strictSame(statuses, [...Array.from({ length: 50 }, () => '200'), '404'])
})

t.test('answers plain HTTP with 400 and advice', async (t) => {
  const app = await startHttpsApp(t)
  const answer = await speak(app, 'GET /video/demo/playlist.m3u8 HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/)
  t.match(answer, /"code":"HTTPS_REQUIRED"\}$/)
  t.strictSame(app.log, [])
})

t.test('closes a connection whose TLS handshake fails', async (t) => {
  const app = await startHttpsApp(t)
  t.match((await speak(app, '\x16\x03\x01\x00\x05hello')).length < 20, true)
  const old = connectTls({
    port: app.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    minVersion: 'TLSv1.1',
    maxVersion: 'TLSv1.1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  })
  await t.rejects(once(old, 'secureConnect'), 'TLS 1.1')
  const other = connectTls({
    port: app.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['spdy/1'],
  })
  await t.rejects(once(other, 'secureConnect'), 'no protocol in common (RFC 7301 section 3.2)')
  const { connections } = app.guard.report()
  t.ok(connections <= 1, `${connections} left`)
  t.strictSame(app.log, [])
})

t.test('closes with HTTP/2 and HTTP/1.1 clients connected', async (t) => {
  const app = await startHttpsApp(t, playing())
  const session = await openSession(t, app)
  await callStream(session, 'GET', '/video/demo/playlist.m3u8')
  const idle = request({ port: app.port, host: '127.0.0.1' })
  idle.on('error', () => undefined)
  idle.flushHeaders()
  const silent = connectTls({ port: app.port, host: '127.0.0.1', rejectUnauthorized: false })
  silent.on('error', () => undefined)
  await once(silent, 'secureConnect')
  const closed = once(session, 'close')
  await app.close()
  await closed
})
