/**
 * The client of the API on Node.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { ApiError, Client } from '../../src/client/index.ts'
import { startService } from '../support/service.ts'
import { REDIRECTED, redirectElsewhere } from './redirecting-origin.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

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

t.test('a refusal has its hint, and a misspelt field its warning', async (t) => {
  const { url, hmacSecret: secret } = await startService(t)
  const warnings: string[] = []
  const onWarning = (warning: string) => warnings.push(warning)
  const client = new Client({ url, secret, onWarning })
  await client.call('start-stream', { stream_id: 'studio', backup: true })
  t.same(warnings, [])
  const body = { stream_id: 'studio', bakcup: true }
  t.match(await client.call('start-stream', body), { status: 'READY' })
  t.match(warnings, [/^bakcup is no field .* Did you mean backup\?$/])
  const stranger = new Client({ url, secret: 'another secret' }).call('streams', {})
  t.match(await stranger.catch((error: unknown) => error), { hint: /HMAC_SECRET/ })
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

/** @returns URL of an HTTP server; `ended` when it has closed the first connection */
async function serve(t: Test, handler: RequestListener) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  const ended = once(server, 'connection').then(
    ([socket]) => new Promise((resolve) => (socket as Socket).once('close', resolve)),
  )
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ended }
}

t.test('a response without end is an ApiError, and its connection is closed', async (t) => {
  const piece = Buffer.alloc(65_536, ' ')
  const { url, ended } = await serve(t, (_, response) => {
    const write = (): unknown => response.write(piece, () => response.destroyed || write())
    write()
  })
  const client = new Client({ url, secret: 's', maxResponseBytes: 1_000_000 })
  const message = 'the response is larger than 1000000 bytes'
  const expected = { name: 'ApiError', status: 200, code: 'UNKNOWN', message }
  await t.rejects(client.call('streams', {}), expected)
  await ended
})

t.test('a response as large as the limit is read', async (t) => {
  const text = '{"success":true,"data":"ä"}'
  const { url } = await serve(t, (_, response) => response.end(text))
  const maxResponseBytes = Buffer.byteLength(text)
  const client = new Client({ url, secret: 's', maxResponseBytes })
  t.equal(await client.call('streams', {}), 'ä')
  const smaller = new Client({ url, secret: 's', maxResponseBytes: maxResponseBytes - 1 })
  await t.rejects(smaller.call('streams', {}), { code: 'UNKNOWN', message: /larger/ })
})

t.test('a call ends at its time limit', async (t) => {
  const replies: Readonly<Record<string, RequestListener>> = {
    'no response': () => undefined,
    'a response that never ends': (_, response) => response.write('{"success":true'),
  }
  for (const [name, reply] of Object.entries(replies)) {
    const { url, ended } = await serve(t, reply)
    const signal = new AbortController().signal
    const client = new Client({ url, secret: 's', timeoutMs: 100 })
    await t.rejects(client.call('streams', {}, { signal }), { name: 'TimeoutError' }, name)
    await ended
  }
})

t.test('garbage collection does not undo the time limit of a call', async (t) => {
  const { url } = await serve(t, () => undefined)
  let answer: Response | undefined
  const client = new Client({
    ...{ url, secret: 's', timeoutMs: 300 },
    fetch: async (...request) => answer ?? fetch(...request),
  })
  const { signal } = new AbortController()
  // Code that is compiled for speed lets go of what it needs no more.
  for (let calls = 0; calls < 3000; calls++) {
    answer = new Response('{"success":true,"data":{}}')
    await client.call('streams', {}, { signal })
  }
  answer = undefined
  const collecting = setInterval(collectGarbage, 20)
  t.teardown(() => clearInterval(collecting))
  await t.rejects(client.call('streams', {}, { signal }), { name: 'TimeoutError' })
})

t.test('a call ends with its signal', async (t) => {
  const { url } = await serve(t, () => undefined)
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
