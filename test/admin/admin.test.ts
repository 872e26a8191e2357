/**
 * The dashboard's routes over real HTTP: who gets in, who does not, and what changes a stream.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { ServerOptions } from '../../src/index.ts'
import { systemClock } from '../../src/timing/clock.ts'
import type { Snapshot } from '../../src/web/dashboard/wire.ts'
import { writeCertificate } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { callStream, openSession } from '../http/http2-client.ts'
import { call, json, type Reply } from '../http/memory-service.ts'

const PASSWORD = 'correct horse battery staple'

const READING = [
  'events',
  ...['history', 'preview.ts', 'detail', 'qr-code'].map((name) => `streams/studio/${name}`),
].map((path) => `/admin/${path}`)
const CALLS = ['start-stream', 'stop-stream', 'kick', 'switch-source', 'studio/check']

function startAdmin(t: Test, options: Partial<ServerOptions> = {}): Promise<TestService> {
  return startService(t, { admin: { password: PASSWORD }, ...options })
}

function portOf({ server }: TestService) {
  return { port: server.httpPort }
}

/** Sends a POST as the page does, over plain HTTP. */
function post(
  service: TestService,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const own = { 'content-type': 'application/json', origin: service.url, ...headers }
  return call(portOf(service), 'POST', `/admin/${path}`, {
    headers: own,
    body: JSON.stringify(body),
  })
}

/** @returns header `Cookie` of a session */
async function logIn(service: TestService, password = PASSWORD): Promise<{ cookie: string }> {
  const { headers } = await post(service, 'login', { password })
  return { cookie: headers['set-cookie']![0]!.split(';')[0]! }
}

function refused(reply: Reply) {
  const { success, code, error } = json(reply)
  return { status: reply.status, success, code, error }
}

/** Reads the events of a dashboard until it has `count` snapshots or the connection ends. */
async function readSnapshots(service: TestService, headers: Record<string, string>, count: number) {
  const stop = new AbortController()
  const reply = await fetch(`${service.url}/admin/events`, { headers, signal: stop.signal })
  let texts: string[] = []
  let text = ''
  for await (const chunk of reply.body!) {
    text += Buffer.from(chunk).toString()
    texts = [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, data]) => data!)
    if (texts.length >= count) break
  }
  stop.abort()
  return { type: reply.headers.get('content-type'), text, snapshots: texts.map(parse) }
}

function parse(text: string): Snapshot {
  return JSON.parse(text) as Snapshot
}

t.test('there is no dashboard without ADMIN_PASSWORD', async (t) => {
  const service = await startService(t)
  for (const path of ['/admin', '/admin/', '/admin/session', ...READING]) {
    t.match(refused(await call(portOf(service), 'GET', path)), { status: 404 }, path)
  }
  t.match(refused(await post(service, 'login', { password: '' })), { status: 404 })
})

t.test('the page and its files need no session, and load only from their own origin', async (t) => {
  const service = await startAdmin(t)
  const get = (path: string, headers = {}) => call(portOf(service), 'GET', path, { headers })
  t.match(await get('/admin'), { status: 308, headers: { location: 'admin/' } })
  const page = await get('/admin/')
  t.match(page, {
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': /^default-src 'none'; script-src 'self'; style-src 'self'; /,
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    },
  })
  const policy = String(page.headers['content-security-policy'])
  t.notMatch(policy, /unsafe|\*|https?:/)
  t.match(policy, "frame-ancestors 'none'")
  const html = page.body.toString()
  t.notMatch(html, /https?:|<script>|<style>| on\w+=| style=/)
  const assets = [...html.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path]) => path!)
  const modules = ['dialogs', 'graphs', 'stream-list'].map((name) => `assets/${name}.js`)
  for (const path of [...assets, ...modules, 'assets/hls.min.js']) {
    const { status, headers } = await get(`/admin/${path}`)
    t.equal(status, 200, path)
    t.match(headers['content-type'], path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/)
    const again = await get(`/admin/${path}`, { 'if-none-match': headers['etag'] })
    t.match(again, { status: 304, body: Buffer.alloc(0) })
  }
  for (const path of [
    'main.d.ts',
    'tsconfig.json',
    'index.html',
    '../http/admin.js',
    '%2e%2e/admin.js',
  ])
    t.equal((await get(`/admin/assets/${path}`)).status, 404, path)
})

