/**
 * Requests one after the other on a connection, as players send them: files, refusals, waits, and the end of the server.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import type { PlayableStream } from '../../src/playback/playback-source.ts'
import { until } from '../support/until.ts'
import { LiveStore } from '../playback/live-store.ts'
import { MemoryService, startApp, type TestApp } from './memory-service.ts'

/** More than the buffers of the kernel hold for one connection, which is 4 MiB. */
const LONG_BYTES = 8 * 1024 * 1024

const HEADERS = 'Host: x\r\nAccept-Encoding: gzip\r\n\r\n'
const PLAYLIST = `GET /video/demo/playlist.m3u8 HTTP/1.1\r\n${HEADERS}`
/** Playlists that need no wait. */
const DIRECTIVES = [
  'playlist.m3u8?_HLS_msn=7',
  'playlist.m3u8?_HLS_skip=YES',
  'playlist.m3u8?b=1&_HLS_msn=6&_HLS_part=1',
]
const SEGMENT = `GET /video/demo/a-7.ts HTTP/1.1\r\n${HEADERS}`

/** Application whose viewers need no reports, so that no request needs the router. */
async function serve(t: Test) {
  const live = new LiveStore()
  for (let part = 0; part < 3; part++) live.addPart(100_000)
  const chunks = [Buffer.alloc(100_000, 1), Buffer.alloc(100_000, 2)]
  live.files.put('a-7.ts', createStreamFile('segment', { chunks, ...media('a-7') }), 0)
  const long = [Buffer.alloc(LONG_BYTES, 3)]
  live.files.put('a-8.ts', createStreamFile('segment', { chunks: long, ...media('a-8') }), 0)
  live.endSegment()
  const service = new MemoryService()
  service.stored.set('demo', live)
  Object.assign(service, { countViewer: undefined })
  const sent: string[] = []
  const onSent = (_: PlayableStream, name: string, sizeBytes: number) =>
    void sent.push(`${name} ${sizeBytes}`)
  const app = await startApp(t, service, {}, undefined, { onSent })
  return { app, live, service, sent }
}

function media(version: string) {
  return { version, targetDurationSec: 2 }
}

class Client {
  readonly socket: Socket
  #text = ''

