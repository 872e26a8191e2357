/** The client of a check, against servers on loopback. */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createCheckClock } from '../../../src/check/follow/check-clock.ts'
import { HttpClient } from '../../../src/check/follow/http-client.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { startOrigin } from './origin.ts'

const clock = createCheckClock()
const signal = new AbortController().signal
const GZIP = { 'accept-encoding': 'gzip' }

t.test('measures the times of a reply and the longest pause of its body', async (t) => {
  let [timeMs, readings] = [0, 0]
  const counted = { ...clock, nowMs: () => (readings++, timeMs) }
  const origin = await startOrigin(t, async (_, response) => {
    response.write('a'.repeat(100))
    await until('the client has the headers', () => readings > 1)
    timeMs = 10_000
    response.end('b')
  })
  const client = new HttpClient(origin.url, counted, signal)
  const { exchange } = (await client.load({ role: 'segment', url: `${origin.url}/1.ts` }))!
  const { reply } = exchange
  t.match(reply, { status: 200, protocol: 'http/1.1', url: `${origin.url}/1.ts` })
  t.equal(reply!.body.length, 101)
  t.equal(reply!.encodedBytes, 101)
  t.match(reply, { headersAtMs: 0, endedAtMs: 10_000 })
  // Less the time in which this process was busy.
  t.ok(reply!.longestPauseMs > 5000, `${reply!.longestPauseMs} ms`)
})

t.test('asks for the coding of the request, and decodes the body', async (t) => {
  const encoded = gzipSync('#EXTM3U\n'.repeat(50))
  const origin = await startOrigin(t, ({ headers }, response) => {
    const isGzip = headers['accept-encoding'] === 'gzip'
    if (isGzip)
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': encoded.length })
    response.end(isGzip ? encoded : '#EXTM3U\n')
  })
  const client = new HttpClient(origin.url, clock, signal)
  const url = `${origin.url}/live.m3u8`
  const plain = await client.load({ role: 'playlist', url })
  const coded = await client.load({ role: 'playlist', url, headers: GZIP })
  t.equal(plain!.body.toString(), '#EXTM3U\n')
  t.equal(coded!.body.length, 400)
  t.match(coded!.exchange, { headers: GZIP, reply: { encodedBytes: encoded.length } })
})

t.test('uses credentials at their origin, and tells nobody about them', async (t) => {
  const other = await startOrigin(t, (_, response) => {
    response.writeHead(200, { 'set-cookie': 'session=secret', 'x-user': 'secret' })
    response.end('#EXTM3U\nhttp://user:secret@example.com/1.ts?token=secret\n')
  })
  const origin = await startOrigin(t, (_, response) => {
    response.writeHead(302, { location: `${other.url}/moved.m3u8?signature=secretsecret` })
    response.end()
  })
  const address = `${origin.url.replace('//', '//user:secret@')}/live.m3u8?token=secret`
  const client = new HttpClient(address, clock, signal)
  const loaded = await client.load({ role: 'playlist', url: address })
  t.equal(
    origin.requests[0]!.headers.authorization,
    `Basic ${Buffer.from('user:secret').toString('base64')}`,
  )
  t.equal(origin.requests[0]!.url, '/live.m3u8?token=secret')
  t.equal(other.requests[0]!.headers.authorization, undefined)
  t.equal(other.requests[0]!.url, '/moved.m3u8?signature=secretsecret')
  const shown = JSON.stringify(loaded!.exchange) + loaded!.exchange.reply!.body.toString()
  t.notMatch(shown, /secret|cookie/)
  t.match(loaded!.exchange.reply!.url, /moved\.m3u8\?signature=~/)
  t.match(loaded!.body.toString(), 'secret', 'the follower sees what the server sent')
})

t.test('gives up after five redirects', async (t) => {
  const origin = await startOrigin(t, ({ url }, response) => {
    response.writeHead(302, { location: `${url}x` })
    response.end()
  })
  const client = new HttpClient(origin.url, clock, signal)
  const loaded = await client.load({ role: 'playlist', url: `${origin.url}/a` })
  t.equal(loaded!.exchange.failure, 'redirected more than 5 times')
  t.equal(origin.requests.length, 6)
})

t.test('says why there is no reply', async (t) => {
  const port = await freePort()
  const origin = await startOrigin(t, ({ url }, response) => {
    if (url === '/cut') {
      response.writeHead(200, { 'content-length': 100 })
      response.write('a')
      setTimeout(() => response.destroy(), 50)
    } else if (url === '/large') {
      response.writeHead(200)
      const chunk = Buffer.alloc(1024 * 1024)
      for (let count = 0; count < 6; count++) response.write(chunk)
      response.end()
    } else if (url === '/gzip') {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      response.end('no gzip')
    }
  })
  const client = new HttpClient(origin.url, clock, signal)
  const failure = async (url: string, timeoutMs = 10_000) =>
    (await client.load({ role: 'playlist', url, timeoutMs }))!.exchange.failure
  t.equal(await failure(`http://127.0.0.1:${port}/`), 'the connection was refused')
  t.equal(await failure(`${origin.url}/cut`), 'the connection was closed')
  t.equal(await failure(`${origin.url}/large`), 'larger than 4 MiB')
  t.equal(await failure(`${origin.url}/silent`, 200), 'no reply within 0.2 s')
  t.match(await failure(`${origin.url}/gzip`), /Content-Encoding|failed/)
})

t.test('sends at most 6 requests at once, 4 of them to be held', async (t) => {
  const held: ServerResponse[] = []
  let most = 0
  // Replies once so many are open, and a while later, so that more would come.
  const origin = await startOrigin(t, (_, response) => {
    if (held.push(response) !== most) return
    setTimeout(() => held.splice(0).forEach((each) => each.end('a')), 50)
  })
  const client = new HttpClient(origin.url, clock, signal)
  const load = (role: 'segment' | 'blocking', length: number) =>
    Promise.all(Array.from({ length }, () => client.load({ role, url: `${origin.url}/${role}` })))
  most = 4
  await load('blocking', 3 * most)
  t.equal(origin.maxOpen, most)
  most = 6
  await load('segment', 3 * most)
  t.equal(origin.maxOpen, most)
})

t.test('drops replies that come after the end of the check', async (t) => {
  const end = new AbortController()
  const origin = await startOrigin(t, () => void setImmediate(() => end.abort()))
  const client = new HttpClient(origin.url, clock, end.signal)
  const loading = client.load({ role: 'playlist', url: `${origin.url}/a` })
  t.equal(await loading, undefined)
  t.equal(await client.load({ role: 'playlist', url: `${origin.url}/b` }), undefined)
  t.equal(origin.requests.length, 1)
})
