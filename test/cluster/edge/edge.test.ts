/**
 * An edge in front of a stream whose parts the test publishes: the same answers, and requests at the origin that do not
 * depend on the number of viewers.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { BlockList, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { StreamFiles } from '../../../src/hls/store/file-store.ts'
import type { DeliveryDirectives } from '../../../src/playback/playback-source.ts'
import { LiveStore, type LiveStoreOptions } from '../../playback/live-store.ts'
import {
  call,
  json,
  MemoryService,
  MemoryStream,
  startApp,
  type Reply,
} from '../../http/memory-service.ts'
import { until } from '../../support/until.ts'
import { createStream, GopEncoder } from '../../stream/gops.ts'
import { startEdge } from './edge-app.ts'

/** A stream with segment 7 of three parts complete, and two parts of segment 8. */
async function serve(t: Test, options: LiveStoreOptions = {}) {
  const live = new LiveStore(options)
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  for (let part = 0; part < 2; part++) live.addPart()
  const service = new MemoryService()
  service.stored.set('demo', live)
  const origin = await startApp(t, service)
  const edge = await startEdge(t, origin.url)
  const ask = (path: string, headers = {}, method = 'GET') =>
    Promise.all([origin, edge].map((app) => call(app, method, `/video/${path}`, { headers })))
  return { live, service, origin, edge, ask }
}

/** Requests that begin to wait for files of a stream from now on. */
function waitsFor(
  files: Partial<Pick<StreamFiles, 'wait'>>,
): { name: string; directives: DeliveryDirectives }[] {
  const waits: { name: string; directives: DeliveryDirectives }[] = []
  const wait = files.wait!.bind(files)
  files.wait = (name, directives, onOver) => {
    waits.push({ name, directives })
    return wait(name, directives, onOver)
  }
  return waits
}

/** What must not differ. */
function essence({ status, body, headers }: Reply) {
  const { date: _date, connection: _, 'keep-alive': __, ...rest } = headers
  return { status, headers: rest, body: body.toString('latin1') }
}

t.test('answers like the origin, byte for byte', async (t) => {
  const { ask } = await serve(t)
  const gzip = { 'accept-encoding': 'gzip' }
  const br = { 'accept-encoding': 'gzip, br' }
  for (const [path, headers, method] of [
    ['demo/playlist.m3u8'],
    ['demo/playlist.m3u8', gzip],
    ['demo/playlist.m3u8', br],
    ['demo/playlist.m3u8', { ...br, 'if-none-match': '"7.2-br"' }],
    ['demo/playlist.m3u8', {}, 'HEAD'],
    ['demo/playlist.m3u8', { 'if-none-match': '"7.2"' }],
    ['demo/playlist.m3u8?_HLS_msn=8&_HLS_part=1'],
    ['demo/playlist.m3u8?_HLS_msn=5'],
    ['demo/playlist.m3u8?_HLS_msn=20'],
    ['demo/playlist.m3u8?_HLS_msn=x'],
    ['demo/playlist.m3u8?_HLS_skip=YES'],
    ['demo/playlist.m3u8?_HLS_skip=YES', gzip],
    ['demo/playlist.m3u8?_HLS_skip=YES', br],
    ['demo/playlist.m3u8?_HLS_msn=8&_HLS_part=1&_HLS_skip=v2&CMCD=sid%3D%22a%22'],
    ['demo/master.m3u8', gzip],
    ['demo/a-p0.m4s'],
    ['demo/a-p1.m4s', { range: 'bytes=10-19' }],
    ['demo/a-p1.m4s', { range: 'bytes=5000-' }],
    ['demo/a-p1.m4s', {}, 'HEAD'],
    ['demo/a-p99.m4s'],
    ['demo/video-2.m3u8'],
    ['demo/..%2f'],
    ['nobody/playlist.m3u8'],
    ['nobody/a.ts'],
  ] as [string, object?, string?][]) {
    const [origin, edge] = await ask(path, headers, method)
    t.strictSame(essence(edge!), essence(origin!), `${method ?? 'GET'} ${path}`)
  }
})

