import { once } from 'node:events'
import { connect } from 'node:net'
import * as fc from 'fast-check'
import t from 'tap'
import { createStreamFile } from '../../../src/hls/store/stream-file.ts'
import { sign } from '../../../src/auth/signature.ts'
import { until } from '../../support/until.ts'
import { MemoryService, MemoryStream, SECRET, speak, startApp } from '../memory-service.ts'

const SEGMENT = Buffer.alloc(300_000, 'x')

/** Requests, with a pattern of the reply to each. */
const REQUESTS = {
  playlist: {
    text: 'GET /video/demo/playlist.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n',
    reply: '200 #EXTM3U',
  },
  segment: { text: 'GET /video/demo/1.ts HTTP/1.1\r\nHost: a\r\n\r\n', reply: '200 xxxxxxx' },
  'head of a segment': { text: 'HEAD /video/demo/1.ts HTTP/1.1\r\nHost: a\r\n\r\n', reply: '200 ' },
  'unknown route': { text: 'GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n', reply: '404 {"succe' },
  'call of the API': { text: signedStatus(), reply: '200 {"succe' },
  'call of the API, in chunks': { text: signedStatus({ isChunked: true }), reply: '200 {"succe' },
} as const

t.test('answers pipelined requests in order, split at any positions', async (t) => {
  const app = await startApp(t, serviceWithMedia())
  const requests = fc.array(fc.constantFrom(...Object.values(REQUESTS)), {
    minLength: 1,
    maxLength: 12,
  })
  await fc.assert(
    fc.asyncProperty(requests, fc.array(fc.integer({ min: 1, max: 200 })), async (all, cuts) => {
      const text = all.map((request) => request.text).join('')
      const replies = await converse(app.port, text, cuts, all.length)
      t.strictSame(
        replies,
        all.map(({ reply }) => reply),
      )
    }),
    { numRuns: 60 },
  )
  t.equal(app.log.length, 0, 'nothing failed')
})

t.test('handles no more of an unread pipeline than the kernel accepts', async (t) => {
  const service = serviceWithMedia()
  const app = await startApp(t, service)
  const socket = connect(app.port, '127.0.0.1').pause()
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(REQUESTS.segment.text.repeat(3000))
  const bufferedBytes = await until(
    'waiting bytes',
    () => app.guard.report().bufferedBytes || undefined,
  )
  // Requests of others have their turns between those of the pipeline.
  for (let others = 0; others < 20; others++) await speak(app, 'GET / HTTP/1.0\r\n\r\n')
  const handled = service.lookUps.length
  // Buffers of the kernel at both ends hold some 12 MB at most.
  t.ok(handled >= 1 && handled < 60, `${handled} of 3000`)
  t.ok(
    bufferedBytes < 200_000,
    `${bufferedBytes} bytes wait, requests included; the segment is in the cache`,
  )
  t.equal(app.guard.report().connections, 1)

  let readBytes = 0
  socket.on('data', (bytes) => (readBytes += bytes.length)).resume()
  await until('all replies, once it reads', () => readBytes > 3000 * SEGMENT.length)
})

t.test('gates replies that Node itself makes', async (t) => {
  const app = await startApp(t, serviceWithMedia())
  // Without Host: 400 for the first, which closes the connection.
  const answer = await speak(app, 'GET / HTTP/1.1\r\n\r\n'.repeat(5000))
  t.equal(answer.match(/HTTP\/1\.1 400/g)?.length, 1)
})