t.test('routes behind the login refuse a request without a session', async (t) => {
  const service = await startAdmin(t)
  const { cookie } = await logIn(service)
  const [value = ''] = cookie.split('=').slice(1)
  const [id = '', expiry = '', signature = ''] = value.split('.')
  const ofOtherProcess = await logIn(await startAdmin(t))
  const forged = [
    '',
    'millrace_admin=',
    `millrace_admin=${id}.${Number(expiry) + 1}.${signature}`,
    `millrace_admin=${id}.${expiry}.${signature.slice(1)}`,
    `millrace_admin=${id}.${expiry}`,
    `millrace_admin=..`,
    `other=${value}`,
    ofOtherProcess.cookie,
  ]
  for (const cookie of forged) {
    for (const path of READING) {
      const reply = await call(portOf(service), 'GET', path, { headers: { cookie } })
      t.match(refused(reply), { status: 401, code: 'LOGIN_REQUIRED' }, `${path} ${cookie}`)
    }
    for (const name of CALLS) {
      const reply = await post(service, `streams/${name}`, { stream_id: 'studio' }, { cookie })
      t.match(refused(reply), { status: 401, code: 'LOGIN_REQUIRED' }, `${name} ${cookie}`)
    }
    const reply = await call(portOf(service), 'GET', '/admin/session', { headers: { cookie } })
    t.match(json(reply)['data'], { open: false })
  }
  const headers = { cookie: `theme=dark; ${cookie}; other=1` }
  const reply = await call(portOf(service), 'GET', '/admin/session', { headers })
  t.same(json(reply)['data'], { open: true, lost: false })
})

t.test('a session opens no route of the API', async (t) => {
  const service = await startAdmin(t)
  const { cookie } = await logIn(service)
  const headers = { cookie, 'content-type': 'application/json', origin: service.url }
  const reply = await call(portOf(service), 'POST', '/api/streams', { headers, body: '{}' })
  t.match(refused(reply), { status: 400, code: 'SIGNATURE_MISSING' })
})

t.test('a wrong password is refused, and attempts of an address are limited', async (t) => {
  const lines: string[] = []
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(line) })
  const service = await startAdmin(t, { logger, trustProxy: '127.0.0.1' })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const attempts = [{ password: 'guess' }, { password: '' }, { password: 7 }, {}]
  for (const body of attempts) {
    const reply = await post(service, 'login', body, from('192.0.2.1'))
    t.match(refused(reply), { status: 403, code: 'PASSWORD_WRONG', error: /ADMIN_PASSWORD/ })
    t.notOk(reply.headers['set-cookie'])
  }
  const right = { password: PASSWORD }
  t.equal((await post(service, 'login', right, from('192.0.2.1'))).status, 200)
  const sixth = await post(service, 'login', right, from('192.0.2.1'))
  t.match(refused(sixth), { status: 429, code: 'TOO_MANY_LOGINS' })
  t.equal(sixth.headers['retry-after'], '10')
  t.equal((await post(service, 'login', right, from('192.0.2.2'))).status, 200)
  const network = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8::4', '2001:db8::5']
  for (const each of network) await post(service, 'login', right, from(each))
  t.equal((await post(service, 'login', right, from('2001:db8::6'))).status, 429, 'one /64')
  const audited = lines.filter((line) => line.includes('"audit":"login"'))
  t.match(audited[0], /"client":"192\.0\.2\.1","result":"PASSWORD_WRONG"/)
  t.match(audited.at(4), /"client":"192\.0\.2\.1","result":"ok"/)
  t.notOk(lines.join('').includes(PASSWORD))

  const others = Array.from({ length: 80 }, (_, index) => from(`198.51.100.${index}`))
  const replies = await Promise.all(others.map((each) => post(service, 'login', {}, each)))
  t.ok(
    replies.some(({ status }) => status === 429),
    'attempts of all addresses are limited, too',
  )
})

