/**
 * Requests that wait for media (RFC 8216bis 6.2.5, 6.2.6), over HTTP/1.1 and HTTP/2.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { playlistUri, type RenditionName } from '../../src/hls/file-names.ts'
import type { FileStore } from '../../src/hls/store/file-store.ts'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { callStream, openSession } from '../http/http2-client.ts'
import { LiveStore, type LiveStoreOptions } from './live-store.ts'
import {
  call,
  json,
  MemoryService,
  MemoryStream,
  speak,
  startApp,
  startHttpsApp,
  type Reply,
} from '../http/memory-service.ts'

/** A stream with segment 7 of three parts complete, and two parts of segment 8. */
async function serve(t: Test, { start = startApp, ...options }: Options = {}) {
  const live = new LiveStore(options)
  for (let part = 0; part < 3; part++) live.addPart()
  live.endSegment()
  for (let part = 0; part < 2; part++) live.addPart()
  const service = new MemoryService()
  service.stored.set('demo', live)
  const app = await start(t, service)
  const ask = (query: string, headers = {}) =>
    call(app, 'GET', `/video/demo/playlist.m3u8${query}`, { headers })
  return { app, live, ask }
}

const KEPT_BY_CACHES = 'public, max-age=0, s-maxage=12'

interface Options extends LiveStoreOptions {
  readonly start?: typeof startApp | typeof startHttpsApp
}

const waiting = (live: LiveStore, count: number) =>
  until(`${count} waiting`, () => live.files.waiters === count)

t.test('answers at once what the playlist has (RFC 8216bis 6.2.5.2)', async (t) => {
  const { ask } = await serve(t)
  for (const query of [
    '?_HLS_msn=0',
    '?_HLS_msn=7',
    '?_HLS_msn=7&_HLS_part=2',
    '?_HLS_msn=7&_HLS_part=3',
    '?_HLS_msn=8&_HLS_part=0',
    '?_HLS_msn=8&_HLS_part=1',
    '?_HLS_part=1&_HLS_msn=8&_=x&_HLS_report=1&_HLS_push=0',
  ]) {
    const reply = await ask(query)
    t.equal(reply.status, 200, query)
    t.match(reply.body.toString(), '#7.2\n', query)
    t.equal(reply.headers['cache-control'], KEPT_BY_CACHES, '6 target durations (B.1)')
  }
  const plain = await ask('?_=1')
  t.equal(plain.headers['cache-control'], 'public, max-age=1', 'without directives')
})

t.test('waits for a part, and for a segment', async (t) => {
  const { ask, live } = await serve(t)
  const replies = ['?_HLS_msn=8&_HLS_part=2', '?_HLS_msn=8', '?_HLS_msn=9&_HLS_part=0'].map(ask)
  await waiting(live, 3)
  live.addPart()
  t.match((await replies[0]!).body.toString(), '#7.3\n')
  t.equal(live.files.waiters, 2)
  live.endSegment()
  t.match((await replies[1]!).body.toString(), '#8.0\n')
  live.addPart()
  const last = await replies[2]!
  t.match(last.body.toString(), '#8.1\n')
  t.match(last.headers, { etag: '"8.1"', 'cache-control': KEPT_BY_CACHES })
})

t.test('answers with playlists of audio after those of video', async (t) => {
  const { app, live } = await serve(t, { rendition: 'cmaf-video-1' })
  const audio = new LiveStore({ rendition: 'cmaf-audio-1' })
  audio.endSegment()
  app.service.stored.set('audio', audio)
  const answered: string[] = []
  const ask = async (stream: string, name: RenditionName) => {
    await call(app, 'GET', `/video/${stream}/${playlistUri(name)}?_HLS_msn=8&_HLS_part=2`)
    answered.push(name)
  }
  for (let part = 0; part < 2; part++) audio.addPart()
  const replies = [ask('audio', 'cmaf-audio-1'), ask('demo', 'cmaf-video-1')]
  await waiting(live, 1)
  await waiting(audio, 1)
  audio.addPart()
  live.addPart()
  await Promise.all(replies)
  t.same(answered, ['cmaf-video-1', 'cmaf-audio-1'])
})

t.test('waits for the part that is hinted, and answers it whole (6.2.6)', async (t) => {
  const { app, live } = await serve(t)
  const part = call(app, 'GET', `/video/demo/${live.hint}`)
  const head = call(app, 'HEAD', `/video/demo/${live.hint}`)
  await waiting(live, 2)
  live.addPart(200_000)
  t.match(await head, { status: 200, headers: { 'content-length': '200000' } })
  const reply = await part
  t.equal(reply.status, 200)
  t.equal(reply.body.length, 200_000)
  t.match(reply.headers, { 'content-type': 'video/mp2t', 'content-length': '200000' })
  const unknown = await call(app, 'GET', '/video/demo/a-p99.m4s')
  t.match(json(unknown), { code: 'FILE_NOT_FOUND' }, 'a part that is not hinted')
})

