/**
 * `http: false`: a server of an application passes requests to `server.handler`.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import express from 'express'
import t, { type Test } from 'tap'
import { createServer, signPlaybackToken, type ServerOptions } from '../../src/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { freePort } from '../support/free-port.ts'
import { callApi } from '../support/service.ts'
import { until } from '../support/until.ts'

const createSecret = () => randomBytes(32).toString('hex')

/** Starts Millrace without a port; `serve` opens that of the application. */
async function start(t: Test, path = '', options: Partial<ServerOptions> = {}) {
  const secrets = { hmacSecret: createSecret(), jwtSecret: createSecret() }
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const server = await createServer({
    ...secrets,
    ...options,
    logLevel: 'silent',
    http: false,
    public: { host: '127.0.0.1', url: `${origin}${path}` },
    srt: { host: '127.0.0.1', port: 0 },
  })
  t.teardown(() => server.close())
  const serve = async (listener: RequestListener) => {
    const own = createHttpServer(listener).listen(port, '127.0.0.1')
    await once(own, 'listening')
    t.teardown(() => {
      own.closeAllConnections()
      own.close()
    })
    return own
  }
  return { server, serve, origin, ...secrets }
}

/** Loads what players load, from the multivariant playlist to a segment. */
async function play(t: Test, masterUrl: string): Promise<string> {
  const load = async (url: string) => {
    const reply = await fetch(url)
    return reply.ok && reply.text()
  }
  const master = await until('a multivariant playlist', () => load(masterUrl))
  const mediaUrl = new URL(/^[^#].*/m.exec(master)![0], masterUrl).href
  const segment = /^[^#].*/m
  const playlist = await until('a segment', async () => {
    const text = await load(mediaUrl)
    return text && segment.test(text) && text
  })
  const reply = await fetch(new URL(segment.exec(playlist)![0], mediaUrl))
  t.match(reply.headers.get('content-type'), 'video/mp4')
  t.equal((await reply.arrayBuffer()).byteLength, Number(reply.headers.get('content-length')))
  return mediaUrl
}

t.test('node:http serves all that a port of Millrace does', async (t) => {
  const { server, serve, origin, hmacSecret } = await start(t)
  t.equal(server.httpPort, 0)
  const own = await serve(server.handler)
  const { data } = (await callApi(origin, 'start-stream', { stream_id: 'studio' }, hmacSecret)).body
  publishDemo(t, data['srt_url'])
  const mediaUrl = await play(t, data['master_url'])
  t.equal((await fetch(data['watch_url'])).status, 200)
  t.equal((await fetch(`${origin}/health/ready`)).status, 200)
  for (const path of ['/', '/other', '/video/studio']) {
    const reply = await fetch(origin + path)
    t.match([reply.status, await reply.json()], [404, { code: 'ROUTE_NOT_FOUND' }], path)
  }
  const many = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`x-${index}`, '1']))
  t.equal((await fetch(mediaUrl, { headers: many })).status, 431, 'with the limits of a port')

  await server.close()
  t.ok(own.listening, 'the server of the application is left open')
  t.match(await (await fetch(data['master_url'])).json(), { code: 'FILE_NOT_FOUND' })
})

t.test('Express serves it below a path, beside routes of its own', async (t) => {
  const playbackSecret = createSecret()
  const { server, serve, origin, hmacSecret } = await start(t, '/live', { playbackSecret })
  const app = express()
  app.get('/live/own', (_request, response) => response.send('of the application'))
  app.use('/parsed', express.json(), server.handler)
  app.use('/live', server.handler)
  app.use(express.json(), (request, response) => response.status(404).json({ body: request.body }))
  await serve(app)
  const started = await callApi(
    `${origin}/live`,
    'start-stream',
    { stream_id: 'studio' },
    hmacSecret,
  )
  const { srt_url: srtUrl, master_url: masterUrl } = started.body.data
  t.equal(masterUrl, `${origin}/live/video/studio/master.m3u8`)
  publishDemo(t, srtUrl)
  t.equal((await fetch(masterUrl)).status, 403, 'viewers need a token')
  const expiresAt = new Date(Date.now() + 600_000)
  const token = signPlaybackToken({ streamId: 'studio', secret: playbackSecret, expiresAt })
  await play(t, masterUrl.replace('/live/', `/live/t/${token}/`))

  t.equal(await (await fetch(`${origin}/live/own`)).text(), 'of the application')
  const post = (path: string) => {
    const headers = { 'content-type': 'application/json', 'lt-signature': '0'.repeat(64) }
    return fetch(origin + path, { method: 'POST', headers, body: '{"a":1}' })
  }
  const unknown = await post('/live/other')
  t.match([unknown.status, await unknown.json()], [404, { body: { a: 1 } }], 'with its body')
  const parsed = await post('/parsed/api/start-stream')
  t.match([parsed.status, await parsed.json()], [400, { error: /before they are parsed/ }])
})

t.test('what no server has a route for goes through each of them once', async (t) => {
  const [first, second] = [await start(t), await start(t)]
  let passes = 0
  await first.serve((request, response) => {
    first.server.handler(request, response, () => {
      passes++
      second.server.handler(request, response)
    })
  })
  const reply = await fetch(`${first.origin}/other`)
  t.match([reply.status, await reply.json()], [404, { code: 'ROUTE_NOT_FOUND' }])
  t.equal(passes, 1)
  t.equal((await fetch(`${first.origin}/admin`, { headers: { accept: 'text/html' } })).status, 404)
  t.equal(passes, 2, '/admin is of the application')
})

t.test('http: true or 0 opens no port by accident', async (t) => {
  const secrets = { hmacSecret: createSecret(), jwtSecret: createSecret() }
  const expected = { code: 'CONFIG_INVALID', message: 'http must be an object or false' }
  for (const http of [true, 0])
    await t.rejects(createServer({ ...secrets, http } as never), expected, String(http))
})

t.test('http: false needs the URL of the application', async (t) => {
  const secrets = { hmacSecret: createSecret(), jwtSecret: createSecret() }
  const options = { ...secrets, http: false, srt: { port: 0 }, logLevel: 'silent' } as const
  await t.rejects(createServer(options), {
    code: 'CONFIG_INVALID',
    message: 'public.url is not set and http is false: expected the URL of the application',
  })
  const inCluster = {
    ...{ redisUrl: 'redis://127.0.0.1', clusterSecret: createSecret() },
    public: { url: 'https://example.org' },
  }
  await t.rejects(createServer({ ...options, ...inCluster }), {
    message: /^nodeUrl is not set and http is false/,
  })
})