t.test('requests of other sites are refused, whatever cookie they have', async (t) => {
  const service = await startAdmin(t)
  const { cookie } = await logIn(service)
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: '' },
    { origin: service.url.replace('127.0.0.1', 'localhost') },
    { origin: service.url, 'sec-fetch-site': 'same-site' },
    { origin: service.url, 'sec-fetch-site': 'cross-site' },
    { origin: service.url, 'sec-fetch-site': 'none' },
  ]
  const paths = ['login', 'logout', ...CALLS.map((name) => `streams/${name}`)]
  for (const headers of foreign) {
    for (const path of paths) {
      const reply = await post(service, path, { password: PASSWORD }, { cookie, ...headers })
      t.match(refused(reply), { status: 403, code: 'CROSS_SITE_REQUEST' }, path)
    }
  }
  const start = { stream_id: 'studio' }
  const ours = { cookie, origin: 'https://proxy.example', 'sec-fetch-site': 'same-origin' }
  t.equal((await post(service, 'streams/start-stream', start, ours)).status, 200)
  const form = { cookie, 'content-type': 'text/plain' }
  t.match(refused(await post(service, 'streams/start-stream', start, form)), { status: 415 })
})

t.test('logging out ends the session, also for who has a copy of the cookie', async (t) => {
  const service = await startAdmin(t)
  const { cookie } = await logIn(service)
  const other = await logIn(service)
  const events = await fetch(`${service.url}/admin/events`, { headers: { cookie } })
  t.equal(events.status, 200)
  const reply = await post(service, 'logout', {}, { cookie })
  t.match(reply.headers['set-cookie']?.[0], /^millrace_admin=; Max-Age=0; /)
  t.match(refused(await post(service, 'streams/kick', {}, { cookie })), { status: 401 })
  t.match(await events.text(), /^data: /m, 'its events end')
  const { status } = await post(service, 'streams/kick', {}, other)
  t.equal(status, 400, 'another session goes on')
})

t.test('a client without a session costs no parsing: bodies of logins have 1 KiB', async (t) => {
  const service = await startAdmin(t)
  const large = { password: 'x'.repeat(60_000) }
  for (const path of ['logout', 'streams/kick']) {
    t.match(refused(await post(service, path, large)), { status: 401, code: 'LOGIN_REQUIRED' })
  }
  t.match(refused(await post(service, 'login', large)), { status: 413, code: 'BODY_TOO_LARGE' })
})

t.test('a cookie of the same name, from another service of the host, does no harm', async (t) => {
  const service = await startAdmin(t)
  const { cookie } = await logIn(service)
  const cookies = { cookie: `millrace_admin=x; theme=dark; ${cookie}` }
  t.match(refused(await post(service, 'streams/kick', {}, cookies)), { status: 400 })
})