t.test('a CMAF part is waited for as long as the playlist of its rendition says', async (t) => {
  for (const rendition of ['cmaf-video-2', 'cmaf-audio-1'] as const) {
    const { app, live } = await serve(t, { rendition, maxWaitMs: 100 })
    const other = new LiveStore({ rendition, maxWaitMs: 2000 })
    other.endSegment()
    app.service.stored.set('other', other)
    const ask = (path: string) => call(app, 'GET', `/video/${path}`)
    const patient = ask(`other/${playlistUri(rendition)}?_HLS_msn=8`)
    const first = await Promise.race([patient, ask(`demo/${live.hint}`)])
    t.match(json(first), { code: 'MEDIA_LATE' })
    t.not(first, await patient, 'not for 9 s')
  }
})

t.test('a stream without playlist.m3u8 has other files, or not', async (t) => {
  const { app } = await serve(t, { rendition: 'cmaf-video-1' })
  const absent = await call(app, 'GET', '/video/demo/a-v1-p99.m4s')
  t.match(json(absent), { code: 'FILE_NOT_FOUND', error: 'no such file' })
  t.notOk(absent.headers['retry-after'])
})

t.test('sends a delta update on request', async (t) => {
  const { ask, live } = await serve(t)
  for (const value of ['YES', 'v2']) {
    t.match((await ask(`?_HLS_skip=${value}`)).body.toString(), '#7.2 delta\n', value)
  }
  t.match((await ask('?_HLS_skip=NO')).body.toString(), '#7.2\n')
  const reply = ask('?_HLS_msn=8&_HLS_part=2&_HLS_skip=YES', { 'accept-encoding': 'gzip' })
  await waiting(live, 1)
  live.addPart()
  t.match(gunzipSync((await reply).body).toString(), '#7.3 delta\n')
})

t.test('refuses malformed directives with 400', async (t) => {
  const { ask } = await serve(t)
  const cases: [query: string, error: string][] = [
    ['?_HLS_part=1', '_HLS_part requires _HLS_msn'],
    ['?_HLS_msn=', '_HLS_msn must be one whole number'],
    ['?_HLS_msn=-1', '_HLS_msn must be one whole number'],
    ['?_HLS_msn=8.5', '_HLS_msn must be one whole number'],
    ['?_HLS_msn=9999999999999999', '_HLS_msn must be one whole number'],
    ['?_HLS_msn=8&_HLS_msn=8', '_HLS_msn must be one whole number'],
    ['?_HLS_msn=8&_HLS_part=x', '_HLS_part must be one whole number'],
  ]
  for (const [query, error] of cases) {
    const reply = await ask(query)
    t.equal(reply.status, 400, query)
    t.match(json(reply), { success: false, error, code: 'DIRECTIVES_INVALID' }, query)
    t.equal(reply.headers['access-control-allow-origin'], '*')
  }
})

t.test('refuses what is too far ahead with 400 (6.2.5.2)', async (t) => {
  const { ask } = await serve(t)
  for (const query of ['?_HLS_msn=10', '?_HLS_msn=99999', '?_HLS_msn=8&_HLS_part=8']) {
    const reply = await ask(query)
    t.equal(reply.status, 400, query)
    t.match(json(reply), { code: 'MEDIA_TOO_FAR_AHEAD' })
    t.equal(reply.headers['cache-control'], 'public, max-age=1')
  }
})

t.test('ignores directives of playlists that do not offer to wait', async (t) => {
  const service = new MemoryService()
  const stream = new MemoryStream()
  const file = { chunks: [Buffer.from('#EXTM3U\n')], version: '1', targetDurationSec: 2 }
  stream.files.set('playlist.m3u8', createStreamFile('media-playlist', file))
  service.streams.set('classic', stream)
  const live = new LiveStore()
  live.publish()
  service.stored.set('demo', live)
  const app = await startApp(t, service)
  for (const query of ['_HLS_msn=99', '_HLS_part=1', '_HLS_msn=x', '_HLS_skip=YES']) {
    for (const path of ['/video/classic/playlist.m3u8', '/video/demo/master.m3u8']) {
      const reply = await call(app, 'GET', `${path}?${query}`)
      t.equal(reply.status, 200, `${path} ${query}`)
      t.not(reply.headers['cache-control'], KEPT_BY_CACHES)
    }
  }
})