t.test('sends all replies to a client that ends its side after its requests', async (t) => {
  const app = await startApp(t, serviceWithMedia())
  const socket = connect({ port: app.port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(REQUESTS.playlist.text.repeat(50))
  let answer = ''
  socket.on('data', (bytes) => (answer += bytes.toString()))
  await once(socket, 'end')
  t.equal(answer.match(/#EXTM3U/g)?.length, 50)
  socket.destroy()
})

t.test('closes the connection behind a reply to a request whose body nobody reads', async (t) => {
  const app = await startApp(t, serviceWithMedia())
  const next = REQUESTS.playlist.text
  const bodies = {
    'Content-Length: 7': 'a\r\n\r\nbb',
    'Transfer-Encoding: chunked': '2\r\nab\r\n0\r\n\r\n',
  }
  for (const [header, body] of Object.entries(bodies)) {
    for (const path of ['/video/demo/1.ts', '/video/none/1.ts', '/nowhere', '/api/status']) {
      const answer = await speak(
        app,
        `GET ${path} HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n${body}${next}`,
      )
      t.match(answer, /^HTTP\/1\.1 [^]*\r\nConnection: close\r\n/i, `${path}, ${header}`)
      t.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1, 'nothing more is read')
    }
  }
  const empty = await speak(
    app,
    `${next.replace('\r\n\r\n', '\r\nContent-Length: 0\r\n\r\n')}${next}GET / HTTP/1.0\r\n\r\n`,
  )
  t.equal(empty.match(/HTTP\/1\.1 \d/g)?.length, 3, 'an empty body is none')
})

t.test('disconnects a client whose body comes in more pieces than anybody sends', async (t) => {
  const app = await startApp(t, serviceWithMedia())
  const head =
    `POST /api/status HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: ${'0'.repeat(64)}\r\n` +
    'Transfer-Encoding: chunked\r\n\r\n'
  await t.rejects(speak(app, `${head}${'1\r\na\r\n'.repeat(10_000)}`), { code: 'ECONNRESET' })
  t.equal(app.guard.report().flooding, 1)
  const close = head.replace('Host', 'Connection: close\r\nHost')
  const tokens = '5\r\n"a":1\r\n'.repeat(100)
  t.match(await speak(app, `${close}${tokens}0\r\n\r\n`), /^HTTP\/1\.1 403 /, 'JSON token by token')
  const largest = `100\r\n${'a'.repeat(256)}\r\n`.repeat(256)
  t.match(await speak(app, `${close}${largest}0\r\n\r\n`), /^HTTP\/1\.1 403 /, 'of 64 KiB')
})

t.test('parses a body a kilobyte in a turn, however fast it comes', async (t) => {
  const app = await startApp(t, serviceWithMedia())
  const [first, second] = [connect(app.port, '127.0.0.1'), connect(app.port, '127.0.0.1')]
  for (const socket of [first, second]) t.teardown(() => socket.destroy())
  const order: string[] = []
  const body = ' '.repeat(60_000)
  const head =
    `POST /api/status HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: ${'0'.repeat(64)}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n`
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  const replies = [
    once(first, 'data').then(() => order.push('body')),
    once(second, 'data').then(() => order.push('playlist')),
  ]
  first.write(head + body)
  second.write(REQUESTS.playlist.text)
  await Promise.all(replies)
  t.strictSame(order, ['playlist', 'body'])
})

function signedStatus({ isChunked = false } = {}): string {
  const body = '{"stream_id":"demo"}'
  const head =
    `GET /api/status HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
    `LT-SIGNATURE: ${sign(Buffer.from(body), SECRET)}\r\n`
  if (!isChunked) return `${head}Content-Length: ${body.length}\r\n\r\n${body}`
  const chunks = [body.slice(0, 7), body.slice(7)].map(
    (text) => `${text.length.toString(16)}\r\n${text}\r\n`,
  )
  return `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`
}

function serviceWithMedia(): MemoryService {
  const service = new MemoryService()
  const stream = new MemoryStream()
  stream.files.set(
    '1.ts',
    createStreamFile('segment', {
      chunks: [SEGMENT],
      version: '1',
      targetDurationSec: 2,
    }),
  )
  stream.files.set(
    'playlist.m3u8',
    createStreamFile('media-playlist', {
      chunks: [Buffer.from('#EXTM3U\n')],
      version: '2',
      targetDurationSec: 2,
    }),
  )
  service.streams.set('demo', stream)
  return service
}

/** Sends the text in pieces of these sizes, then the rest. @returns status and the first seven characters of each reply */
async function converse(
  port: number,
  text: string,
  cuts: readonly number[],
  count: number,
): Promise<string[]> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const chunks: Buffer[] = []
  const replies: string[] = []
  let rest = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
  })
  let sent = 0
  for (const cut of cuts) {
    socket.write(text.slice(sent, sent + cut))
    sent += cut
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.write(text.slice(sent))
  while (replies.length < count) {
    if (chunks.length === 0) await once(socket, 'data')
    rest = Buffer.concat([rest, ...chunks.splice(0)])
    for (;;) {
      const end = rest.indexOf('\r\n\r\n')
      if (end === -1) break
      const head = rest.toString('latin1', 0, end)
      const isHead = replies.length < count && isAnswerToHead(text, replies.length)
      const length = isHead ? 0 : Number(/content-length: (\d+)/i.exec(head)![1])
      if (rest.length < end + 4 + length) break
      replies.push(
        `${head.slice(9, 12)} ${rest.toString('latin1', end + 4, end + 4 + Math.min(length, 7))}`,
      )
      rest = rest.subarray(end + 4 + length)
    }
  }
  socket.destroy()
  return replies
}

function isAnswerToHead(text: string, index: number): boolean {
  return [...text.matchAll(/(GET|HEAD) \/\S+ HTTP/g)][index]?.[1] === 'HEAD'
}