t.test('the cookie is out of reach for scripts and other sites, and HTTPS keeps it', async (t) => {
  const attributes = /^millrace_admin=[\w.-]+; Max-Age=43200; HttpOnly; SameSite=Strict/
  const plain = await startAdmin(t, { trustProxy: '127.0.0.1' })
  const login = (headers = {}) => post(plain, 'login', { password: PASSWORD }, headers)
  t.match((await login()).headers['set-cookie']?.[0], new RegExp(`${attributes.source}$`))
  const proxied = await login({ 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1' })
  t.match(proxied.headers['set-cookie']?.[0], new RegExp(`${attributes.source}; Secure$`))
})

t.test('calls of the dashboard do what those of the API do, and are audited', async (t) => {
  const lines: string[] = []
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) })
  const service = await startAdmin(t, { logger })
  const session = await logIn(service)
  const send = (name: string, body: object) => post(service, `streams/${name}`, body, session)
  const started = await send('start-stream', { stream_id: 'studio', encryption: true })
  t.match(json(started), {
    success: true,
    data: {
      stream_id: 'studio',
      srt_url: /^srt:/,
      qr_code: { size: Number, path: /^M\d+ \d+h1v1h-1z/ },
    },
  })
  const long = await send('start-stream', { stream_id: 'x'.repeat(128), encryption: true })
  t.match(json(long), { data: { qr_code: { size: Number } } })
  const kicked = await send('kick', { stream_id: 'studio', ban_sec: 60 })
  t.match(json(kicked), { success: true, data: { stream_id: 'studio', publisher: null } })
  const [key] = service.server.status('studio').keys ?? []
  const revoked = await send('revoke-key', { stream_id: 'studio', key_id: key?.keyId })
  t.match(json(revoked), { success: true, data: { stream_id: 'studio', keys: [] } })
  t.match(json(await send('stop-stream', { stream_id: 'studio', revoke: true })), {
    data: { status: 'STOPPED' },
  })
  t.equal(service.server.status('studio').status, 'STOPPED')
  t.match(refused(await send('start-stream', { stream_id: '..' })), {
    status: 400,
    code: 'BODY_INVALID',
    error: /^stream_id must be /,
  })
  t.match(refused(await send('kick', { stream_id: 'none' })), { status: 404 })
  t.match(refused(await send('kick', { stream_id: 'studio', ban_sec: -1 })), { status: 400 })
  t.match(refused(await send('status', { stream_id: 'studio' })), { status: 404 })
  const audited = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => 'audit' in line && line['audit'] !== 'login')
  const line = { level: 30, key: 'admin', client: '127.0.0.1', msg: 'API call' }
  const studio = { ...line, stream_id: 'studio' }
  t.strictSame(audited, [
    { ...studio, audit: 'start-stream', encryption: true, result: 'ok' },
    { ...line, stream_id: 'x'.repeat(128), audit: 'start-stream', encryption: true, result: 'ok' },
    { ...studio, audit: 'kick', ban_sec: 60, result: 'ok' },
    { ...studio, audit: 'revoke-key', key_id: key?.keyId, result: 'ok' },
    { ...studio, audit: 'stop-stream', revoke: true, result: 'ok' },
    { ...line, stream_id: 'none', audit: 'kick', result: 'STREAM_NOT_FOUND' },
  ])
})

t.test('events tell the state of the service at once, then every second', async (t) => {
  const service = await startAdmin(t)
  for (const streamId of ['b', 'a']) await service.server.startStream({ streamId })
  const session = await logIn(service)
  const startMs = performance.now()
  const startWallMs = systemClock.wallMs()
  const { type, text, snapshots } = await readSnapshots(service, session, 3)
  t.ok(performance.now() - startMs > 1500)
  t.match(type, 'text/event-stream')
  t.match(text, /^retry: \d+\n\ndata: /)
  t.equal(snapshots.length, 3)
  for (const { rows, load, timeMs } of snapshots) {
    t.ok(timeMs >= startWallMs && timeMs <= systemClock.wallMs())
    t.match(load, { loopDelayMs: Number, httpConnections: Number })
    t.match(
      rows.map(({ id, status, live }) => [id, status, live]),
      [
        ['a', 'READY', false],
        ['b', 'READY', false],
      ],
    )
  }
  t.notMatch(text, /token=|passphrase/)
})

