/**
 * Settings that say who may publish and who may use the API, over real sockets.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import t from 'tap'
import type { ServerOptions } from '../../src/index.ts'
import { sign } from '../../src/auth/signature.ts'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { freePort } from '../support/free-port.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const CLIP = fileURLToPath(new URL('../../fixtures/demo.mpegts', import.meta.url))
const TOKEN = randomBytes(32).toString('hex')

/** Program that sends an unsigned request to a port of the loopback and resets the connection. */
const RESET = `
const request = 'POST /api/streams HTTP/1.1\\r\\nHost: millrace\\r\\nContent-Length: 2\\r\\n\\r\\n{}'
const socket = require('node:net').connect(process.argv[1], '127.0.0.1', () =>
  socket.write(request, () => socket.resetAndDestroy()),
)`

/** Lists the streams, through a proxy if `forwardedFor` is given. */
async function list({ url, hmacSecret }: TestService, forwardedFor?: string, base = url) {
  const reply = await fetch(`${base}/api/streams`, {
    method: 'POST',
    body: '{}',
    headers: {
      'content-type': 'application/json',
      'lt-signature': sign(Buffer.from('{}'), hmacSecret),
      ...(forwardedFor !== undefined && { 'x-forwarded-for': forwardedFor }),
    },
  })
  const { code, error } = (await reply.json()) as { code?: string; error?: string }
  return { status: reply.status, code, error, retryAfter: reply.headers.get('retry-after') }
}

async function metric({ url }: TestService, series: string): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const text = await (await fetch(`${url}/metrics`, { headers })).text()
  return text.split('\n').find((line) => line.startsWith(`${series} `))
}

t.test('PUBLISH_FROM refuses encoders of other addresses with 2403', async (t) => {
  const service = await startService(t, { publishFrom: '192.0.2.0/24', metrics: { token: TOKEN } })
  const { srtUrl } = await service.server.startStream({ streamId: 'studio' })
  await t.rejects(publish({ file: CLIP, url: srtUrl }), { code: 'SRT_REJECTED', message: /2403/ })
  const series = 'millrace_rejects_total{reason="ADDRESS_FORBIDDEN"}'
  t.equal(await metric(service, series), `${series} 1`)
})

t.test('PUBLISH_FROM admits the encoders of its blocks', async (t) => {
  const { server } = await startService(t, { publishFrom: '2001:db8::/32, 127.0.0.0/8' })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const stop = new AbortController()
  const encoder = publish({ file: CLIP, url: srtUrl, signal: stop.signal })
  await until('an encoder', () => server.status('studio').status === 'STREAMING')
  stop.abort()
  await encoder
})

t.test('API_FROM refuses other clients of the API and of metrics, and no viewers', async (t) => {
  const service = await startService(t, { apiFrom: '192.0.2.0/24', metrics: { token: TOKEN } })
  t.match(await list(service), {
    status: 403,
    code: 'ADDRESS_FORBIDDEN',
    error:
      'the address of the client is not allowed: add 127.0.0.1, or its CIDR block, to API_FROM',
  })
  t.match(await list(service, '192.0.2.7'), { status: 403 }, 'any client can send the header')
  const { url } = service
  const headers = { authorization: `Bearer ${TOKEN}` }
  t.equal((await fetch(`${url}/metrics`, { headers })).status, 403)
  t.equal((await fetch(`${url}/health/live`)).status, 200)
  const viewer = await fetch(`${url}/video/studio/playlist.m3u8`)
  t.match(await viewer.json(), { code: 'STREAM_NOT_FOUND' })
})

t.test('API_FROM admits its addresses, and counts refusals', async (t) => {
  const options = { apiFrom: '127.0.0.1', metrics: { token: TOKEN } }
  const service = await startService(t, options)
  t.match(await list(service), { status: 200 })
  const other = await startService(t, { ...options, trustProxy: '127.0.0.1' })
  t.match(await list(other, '203.0.113.9'), { status: 403 })
  const series = 'millrace_api_refusals_total{reason="ADDRESS_FORBIDDEN"}'
  t.equal(await metric(other, series), `${series} 1`)
})

t.test('TRUST_PROXY takes the client from the last proxy that is trusted', async (t) => {
  const service = await startService(t, {
    apiFrom: '192.0.2.0/24',
    trustProxy: '127.0.0.0/8, 198.51.100.1',
  })
  t.match(await list(service, '192.0.2.7'), { status: 200 })
  t.match(await list(service, '192.0.2.7, 198.51.100.1'), { status: 200 })
  for (const forged of ['192.0.2.7, 203.0.113.9', '']) {
    t.match(await list(service, forged), { status: 403, code: 'ADDRESS_FORBIDDEN' }, forged)
  }
  for (const forged of ['unknown', "192.0.2.7'"]) {
    t.match(await list(service, forged), { status: 400, code: 'REQUEST_MALFORMED' }, forged)
  }
})

t.test('a proxy may forward addresses with ports, brackets and zones', async (t) => {
  const service = await startService(t, {
    apiFrom: '192.0.2.0/24, 2001:db8::/32, fe80::/10',
    trustProxy: '127.0.0.0/8, 198.51.100.1',
    apiRate: 1,
  })
  t.match(await list(service, '192.0.2.7:51234, 198.51.100.1:443'), { status: 200 })
  t.match(await list(service, '192.0.2.7:51235'), { status: 429 }, 'one client on any port')
  t.match(await list(service, '[2001:db8::1]:51234'), { status: 200 })
  t.match(await list(service, '2001:db8::2'), { status: 429 }, 'one /64')
  t.match(await list(service, 'fe80::1%eth0'), { status: 200 })
  t.match(await list(service, '203.0.113.9:80'), { status: 403, error: /: add 203\.0\.113\.9, / })
})

