/**
 * The client of the API on Node.
 */
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ApiError, Client } from '../../src/client/index.ts'
import { startService } from '../support/service.ts'
import { REDIRECTED, redirectElsewhere } from './redirecting-origin.ts'

t.test('calls each endpoint of a service that checks the age of requests', async (t) => {
  const { url, hmacSecret: secret } = await startService(t, { apiMaxAgeSec: 30 })
  const client = new Client({ url: `${url}/`, secret })
  const started = await client.call('start-stream', { stream_id: 'studio', part_ms: 300 })
  t.match(started, { stream_id: 'studio', status: 'READY', srt_url: /^srt:/ })
  const { live, publisher } = await client.call('status', { stream_id: 'studio' })
  t.same([live, publisher], [false, null])
  t.match(await client.call('kick', { stream_id: 'studio', ban_sec: 5 }), { status: 'READY' })
  const switching = { stream_id: 'studio', source: 'backup' } as const
  await t.rejects(client.call('switch-source', switching), { code: 'SOURCE_UNAVAILABLE' })
  const { streams, next } = await client.call('streams', {})
  t.same([streams.map(({ stream_id }) => stream_id), next], [['studio'], null])
  const stopped = await client.call('stop-stream', { stream_id: 'studio' })
  t.equal(stopped.status, 'STOPPED')
})

t.test('a refusal is an ApiError with status and code', async (t) => {
  const { url, hmacSecret: secret } = await startService(t)
  const client = new Client({ url, secret })
  await t.rejects(client.call('status', { stream_id: 'unknown' }), {
    name: 'ApiError',
    status: 404,
    code: 'STREAM_NOT_FOUND',
    message: 'no such stream',
  })
  await t.rejects(client.call('start-stream', { stream_id: 'a,b' }), {
    status: 400,
    code: 'BODY_INVALID',
    message: /^stream_id must be/,
  })
  const stranger = new Client({ url, secret: 'another secret' })
  const refused = stranger.call('status', { stream_id: 'studio' })
  await t.rejects(refused, { status: 403, code: 'SIGNATURE_INVALID' })
  await t.rejects(refused, ApiError)
})

t.test('an answer that is not of Millrace is an ApiError with the code UNKNOWN', async (t) => {
  for (const [status, text] of [
    [502, '<html>Bad Gateway</html>'],
    [200, 'null'],
    [200, '{"ok":true}'],
  ] as const) {
    const client = new Client({
      url: 'http://127.0.0.1',
      secret: 's',
      fetch: async () => new Response(text, { status }),
    })
    const expected = { status, code: 'UNKNOWN', message: new RegExp(`^HTTP ${status} without`) }
    await t.rejects(client.call('streams', {}), expected, text)
  }
})

t.test('a redirect is an ApiError, and its target gets neither signature nor body', async (t) => {
  for (const status of [301, 302, 303, 307, 308]) {
    const { url, received } = await redirectElsewhere(t, status)
    const client = new Client({ url, secret: 's' })
    const call = client.call('stop-stream', { stream_id: 'studio' })
    await t.rejects(call, { name: 'ApiError', status, code: 'UNKNOWN', message: REDIRECTED })
    t.same(received, [], String(status))
  }
})

t.test('a call ends with its signal', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = new Client({ url, secret: 's' })
  const reason = new Error('enough')
  await t.rejects(client.call('streams', {}, { signal: AbortSignal.abort(reason) }), reason)
})

t.test('signs the exact bytes that it sends, with characters beyond ASCII', async (t) => {
  const secret = 'ein Schlüssel für Millrace'
  let sent: RequestInit | undefined
  const client = new Client({
    url: 'http://127.0.0.1',
    secret,
    fetch: async (_url, init) => {
      sent = init
      return new Response('{"success":true,"data":{}}')
    },
  })
  await client.call('streams', { after: 'ä' })
  const body = Buffer.from(sent?.body as string)
  t.match(JSON.parse(body.toString()), { after: 'ä', issued_at: Number })
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  t.match(sent?.headers, { 'lt-signature': signature })
})