  constructor(t: Test, { port }: TestApp) {
    this.socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay()
    this.socket.on('data', (text: string) => void (this.#text += text))
    t.teardown(() => this.socket.destroy())
  }

  /** Sends requests, and returns their replies without the value of Date. */
  async ask(text: string, count = 1): Promise<string[]> {
    this.socket.write(text)
    const replies: string[] = []
    while (replies.length < count) {
      const length = replyLength(this.#text)
      if (length === undefined) {
        await once(this.socket, 'data')
        continue
      }
      replies.push(this.#text.slice(0, length).replace(/^Date: .*$/m, 'Date:'))
      this.#text = this.#text.slice(length)
    }
    return replies
  }
}

/** Lets the server read what was written, so that the next bytes are a read of their own. */
async function read(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await nextTurn()
}

/** @returns undefined for an incomplete reply */
function replyLength(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return undefined
  const length = head + 4 + Number(/content-length: (\d+)/i.exec(text)![1])
  return length <= text.length ? length : undefined
}

t.test('every request of a connection gets the reply of the router, to the byte', async (t) => {
  const { app, sent } = await serve(t)
  const client = new Client(t, app)
  for (const name of ['playlist.m3u8', 'a-7.ts', 'a-p0.m4s', 'a-7.ts?a=1&b=%20', ...DIRECTIVES]) {
    const request = `GET /video/demo/${name} HTTP/1.1\r\n${HEADERS}`
    // Left to the router.
    const [expected] = await client.ask(request.replace('Host', 'Prefer: wait=0\r\nHost'))
    t.strictSame(await client.ask(request), [expected], `${name}, first`)
    t.strictSame(await client.ask(request), [expected], `${name}, repeated`)
  }
  t.equal(sent.length, 21, 'all are counted')
  t.equal(new Set(sent).size, 4)
})

t.test(
  'a request waits for the next version of a playlist, and holds up the one behind it',
  async (t) => {
    const { app, live, sent } = await serve(t)
    const client = new Client(t, app)
    await client.ask(PLAYLIST)
    const next = PLAYLIST.replace('m3u8', 'm3u8?_HLS_msn=8&_HLS_part=0')
    const replies = client.ask(next, 2)
    await until('the request', () => live.files.waiters === 1)
    client.socket.write(SEGMENT)
    await read()
    t.equal(sent.length, 1, 'the one behind it has no reply')
    live.addPart()
    const [playlist, segment] = await replies
    t.match(playlist, /Cache-Control: public, max-age=0, s-maxage=12\r\n/)
    t.match(segment, /Content-Length: 200000\r\n/)
    t.strictSame(await client.ask(next), [playlist], 'the same as without a wait')
  },
)

t.test('a request that waits goes on with the next owner of its stream', async (t) => {
  const { app, live, service } = await serve(t)
  const client = new Client(t, app)
  await client.ask(PLAYLIST)
  const reply = client.ask(PLAYLIST.replace('m3u8', 'm3u8?_HLS_msn=8'))
  await until('the request', () => live.files.waiters === 1)
  const next = new LiveStore()
  next.endSegment()
  service.stored.set('demo', next)
  Object.assign(live, { hasLeft: true })
  live.files.end()
  await until('its second wait', () => next.files.waiters === 1)
  next.endSegment()
  t.match((await reply)[0], /^ETag: "8\.0/m)
  t.match((await client.ask(PLAYLIST))[0], /^ETag: "8\.0/m, 'the connection goes on')
  client.socket.destroy()
  await until('no connection', () => app.guard.report().connections === 0)
})

t.test('a client that leaves while its request waits is forgotten', async (t) => {
  const { app, live } = await serve(t)
  const client = new Client(t, app)
  await client.ask(PLAYLIST)
  client.socket.write(PLAYLIST.replace('m3u8', 'm3u8?_HLS_msn=8'))
  await until('the request', () => live.files.waiters === 1)
  client.socket.destroy()
  await until('no request', () => live.files.waiters === 0)
  await app.close()
})

t.test('the end of the server answers a request that waits', async (t) => {
  const { app, live } = await serve(t)
  const client = new Client(t, app)
  await client.ask(PLAYLIST)
  const reply = client.ask(PLAYLIST.replace('m3u8', 'm3u8?_HLS_msn=8'))
  await until('the request', () => live.files.waiters === 1)
  const closed = app.close()
  t.match((await reply)[0], /^HTTP\/1\.1 503 /)
  await closed
})

t.test('a source that fails after the wait gets 500, and is logged', async (t) => {
  const { app, live } = await serve(t)
  const client = new Client(t, app)
  await client.ask(PLAYLIST)
  const reply = client.ask(PLAYLIST.replace('m3u8', 'm3u8?_HLS_msn=8'))
  await until('the request', () => live.files.waiters === 1)
  live.files.lend = () => {
    throw new Error('broken')
  }
  live.endSegment()
  t.match((await reply)[0], /^HTTP\/1\.1 500 .*"INTERNAL"/s)
  t.equal(app.log.filter((line) => line.includes('broken')).length, 1)
})

t.test('a reply that cannot be counted is sent once', async (t) => {
  const { app, live, sent } = await serve(t)
  const lend = live.files.lend.bind(live.files)
  let lent = 0
  live.files.lend = (...file) => {
    const loan = lend(...file)
    if (loan === undefined) return undefined
    lent++
    return { ...loan, end: () => (lent--, loan.end?.()) }
  }
  const client = new Client(t, app)
  for (let n = 0; n < 3; n++) {
    sent.push = () => {
      Reflect.deleteProperty(sent, 'push')
      throw new Error('broken')
    }
    t.match((await client.ask(PLAYLIST))[0], /mpegurl/)
    t.match((await client.ask(SEGMENT))[0], /mp2t/)
  }
  await until('no file on loan', () => lent === 0)
})

t.test('requests are answered in order, in one read or split', async (t) => {
  const { app } = await serve(t)
  const client = new Client(t, app)
  const [playlist] = await client.ask(PLAYLIST)
  const [segment] = await client.ask(SEGMENT)
  t.strictSame(await client.ask(PLAYLIST + SEGMENT + PLAYLIST, 3), [playlist, segment, playlist])
  client.socket.write(SEGMENT.slice(0, 30))
  await read()
  t.strictSame(await client.ask(SEGMENT.slice(30)), [segment])
  t.strictSame(await client.ask(PLAYLIST), [playlist])
})

t.test('the end of a head is no request', async (t) => {
  const { app } = await serve(t)
  const client = new Client(t, app)
  await client.ask(PLAYLIST)
  client.socket.write('GET /video/demo/none.ts HTTP/1.1\r\nX-Header: ')
  await read()
  const [reply] = await client.ask(PLAYLIST)
  t.match(reply, /^HTTP\/1\.1 404 /)
})

t.test('a body is no request', async (t) => {
  const { app } = await serve(t)
  const client = new Client(t, app)
  await client.ask(PLAYLIST)
  const withBody = SEGMENT.replace('Host', `Content-Length: ${PLAYLIST.length}\r\nHost`)
  const [reply] = await client.ask(`${withBody}${PLAYLIST}`)
  t.match(reply, /^HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s)
  await once(client.socket, 'end')
})

/** Client that has asked for a long file, and does not read. */
async function requestLong(t: Test, { isFirst = false } = {}) {
  const { app, sent } = await serve(t)
  const client = new Client(t, app)
  if (!isFirst) await client.ask(PLAYLIST)
  client.socket.pause()
  client.socket.write(PLAYLIST.replace('playlist.m3u8', 'a-8.ts'))
  await until('the request', () => sent.at(-1) === `a-8.ts ${LONG_BYTES}`)
  return { app, client }
}

t.test('the end of the server waits for replies in sockets', async (t) => {
  for (const isFirst of [true, false]) {
    const { app, client } = await requestLong(t, { isFirst })
    const closed = app.close()
    let readBytes = 0
    client.socket.removeAllListeners('data')
    client.socket.on('data', (text: string) => void (readBytes += text.length)).resume()
    await closed
    await until('the whole reply', () => readBytes > LONG_BYTES)
  }
})

t.test('the end of the server takes no new connection while it waits for a reply', async (t) => {
  const { app } = await requestLong(t)
  const closed = app.close()
  const late = connect(app.port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => late.destroy())
  await once(late, 'close')
  t.pass('closed, without a reply')
  await closed
})

t.test(
  'a request with more than 100 header fields is refused, and the connection goes on',
  async (t) => {
    const { app, sent } = await serve(t)
    const client = new Client(t, app)
    const fields = (count: number) => `Host: x\r\n${'a: b\r\n'.repeat(count - 1)}\r\n`
    for (const path of ['/video/demo/playlist.m3u8', '/health', '/nowhere']) {
      const [reply] = await client.ask(`GET ${path} HTTP/1.1\r\n${fields(101)}`)
      t.match(reply, /^HTTP\/1\.1 431 .*more than 100 header fields/s, path)
    }
    t.strictSame(sent, [])
    const [reply] = await client.ask(`GET /video/demo/playlist.m3u8 HTTP/1.1\r\n${fields(100)}`)
    t.match(reply, /^HTTP\/1\.1 200 /)
  },
)

t.test(
  'a request with more than one Host field is refused, and the connection goes on',
  async (t) => {
    const { app, sent } = await serve(t)
    const client = new Client(t, app)
    for (const path of ['/video/demo/playlist.m3u8', '/health', '/nowhere']) {
      const [reply] = await client.ask(`GET ${path} HTTP/1.1\r\nhost: y\r\n${HEADERS}`)
      t.match(reply, /^HTTP\/1\.1 400 .*more than one Host field/s, path)
    }
    t.strictSame(sent, [])
    t.match((await client.ask(PLAYLIST))[0], /^HTTP\/1\.1 200 /)
  },
)