t.test('a connection that is reset before its request is read causes no log line', async (t) => {
  for (const options of [{ apiRate: 1 }, { apiFrom: '127.0.0.1', trustProxy: '127.0.0.1' }]) {
    const lines: string[] = []
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
    const service = await startService(t, { ...options, logger, metrics: { token: TOKEN } })
    // What the start warns of depends on the machine.
    lines.length = 0
    // This process waits for the other one, so that the service accepts a connection that is reset already.
    const { stderr } = spawnSync(process.execPath, ['-e', RESET, String(service.server.httpPort)])
    t.equal(String(stderr), '')
    await until('the refusal', async () => {
      const line = await metric(service, 'millrace_api_refusals_total{reason="REQUEST_MALFORMED"}')
      return line !== undefined || lines.length > 0
    })
    t.strictSame(lines, [])
  }
})

t.test('API_RATE limits the requests of each client, and of the API alone', async (t) => {
  const service = await startService(t, { apiRate: 2, trustProxy: '127.0.0.1' })
  const client = '192.0.2.7'
  const burst = await Promise.all(Array.from({ length: 20 }, () => list(service, client)))
  const refused = burst.filter(({ status }) => status === 429)
  t.ok(refused.length >= 16, `${refused.length} refused`)
  t.match(refused[0], { code: 'TOO_MANY_API_REQUESTS', retryAfter: '1' })
  t.match(await list(service, '192.0.2.8'), { status: 200 }, 'another client')
  t.match(await list(service, '2001:db8::1'), { status: 200 })
  for (let i = 0; i < 20; i++) {
    t.equal((await fetch(`${service.url}/health/live`)).status, 200)
  }
  await until('the next request', async () => (await list(service, client)).status === 200, {
    everyMs: 600,
  })
})

t.test('API_RATE counts requests before their signature is checked', async (t) => {
  const { url } = await startService(t, { apiRate: 1 })
  const guess = async () => (await fetch(`${url}/api/streams`, { method: 'POST' })).status
  const answers = [await guess(), await guess(), await guess()]
  t.equal(answers[0], 400)
  t.ok(answers.includes(429))
})

t.test('API_RATE limits openapi.json together with the calls, and not metrics', async (t) => {
  const service = await startService(t, { apiRate: 0.01, metrics: { token: TOKEN } })
  const document = async () => (await fetch(`${service.url}/api/openapi.json`)).status
  t.equal(await document(), 200)
  t.equal(await document(), 429)
  t.match(await list(service), { status: 429 })
  for (let i = 0; i < 3; i++) t.ok(await metric(service, 'millrace_ready'))
})

t.test('API_PORT at API_HOST has the API and metrics, and HTTP_PORT no longer has', async (t) => {
  const apiPort = await freePort()
  const options: Partial<ServerOptions> = { apiPort, apiHost: '127.0.0.2' }
  const service = await startService(t, { ...options, metrics: { token: TOKEN } })
  const base = `http://127.0.0.2:${apiPort}`
  t.match(await list(service), { status: 404, code: 'ROUTE_NOT_FOUND' })
  t.match(await list(service, undefined, base), { status: 200 })
  t.match(await metric({ ...service, url: base }, 'millrace_ready'), 'millrace_ready 1')
  t.equal((await fetch(`${base}/health/ready`)).status, 200)
  t.equal((await fetch(`${base}/video/studio/playlist.m3u8`)).status, 404)
  t.equal((await fetch(`${service.url}/metrics`)).status, 404)
  await t.rejects(fetch(`http://127.0.0.1:${apiPort}/health/live`), 'no other address')
  await t.rejects(startService(t, options), {
    code: 'ADDRESS_IN_USE',
    message: `port ${apiPort} on 127.0.0.2 is in use: choose another apiPort`,
  })
})

t.test('METRICS_PORT is opened at API_HOST', async (t) => {
  const port = await freePort()
  await startService(t, { apiHost: '127.0.0.2', metrics: { port } })
  t.equal((await fetch(`http://127.0.0.2:${port}/metrics`)).status, 200)
  await t.rejects(fetch(`http://127.0.0.1:${port}/metrics`))
})

t.test('rejects addresses that are none, and API_HOST without a port for it', async (t) => {
  for (const [name, value] of Object.entries({
    apiFrom: '10.0.0.0/33',
    publishFrom: 'example.org',
    trustProxy: '10.0.0.1,',
  })) {
    await t.rejects(startService(t, { [name]: value }), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`^${name} is ".*": expected IP addresses and CIDR blocks`),
    })
  }
  await t.rejects(startService(t, { apiHost: '127.0.0.2' }), {
    message: 'apiHost is set, apiPort and metrics.port are not: expected one of these ports',
  })
})

t.test('status counts the connections refused and displaced at API_PORT', async (t) => {
  const apiPort = await freePort()
  const { server } = await startService(t, { apiPort })
  await server.startStream({ streamId: 'studio' })
  const turnedAway = () => {
    const { refused = 0, displaced = 0 } = server.status('studio').service?.http ?? {}
    return refused + displaced
  }
  t.equal(turnedAway(), 0)
  // The port has 256 connections; those idle for 2 s give way to new ones.
  const sockets = Array.from({ length: 260 }, () => connect(apiPort, '127.0.0.1').resume())
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  await until('the count', () => turnedAway() === 4)
})