t.test('answers 503 with Retry-After to a wait beyond its limit (6.2.5.2)', async (t) => {
  const { app, ask, live } = await serve(t, { maxWaitMs: 100 })
  for (const reply of await Promise.all([
    ask('?_HLS_msn=8&_HLS_part=2'),
    call(app, 'GET', `/video/demo/${live.hint}`),
  ])) {
    t.equal(reply.status, 503)
    t.match(json(reply), { code: 'MEDIA_LATE' })
    t.match(reply.headers, { 'retry-after': '1', 'cache-control': 'public, max-age=1' })
  }
  t.equal(live.files.waiters, 0)
})

t.test('a request that waits goes on with the next owner, for the time it has left', async (t) => {
  const { app, live, ask } = await serve(t, { maxWaitMs: 2000 })
  const next = new LiveStore({ maxWaitMs: 9000 })
  next.endSegment()
  app.service.stored.set('next', next)
  const other = call(app, 'GET', '/video/next/playlist.m3u8?_HLS_msn=8')
  await waiting(next, 1)
  const moved = ask('?_HLS_msn=8')
  await waiting(live, 1)
  app.service.stored.set('demo', next)
  Object.assign(live, { hasLeft: true })
  live.files.end()
  await waiting(next, 2)
  t.match(json(await moved), { code: 'MEDIA_LATE' })
  t.equal(next.files.waiters, 1, 'before one that has waited there for longer')
  next.endSegment()
  t.equal((await other).status, 200)
})

t.test('holds a request before the first segment for 9 s, then answers 404', async (t) => {
  const service = new MemoryService()
  const [empty, started, early] = [new LiveStore(), new LiveStore(), new LiveStore()]
  service.stored.set('empty', empty).set('started', started).set('early', early)
  early.publishMaster('master.m3u8')
  const app = await startApp(t, service)
  const startMs = performance.now()
  const timers = t.capture(globalThis, 'setTimeout', setTimeout)
  const names = ['playlist.m3u8', 'master.m3u8', 'playlist.m3u8?_HLS_msn=7']
  const late = Promise.all(
    [...names.map((name) => `empty/${name}`), 'early/playlist.m3u8'].map((path) =>
      call(app, 'GET', `/video/${path}`),
    ),
  )
  const held = call(app, 'GET', '/video/started/playlist.m3u8')
  await waiting(started, 1)
  started.addPart()
  t.equal((await held).status, 200)
  const other = await call(app, 'GET', '/video/empty/video-2.m3u8')
  t.equal(other.status, 404, 'at once for a playlist that may never be')
  t.equal((await call(app, 'GET', '/video/early/master.m3u8')).status, 200)
  for (const reply of await late) {
    t.equal(reply.status, 404)
    t.match(json(reply), { error: 'the stream has no playlist yet' })
    t.match(reply.headers, { 'retry-after': '1' })
  }
  const heldMs = performance.now() - startMs
  t.ok(heldMs >= 8900, `${Math.round(heldMs)} ms`)
  // How late a timer is depends on the machine.
  const waits = timers().filter(({ args: [, ms] }) => Math.round(ms ?? 0) === 9000)
  t.equal(waits.length, 5)
  t.strictSame(app.log, [])
})

t.test('the end of the stream releases all that wait', async (t) => {
  const { app, ask, live } = await serve(t)
  const playlist = ask('?_HLS_msn=9')
  const part = call(app, 'GET', `/video/demo/${live.hint}`)
  await waiting(live, 2)
  live.files.end()
  t.equal((await playlist).status, 200)
  t.equal((await part).status, 404)
  t.equal((await ask('?_HLS_msn=9')).status, 200, 'directives are ignored from then on')
})

t.test('the end of the server releases all that wait', async (t) => {
  const { app, ask, live } = await serve(t)
  const replies = [ask('?_HLS_msn=8'), call(app, 'GET', `/video/demo/${live.hint}`)]
  await waiting(live, 2)
  await Promise.all([app.close(), ...replies])
  for (const reply of replies) {
    t.match(json(await reply), { code: 'SHUTTING_DOWN' })
    t.equal((await reply).headers['cache-control'], 'no-store', 'another node may answer')
  }
  t.equal(live.files.waiters, 0)
})

t.test('the end of the service releases requests before the first segment', async (t) => {
  const { server, url } = await startService(t)
  await server.startStream({ streamId: 'studio' })
  const files = server.findStream('studio')!.files as FileStore
  const held = fetch(`${url}/video/studio/playlist.m3u8`)
  await until('it waits', () => files.waiters === 1)
  await server.close()
  t.equal((await held).status, 404, 'by the end of its stream')
})