t.test('a page of the list has 50 streams, found, filtered and sorted as asked for', async (t) => {
  const service = await startAdmin(t)
  const ids = Array.from({ length: 60 }, (_, index) => `s${100 + index}`)
  for (const streamId of ids) await service.server.startStream({ streamId })
  await service.server.stopStream('s101')
  const { cookie } = await logIn(service)
  const first = async (query: string) => {
    const stop = new AbortController()
    const reply = await fetch(`${service.url}/admin/events${query}`, {
      headers: { cookie },
      signal: stop.signal,
    })
    let text = ''
    for await (const chunk of reply.body!) {
      text += Buffer.from(chunk).toString()
      if (/^data: .*\n\n/m.test(text)) break
    }
    stop.abort()
    const { rows, first, matches } = parse(/^data: (.*)$/m.exec(text)![1]!)
    return { ids: rows.map(({ id }) => id), first, matches }
  }
  const inOrder = [...ids.filter((id) => id !== 's101'), 's101']
  const all = { ids: inOrder.slice(0, 50), first: 0, matches: 60 }
  t.same(await first(''), all)
  t.same(await first('?page=1'), { ids: inOrder.slice(50), first: 50, matches: 60 })
  t.same(await first('?filter=STOPPED'), { ids: ['s101'], first: 0, matches: 1 })
  t.same(await first('?search=S10&sort=id&order=descending'), {
    ids: ids.slice(0, 10).toReversed(),
    first: 0,
    matches: 10,
  })
  t.same(await first('?filter=none&sort=toString&order=up&page=-1&stream=/&search=a&search='), all)
})

t.test('at most 32 dashboards are open, and closing the service ends them', async (t) => {
  const service = await startAdmin(t)
  const session = await logIn(service)
  const stop = new AbortController()
  const open = () => fetch(`${service.url}/admin/events`, { headers: session, signal: stop.signal })
  const all = await Promise.all(Array.from({ length: 32 }, open))
  t.ok(all.every(({ status }) => status === 200))
  const refusal = await open()
  t.equal(refusal.status, 503)
  t.match(await refusal.json(), { code: 'TOO_MANY_DASHBOARDS' })
  stop.abort()
  await until('room for another one', async () => {
    const reply = await fetch(`${service.url}/admin/events`, { headers: session })
    if (reply.status !== 200) return false
    await t.resolves(Promise.all([service.server.close(), reply.text()]), 'ends, and is not cut')
    return true
  })
})

t.test('dashboards that are left at once take no place', async (t) => {
  const service = await startAdmin(t)
  const session = await logIn(service)
  const request = `GET /admin/events HTTP/1.1\r\nHost: dashboard\r\nCookie: ${session.cookie}\r\n\r\n`
  for (let index = 0; index < 100; index++) {
    const socket = connect(service.server.httpPort, '127.0.0.1')
    await once(socket, 'connect')
    // Some before the first event, some after it.
    socket.write(request, () => setTimeout(() => socket.resetAndDestroy(), index % 5))
    await once(socket, 'close')
  }
  await until('room for 32', async () => {
    const stop = new AbortController()
    const open = () =>
      fetch(`${service.url}/admin/events`, { headers: session, signal: stop.signal })
    const all = await Promise.all(Array.from({ length: 32 }, open))
    stop.abort()
    return all.every(({ status }) => status === 200)
  })
})

t.test('events go over HTTP/2, and closing the service ends them', async (t) => {
  const { cert, key } = writeCertificate(t)
  const service = await startAdmin(t, { tls: { cert, key } })
  const url = service.url.replace('http:', 'https:')
  const session = await openSession(t, { url })
  const body = JSON.stringify({ password: PASSWORD })
  const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
  const login = await callStream(session, 'POST', '/admin/login', { headers, body })
  const [setCookie = ''] = [login.headers['set-cookie']].flat()
  t.match(setCookie, /; Secure$/)
  const stream = session.request({
    ':path': '/admin/events',
    cookie: setCookie.split(';')[0]!,
  })
  let text = ''
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await until('two snapshots', () => text.split('data: ').length > 2)
  const ended = once(stream, 'end')
  await t.resolves(Promise.all([service.server.close(), ended]), 'ends, and is not cut')
})