t.test('the first parts play at an edge while playlists without parts wait', async (t) => {
  const { stream, publish } = createStream({ formats: ['ts', 'cmaf'], partSec: 0.2 })
  const service = new MemoryService()
  service.stored.set('demo', stream)
  const waits = waitsFor(stream.files)
  const edge = await startEdge(t, (await startApp(t, service)).url)
  const ask = async (name: string) => {
    const { status, body } = await call(edge, 'GET', `/video/demo/${name}`)
    return { status, text: body.toString() }
  }
  const master = ask('master.m3u8')
  const whole = ask('playlist.m3u8')
  await until('both wait', () => waits.length === 2)
  const [publication, encoder] = [publish(), new GopEncoder()]
  publication.push(encoder.encode([2, 2, 1]))
  t.match(await master, { status: 200, text: /cmaf-video-1\.m3u8/ })
  const parts = await ask('cmaf-video-1.m3u8')
  t.match(parts, { status: 200, text: /#EXTINF:2\.0.*\n.*\n(#EXT-X-.*\n)*#EXT-X-PART:/ })
  const [, part] = /#EXT-X-PART:.*URI="([^"]*)"/.exec(parts.text)!
  t.equal((await ask(part!)).status, 200)
  t.equal(stream.live, false)
  publication.push(encoder.encode([1, 2, 1]))
  t.match(await whole, { status: 200, text: /(#EXTINF[^]*){3}/ })
  await until('the edge follows', async () => {
    return !(await ask('master.m3u8')).text.includes('CLOSED-CAPTIONS=NONE')
  })
})

t.test('waits for CMAF parts that a playlist hints, with its directives', async (t) => {
  const { live, edge, ask } = await serve(t, { rendition: 'cmaf-video-1' })
  for (const query of ['', '?_HLS_msn=8&_HLS_part=1', '?_HLS_msn=20', '?_HLS_skip=YES']) {
    const [origin, passed] = await ask(`demo/cmaf-video-1.m3u8${query}`)
    t.strictSame(essence(passed!), essence(origin!), query)
  }
  const { hint } = live
  const part = call(edge, 'GET', `/video/demo/${hint}`)
  const next = call(edge, 'GET', '/video/demo/cmaf-video-1.m3u8?_HLS_msn=8&_HLS_part=2')
  await until('requests at the origin', () => live.files.waiters === 2)
  live.addPart()
  t.match(await part, { status: 200 })
  t.match((await next).body.toString(), '#7.3\n')
  t.match(hint, /^a-v1-p\d+\.m4s$/)
})

t.test(
  'CMAF media has the type, lifetime and ranges of the origin, and is fetched once',
  async (t) => {
    const service = new MemoryService()
    const stream = new MemoryStream()
    service.streams.set('demo', stream)
    const file = (contentType: string, text: string) => ({
      ...{
        contentType,
        chunks: [Buffer.from(text)],
        version: text,
        maxAgeSec: 60,
        immutable: true,
      },
    })
    const lines = ['#EXTM3U', '#EXT-X-MAP:URI="e-a1-a.mp4"', '#EXTINF:2,', 'e-a1-7.m4s', '']
    const playlist = file('application/vnd.apple.mpegurl', lines.join('\n'))
    stream.files.set('cmaf-audio-1.m3u8', { ...playlist, version: '1', immutable: false })
    stream.files.set('e-a1-a.mp4', file('audio/mp4', 'init'))
    stream.files.set('e-a1-7.m4s', file('audio/mp4', 'segment'))
    stream.files.set('e-v1-p7.m4s', file('video/mp4', 'part'))
    const origin = await startApp(t, service)
    const edge = await startEdge(t, origin.url)
    for (const name of stream.files.keys()) {
      for (const headers of [{}, { 'accept-encoding': 'gzip' }, { range: 'bytes=1-2' }]) {
        const [own, passed] = await Promise.all(
          [origin, edge].map((app) => call(app, 'GET', `/video/demo/${name}`, { headers })),
        )
        t.strictSame(essence(passed!), essence(own!), name)
      }
    }
    const init = await call(edge, 'GET', '/video/demo/e-a1-a.mp4')
    stream.files.delete('e-a1-a.mp4')
    t.strictSame(essence(await call(edge, 'GET', '/video/demo/e-a1-a.mp4')), essence(init))
    t.match(init.headers, { 'content-type': 'audio/mp4', 'cache-control': /immutable/ })
  },
)

t.test('releases waiting viewers with one request at the origin', async (t) => {
  const { live, edge } = await serve(t)
  await call(edge, 'GET', '/video/demo/playlist.m3u8')
  const { hint } = live
  const atOrigin = waitsFor(live.files)
  const atEdge = waitsFor(edge.edge.open.findStream('demo')!.files)
  const viewers = Array.from({ length: 50 }, () =>
    call(edge, 'GET', '/video/demo/playlist.m3u8?_HLS_msn=8&_HLS_part=2'),
  )
  const parts = Array.from({ length: 50 }, () => call(edge, 'GET', `/video/demo/${hint}`))
  await until('all viewers', () => atEdge.length === 100)
  await until('requests at the origin', () => live.files.waiters === 2)
  live.addPart()
  for (const { status, body } of await Promise.all(viewers)) {
    t.match([status, body.toString()], [200, '#7.3'])
  }
  t.same(
    (await Promise.all(parts)).map(({ status }) => status),
    parts.map(() => 200),
  )
  t.equal(atOrigin.filter(({ name }) => name === hint).length, 1, 'one for the part')
  const passed = atOrigin.filter(({ directives }) => directives.mediaSequence !== undefined)
  t.strictSame(passed, [], 'of those for the playlist, the one that follows it')
})

t.test('releases a viewer who waits for a delta update', async (t) => {
  const { live, origin, edge } = await serve(t)
  await call(edge, 'GET', '/video/demo/playlist.m3u8')
  const atEdge = waitsFor(edge.edge.open.findStream('demo')!.files)
  for (let part = 2; part < 5; part++) {
    atEdge.length = 0
    const path = `/video/demo/playlist.m3u8?_HLS_msn=8&_HLS_part=${part}&_HLS_skip=YES`
    const viewers = Array.from({ length: 20 }, () => call(edge, 'GET', path))
    await until('all viewers', () => atEdge.length === 20)
    await until('the request at the origin', () => live.files.waiters === 1)
    live.addPart()
    const direct = essence(await call(origin, 'GET', path))
    for (const viewer of viewers) t.strictSame(essence(await viewer), direct)
  }
})

t.test('names that do not exist leave room for those that do', async (t) => {
  const { origin } = await serve(t)
  let nowUs = 0
  const edge = await startEdge(t, origin.url, { clock: { nowUs: () => nowUs, wallMs: () => 0 } })
  const bogus = Array.from({ length: 150 }, (_, n) => `/video/demo/nope${n}.m3u8`)
  for (const path of bogus) await call(edge, 'GET', path)
  // A failure answers for 250 ms.
  nowUs = 250_000
  t.equal((await call(edge, 'GET', '/video/demo/playlist.m3u8')).status, 200)
})

t.test('four clients who guess names do not keep others from streams', async (t) => {
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  const service = new MemoryService()
  service.stored.set('demo', live)
  const origin = await startApp(t, service)
  const trustProxy = new BlockList()
  trustProxy.addAddress('127.0.0.1')
  // What is used up does not come back while the clock stands still.
  const clock = { nowUs: () => 0, wallMs: () => 0 }
  const edge = await startEdge(t, origin.url, { trustProxy, clock })
  const ask = async (client: string, path: string) => {
    const headers = { 'x-forwarded-for': client }
    return (await call(edge, 'GET', `/video/${path}`, { headers })).status
  }
  const guessers = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']
  const statuses = new Set<number>()
  for (let n = 0; n < 760; n += 20) {
    const names = Array.from({ length: 20 }, (_, each) => `x${n + each}/playlist.m3u8`)
    const asked = guessers.flatMap((client) => names.map((name) => ask(client, name)))
    for (const status of await Promise.all(asked)) statuses.add(status)
  }
  t.strictSame(statuses, new Set([404, 503]))
  t.equal(await ask('192.0.2.5', 'demo/playlist.m3u8'), 200)
  t.equal(await ask('192.0.2.1', 'demo/playlist.m3u8'), 200, 'what is known is not limited')
})

t.test('follows a playlist: a new version is there without a request', async (t) => {
  const { live, edge } = await serve(t)
  const read = async () => (await call(edge, 'GET', '/video/demo/playlist.m3u8')).body.toString()
  t.match(await read(), '#7.2')
  await until('the next request', () => live.files.waiters === 1)
  live.addPart()
  await until('the next request', () => live.files.waiters === 1)
  const { rendered } = live
  t.match(await read(), '#7.3')
  t.equal(live.rendered, rendered)
})

t.test(
  'serves the last playlist while the origin is away, for three target durations',
  async (t) => {
    const live = new LiveStore()
    for (let part = 0; part < 3; part++) live.addPart()
    live.endSegment()
    const service = new MemoryService()
    service.stored.set('demo', live)
    const origin = await startApp(t, service)
    let nowUs = 0
    const edge = await startEdge(t, origin.url, { clock: { nowUs: () => nowUs, wallMs: () => 0 } })
    const read = () => call(edge, 'GET', '/video/demo/playlist.m3u8')
    t.equal((await read()).status, 200)
    t.equal((await call(edge, 'GET', '/video/demo/a-p0.m4s')).status, 200)
    await origin.close()
    const isAway = async () => (await call(edge, 'GET', '/health/ready')).status === 503
    await until('the edge knows', isAway)
    nowUs = 5_900_000
    t.equal((await read()).status, 200, 'before 6 s')
    nowUs = 6_100_000
    const refused = await read()
    t.equal(refused.status, 503)
    t.equal(refused.headers['retry-after'], '1')
    t.equal(json(refused).code, 'ORIGIN_UNREACHABLE')
    t.equal((await call(edge, 'GET', '/video/demo/a-p0.m4s')).status, 200, 'media is immutable')
  },
)

t.test('asks the origin once for what it does not have, for 250 ms', async (t) => {
  const { service, edge } = await serve(t)
  const ask = () => call(edge, 'GET', '/video/nobody/a.ts')
  service.lookUps.length = 0
  const sinceMs = performance.now()
  await Promise.all(Array.from({ length: 20 }, ask))
  await ask()
  const tookMs = performance.now() - sinceMs
  const { length } = service.lookUps
  t.ok(length > 0 && length <= 1 + tookMs / 250, `${length} in ${tookMs} ms`)
  await until('the next request', async () => {
    t.equal((await ask()).status, 404)
    return service.lookUps.length > length
  })
  t.equal(service.lookUps.length, length + 1)
})

t.test('survives an origin that talks nonsense', async (t) => {
  const replies: Record<string, [Record<string, string>, string]> = {
    'gzip.m3u8': [{ 'content-encoding': 'gzip' }, 'no gzip'],
    'empty.m3u8': [{}, ''],
    'binary.m3u8': [{ etag: 'x' }, '\0\xff'.repeat(1000)],
  }
  const server = createServer((request, reply) => {
    const [headers, body] = replies[request.url!.split('/').at(-1)!]!
    reply.writeHead(200, { 'content-type': 'application/vnd.apple.mpegurl', ...headers }).end(body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const edge = await startEdge(t, `http://127.0.0.1:${port}`)
  const statuses = await Promise.all(
    Object.keys(replies).map(
      async (name) => (await call(edge, 'GET', `/video/demo/${name}`)).status,
    ),
  )
  t.same(statuses, [503, 200, 200])
})

t.test('ends a request at the origin that nobody waits for any more', async (t) => {
  const [open, asked]: [Set<string>, string[]] = [new Set(), []]
  const server = createServer(({ url = '' }, reply) => {
    asked.push(url)
    open.add(url)
    reply.once('close', () => open.delete(url))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const edge = await startEdge(t, `http://127.0.0.1:${port}`)
  const read = (name: string) => {
    const viewer = new AbortController()
    t.teardown(() => viewer.abort())
    fetch(`${edge.url}/video/demo/${name}`, viewer).catch(() => undefined)
    return viewer
  }
  const [first, , other] = [read('a.ts'), read('a.ts'), read('b.ts')]
  await until('one request for each file', () => open.size === 2)
  first.abort()
  other.abort()
  await until('no reader', () => !open.has('/video/demo/b.ts'))
  // After 12 s without a response both would be over.
  t.strictSame([...open], ['/video/demo/a.ts'])
  read('b.ts')
  await until('the next reader', () => asked.length === 3)
})