t.test('forgets a client that leaves', async (t) => {
  for (const start of [startApp, startHttpsApp]) {
    const { app, live } = await serve(t, { start })
    const leave: (() => void)[] = []
    if (start === startApp) {
      for (const method of ['GET', 'HEAD']) {
        const socket = connect(app.port, '127.0.0.1')
        socket.write(`${method} /video/demo/playlist.m3u8?_HLS_msn=8 HTTP/1.1\r\nHost: x\r\n\r\n`)
        leave.push(() => socket.destroy())
      }
    } else {
      const session = await openSession(t, app)
      for (const method of ['GET', 'HEAD']) {
        const path = '/video/demo/playlist.m3u8?_HLS_msn=8'
        const stream = session.request({ ':method': method, ':path': path })
        stream.on('error', () => undefined)
        leave.push(() => stream.close(8))
      }
    }
    await waiting(live, 2)
    for (const act of leave) act()
    await waiting(live, 0)
    t.strictSame(app.log, [])
  }
})

t.test(
  'requests of one connection wait in order over HTTP/1.1, together over HTTP/2',
  async (t) => {
    const { app, live } = await serve(t)
    const get = (query: string, more = '') =>
      `GET /video/demo/playlist.m3u8?${query} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    const answer = speak(
      app,
      get('_HLS_msn=8&_HLS_part=2') + get('_HLS_msn=8&_HLS_part=3', 'Connection: close\r\n'),
    )
    await waiting(live, 1)
    live.addPart()
    await waiting(live, 1)
    live.addPart()
    t.match(await answer, /#7\.3\n.*#7\.4\n/s)

    const second = await serve(t, { start: startHttpsApp })
    const session = await openSession(t, second.app)
    const path = '/video/demo/playlist.m3u8?_HLS_msn=8'
    const replies = Array.from({ length: 100 }, () => callStream(session, 'GET', path))
    await waiting(second.live, 100)
    second.live.endSegment()
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    t.ok(
      statuses.every((status) => status === 200),
      'as many as HTTP/2 allows, of the viewers behind a proxy',
    )
  },
)

t.test('answers 503 where the stream has as many readers as may wait', async (t) => {
  const { ask, live } = await serve(t, { maxWaiters: 1 })
  const first = ask('?_HLS_msn=8')
  await waiting(live, 1)
  const reply = await ask('?_HLS_msn=8')
  t.equal(reply.status, 503)
  t.match(json(reply), { code: 'TOO_MANY_WAITING' })
  t.match(reply.headers, { 'retry-after': '1', 'cache-control': 'no-store' })
  live.endSegment()
  t.equal((await first).status, 200)
})

t.test('renders once for 500 that wait, and answers at most 48 of them per turn', async (t) => {
  const { app, live } = await serve(t)
  const lend = live.files.lend.bind(live.files)
  let turn = 0
  const turns: number[] = []
  live.files.lend = (...asked) => {
    turns.push(turn)
    return lend(...asked)
  }
  const paths = ['/video/demo/playlist.m3u8?_HLS_msn=8&_HLS_part=2', `/video/demo/${live.hint}`]
  const replies = Array.from({ length: 500 }, (_, index) =>
    call(app, 'GET', paths[index % 2]!, { headers: { 'accept-encoding': 'gzip' } }),
  )
  await waiting(live, 500)
  const rendered = live.rendered
  turns.length = 0
  live.addPart()
  while (turns.length < 500) {
    await nextTurn()
    turn++
  }
  const statuses = new Set((await Promise.all(replies)).map(({ status }: Reply) => status))
  t.strictSame([...statuses], [200])
  t.equal(live.rendered - rendered, 1)
  const counts = new Map<number, number>()
  for (const each of turns) counts.set(each, (counts.get(each) ?? 0) + 1)
  t.ok(Math.max(...counts.values()) <= 48, `at most ${Math.max(...counts.values())} in a turn`)
})

t.test('idle limits do not cut a connection that waits', async (t) => {
  let nowMs = 0
  const live = new LiveStore()
  live.addPart()
  const service = new MemoryService()
  service.stored.set('demo', live)
  const app = await startApp(t, service, { clock: { nowUs: () => nowMs * 1000 } })
  const reply = call(app, 'GET', '/video/demo/playlist.m3u8?_HLS_msn=7')
  await waiting(live, 1)
  nowMs += 100_000
  const idle = connect(app.port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => idle.destroy())
  await once(idle, 'connect')
  await until('a sweep', () => {
    nowMs += 80_000
    return app.guard.report().expired === 1
  })
  live.endSegment()
  t.equal((await reply).status, 200)
})