t.test(
  'the history of a stream covers 10 minutes, and a stream without an encoder has no preview',
  async (t) => {
    const service = await startAdmin(t)
    await service.server.startStream({ streamId: 'studio' })
    const { cookie } = await logIn(service)
    const get = (id: string) =>
      call(portOf(service), 'GET', `/admin/streams/${id}/history`, { headers: { cookie } })
    const askedMs = systemClock.wallMs()
    const { data } = json(await get('studio')) as { data: { endMs: number } }
    const none = Array<null>(120).fill(null)
    t.match(data, { stepSec: 5, bitrateBps: none, rttMs: none, packetsLost: none, viewers: none })
    // The end of the last step of 5 s.
    t.ok(data.endMs > askedMs - 5001 && data.endMs <= systemClock.wallMs())
    for (const id of ['other', '%00', '..%2f', 'x'.repeat(200)]) {
      t.match(refused(await get(id)), { status: 404 }, id)
    }
    const path = '/admin/streams/studio/preview.ts'
    const preview = await call(portOf(service), 'GET', path, { headers: { cookie } })
    t.match(refused(preview), { status: 404, code: 'FILE_NOT_FOUND' }, 'no key frame so far')
  },
)

t.test('the detail of a stream has its time line, and no credential', async (t) => {
  const service = await startAdmin(t)
  const { streamKey, shortStreamKey, expiresAt } = await service.server.startStream({
    streamId: 'studio',
  })
  await service.server.stopStream('studio')
  const { cookie } = await logIn(service)
  const get = (path: string) =>
    call(portOf(service), 'GET', `/admin/streams/${path}`, { headers: { cookie } })
  const reply = await get('studio/detail')
  t.match(json(reply), {
    data: {
      masterUrl: `${service.url}/video/studio/master.m3u8`,
      events: [{ type: 'stopped', detail: 'api' }, { type: 'key' }, { type: 'started' }],
      webhooks: [],
      keys: [
        { id: /^\d+-7200-main$/, source: 'main', issuedMs: Number, expiresMs: expiresAt.getTime() },
      ],
    },
  })
  for (const key of [streamKey, shortStreamKey.slice('studio-'.length)])
    t.notOk(reply.body.toString().includes(key))
  const qrCode = { size: Number, path: /^M/ }
  t.match(json(await get('studio/qr-code')), { data: { master: qrCode, playlist: qrCode } })
  t.match(refused(await get('other/detail')), { status: 404, code: 'STREAM_NOT_FOUND' })
})

t.test('one check runs at a time, and ends with its client', async (t) => {
  const service = await startAdmin(t)
  await service.server.startStream({ streamId: 'studio' })
  const { cookie } = await logIn(service)
  const headers = { 'content-type': 'application/json', origin: service.url, cookie }
  const ask = (id: string, signal: AbortSignal | null = null) => {
    const url = `${service.url}/admin/streams/${id}/check`
    return fetch(url, { method: 'POST', headers, body: '{}', signal })
  }
  t.equal((await ask('other')).status, 404)
  const leave = new AbortController()
  const left = ask('studio', leave.signal).catch(() => undefined)
  const second = new AbortController()
  await until('the first one runs', async () => {
    const reply = await ask(
      'studio',
      AbortSignal.any([second.signal, AbortSignal.timeout(50)]),
    ).catch(() => undefined)
    return reply?.status === 503 && /CHECK_RUNNING/.test(await reply.text())
  })
  leave.abort()
  await left
  await until('a whole check', async () => {
    const reply = await ask('studio')
    const { data } = (await reply.json()) as { data?: unknown }
    if (reply.status !== 200) return false
    t.match(data, { playlists: 0, requests: Number, findings: Array })
    return true
  })
})

t.test('API_FROM and API_PORT hold for the dashboard', async (t) => {
  const apiPort = await freePort()
  const apart = await startAdmin(t, { apiPort })
  t.equal((await call(portOf(apart), 'GET', '/admin/')).status, 404)
  t.equal((await call({ port: apiPort }, 'GET', '/admin/')).status, 200)
  const foreign = await startAdmin(t, { apiFrom: '192.0.2.0/24' })
  for (const path of ['/admin/', '/admin/session']) {
    const reply = await call(portOf(foreign), 'GET', path)
    t.match(refused(reply), { status: 403, code: 'ADDRESS_FORBIDDEN' })
  }
  const reply = await post(foreign, 'login', { password: PASSWORD })
  t.match(refused(reply), { status: 403, code: 'ADDRESS_FORBIDDEN' })
})
