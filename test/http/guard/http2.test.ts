/**
 * Limits on the cost of HTTP/2 clients.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { MillraceError } from '../../../src/errors.ts'
import { createStreamFile } from '../../../src/hls/store/stream-file.ts'
import { createApp } from '../../../src/http/create-app.ts'
import { writeRefusal } from '../../../src/http/error-handler.ts'
import { HttpGuard } from '../../../src/http/guard/http-guard.ts'
import { closingOf, openBody } from '../../../src/http/response.ts'
import { CertificateSource } from '../../../src/http/tls/certificate-source.ts'
import { writeCertificate } from '../../support/certificate.ts'
import { until } from '../../support/until.ts'
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  PREFACE,
  requestHead,
  RST_STREAM,
  SETTINGS,
  startTls,
  WINDOW_UPDATE,
} from '../../hostile/attacks/http2-frames.ts'
import { sendSmallPieces } from '../../hostile/attacks/small-pieces.ts'
import { targetAt } from '../../hostile/target.ts'
import { callStream, openSession } from '../http2-client.ts'
import { MemoryService, MemoryStream, startHttpsApp } from '../memory-service.ts'

const MIB = 1024 * 1024

t.test(
  'refuses requests beyond the limit with REFUSED_STREAM (RFC 9113 section 8.7)',
  async (t) => {
    const { app, unread } = await serveSegments(t, { maxConnections: 16 })
    const session = await openSession(t, app)
    t.equal(session.remoteSettings.maxConcurrentStreams, 100)
    const streams = Array.from({ length: 20 }, () => unread(session))
    await until('refusals', () => streams.filter(({ closed }) => closed).length === 4)
    const refused = streams.filter(({ closed }) => closed)
    t.equal(app.guard.report().refusedStreams, 4)
    t.ok(refused.every(({ rstCode }) => rstCode === constants.NGHTTP2_REFUSED_STREAM))
    const line = await until('a line', () =>
      app.log.find((each) => each.includes('HTTP/2 requests')),
    )
    // It may come before the last of them.
    t.match(line, /refused: [1-4],/)
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
    await until('room', async () => {
      const reply = await callStream(session, 'GET', '/video/demo/small.ts').catch(() => undefined)
      return reply?.status === 200
    })
  },
)

t.test(
  'closes a connection that resets more streams than players do (CVE-2023-44487)',
  async (t) => {
    const { app, unread } = await serveSegments(t)
    const other = await openSession(t, app)
    const session = await openSession(t, app)
    const closed = closing(session)
    for (let i = 0; i < 50; i++) unread(session).close(constants.NGHTTP2_CANCEL)
    t.equal((await callStream(session, 'GET', '/video/demo/small.ts')).status, 200, '50 at once')
    for (let i = 0; i < 90; i++) unread(session).close(constants.NGHTTP2_CANCEL)
    await closed
    t.equal(app.guard.report().flooding, 1)
    t.equal((await callStream(other, 'GET', '/video/demo/small.ts')).status, 200, 'another one')
    await until('only the other', () => app.guard.report().connections === 1)
  },
)

t.test('refuses a head above 8 KiB, as over HTTP/1.1, and the connection goes on', async (t) => {
  const { app } = await serveSegments(t)
  const session = await openSession(t, app)
  const ask = (sizeBytes: number) =>
    callStream(session, 'GET', '/video/demo/small.ts', { headers: { x: 'y'.repeat(sizeBytes) } })
  await t.rejects(ask(8192), /NGHTTP2_ENHANCE_YOUR_CALM/)
  t.match(await ask(7800), { status: 200 })
})

t.test('refuses such a head of a client that does not acknowledge SETTINGS, too', async (t) => {
  const { app } = await serveSegments(t)
  const socket = (await startTls(connect(app.port, '127.0.0.1')))!
  let received = ''
  socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')))
  const names = Array.from({ length: 80 }, (_, index) => `x${index}`)
  const headers = Object.fromEntries(names.map((name) => [name, 'y'.repeat(120)]))
  const payload = requestHead({ path: '/video/demo/small.ts', headers })
  const flags = END_STREAM | END_HEADERS
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS)]))
  socket.write(frame(HEADERS, { flags, stream: 1, payload }))
  await until('a refusal', () => received.includes('its head has more than 8192 bytes'))
  socket.destroy()
})

t.test('counts resets without an error, too', async (t) => {
  const { app } = await serveSegments(t)
  const socket = (await startTls(connect(app.port, '127.0.0.1')))!
  const closed = closing(socket.resume())
  const payload = requestHead({ path: '/video/demo/large.ts' })
  const flags = END_STREAM | END_HEADERS
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS)]))
  for (let stream = 1; stream < 300; stream += 2) {
    socket.write(frame(HEADERS, { flags, stream, payload }))
    socket.write(frame(RST_STREAM, { stream, payload: Buffer.alloc(4) }))
  }
  await closed
  t.equal(app.guard.report().flooding, 1)
})

t.test('closes a connection that floods it with frames of no request', async (t) => {
  const { app } = await serveSegments(t)
  const socket = connectTls({
    port: app.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['h2'],
  })
  socket.on('error', () => undefined).resume()
  await once(socket, 'secureConnect')
  const closed = closing(socket)
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS)]))
  // By 1: 13 bytes each.
  const update = frame(WINDOW_UPDATE, { payload: Buffer.of(0, 0, 0, 1) })
  const updates = Buffer.concat(Array.from({ length: 4000 }, () => update))
  const timer = setInterval(() => {
    for (let i = 0; i < 10 && !socket.destroyed; i++) socket.write(updates)
  }, 10)
  t.teardown(() => clearInterval(timer))
  await closed
  t.equal(app.guard.report().flooding, 1)
})

t.test('cancels a stream below the minimum rate, and no other of its connection', async (t) => {
  const { app, unread, pass } = await serveSegments(t)
  const session = await openSession(t, app)
  const stalled = unread(session)
  await once(stalled, 'response')
  // Begins the window of the rate.
  await until('a sample', () => app.guard.report().bufferedBytes === 0 && pass(1000))
  const closed = closing(stalled)
  const timer = setInterval(() => pass(2000), 50)
  t.teardown(() => clearInterval(timer))
  await closed
  t.equal(stalled.rstCode, constants.NGHTTP2_CANCEL)
  t.equal(app.guard.report().slow, 1)
  t.equal((await callStream(session, 'GET', '/video/demo/small.ts')).status, 200)
})

t.test('disconnects readers of evicted segments at the memory limit', async (t) => {
  const { app, stream, unread } = await serveSegments(t, { maxBufferedMib: 33 })
  for (let index = 0; index < 4; index++) {
    stream.files.set(`${index}.ts`, segment())
    const session = await openSession(t, app)
    await once(unread(session, `/video/demo/${index}.ts`), 'response')
  }
  t.equal(app.guard.report().overMemory, 0, 'in the cache they cost nothing')
  stream.files.clear()
  await until('cut', () => app.guard.report().overMemory === 2)
  t.ok(app.guard.report().bufferedBytes <= 33 * MIB)
  await until('closed', () => app.guard.report().connections === 2)
})

t.test(
  'counts a body that is sent as it comes, and cancels it below the minimum rate',
  async (t) => {
    const event = 'a'.repeat(100_000)
    const { app, guard, pass } = await serve(t, (response) => {
      openBody(response, 200, { 'content-type': 'text/event-stream' })!.write(event)
    })
    const session = await openSession(t, app)
    const request = session.request({ ':path': '/events' }).pause()
    request.on('error', () => undefined)
    await once(request, 'response')
    await until('counted', () => guard.report().bufferedBytes >= event.length)
    const closed = closing(request)
    const timer = setInterval(() => pass(2000), 50)
    t.teardown(() => clearInterval(timer))
    await closed
    t.equal(request.rstCode, constants.NGHTTP2_CANCEL)
    t.equal(guard.report().slow, 1)
  },
)

t.test('writes no body of a refusal to the stream of HEAD, which has ended', async (t) => {
  const errors: Error[] = []
  const { app } = await serve(t, (response) => {
    closingOf(response).on('error', (error: Error) => errors.push(error))
    writeRefusal(response, new MillraceError('FILE_NOT_FOUND'))
  })
  const session = await openSession(t, app)
  t.match(await callStream(session, 'HEAD', '/'), { status: 404, body: Buffer.alloc(0) })
  t.strictSame(errors, [])
})

t.test('cancels a request that is not complete after 10 s', async (t) => {
  const { app, pass } = await serveSegments(t)
  const session = await openSession(t, app)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/api/status',
    'lt-signature': '0'.repeat(64),
  })
  stream.on('error', () => undefined)
  stream.write('{')
  const closed = closing(stream)
  await until('the request', () => callStream(session, 'GET', '/video/demo/small.ts'))
  pass(10_000)
  await closed
  t.equal(stream.rstCode, constants.NGHTTP2_CANCEL)
  t.equal((await callStream(session, 'GET', '/video/demo/small.ts')).status, 200)
})

t.test(
  'replies to a request whose body nobody reads, then ends it (RFC 9113 section 8.1)',
  async (t) => {
    const { app } = await serveSegments(t)
    const session = await openSession(t, app)
    const request = session.request({ ':method': 'POST', ':path': '/nowhere' })
    await closing(request.resume())
    t.equal(request.rstCode, constants.NGHTTP2_NO_ERROR)
    t.equal(app.guard.report().flooding, 0)
  },
)

t.test('sends a large reply when the request has ended', async (t) => {
  const { app } = await serveSegments(t)
  const session = await openSession(t, app)
  const request = session.request({ ':path': '/video/demo/large.ts' }, { endStream: false })
  let readBytes = 0
  request.on('data', (bytes: Buffer) => (readBytes += bytes.length)).write('{')
  await until('the request', () => app.service.lookUps.length > 0)
  await callStream(session, 'GET', '/video/demo/small.ts')
  t.equal(readBytes, 0)
  request.end('}')
  await closing(request)
  t.equal(request.rstCode, constants.NGHTTP2_NO_ERROR)
  t.equal(readBytes, 16 * MIB)
})

t.test('replies to a client that is still sending a body that nobody reads', async (t) => {
  const { app } = await serveSegments(t)
  for (const path of ['/api/status', '/nowhere']) {
    const session = await openSession(t, app)
    const reply = await callStream(session, 'POST', path, { body: Buffer.alloc(70_000) })
    t.match(reply.body.toString(), /"success":false/)
  }
})

t.test('a request that ends with an empty frame is complete, though nobody reads it', async (t) => {
  const { app, pass } = await serveSegments(t)
  const session = await openSession(t, app)
  const request = session.request({ ':path': '/video/demo/large.ts' }, { endStream: false })
  request.on('error', () => undefined).pause()
  request.end()
  await once(request, 'response')
  // One that is not complete: its end shows that a sweep is over, which went by the other as well.
  const incomplete = session.request({
    ':method': 'POST',
    ':path': '/api/status',
    'lt-signature': '0'.repeat(64),
  })
  incomplete.on('error', () => undefined).write('{')
  const closed = closing(incomplete)
  await callStream(session, 'GET', '/video/demo/small.ts')
  pass(10_000)
  await closed
  await callStream(session, 'GET', '/video/demo/small.ts')
  t.notOk(request.closed)
})

t.test('closes requests whose body does not come, for new ones', async (t) => {
  const { app, pass } = await serveSegments(t, { maxConnections: 16 })
  const session = await openSession(t, app)
  const headers = { ':method': 'POST', ':path': '/api/status', 'lt-signature': '0'.repeat(64) }
  const waiting = Array.from({ length: 16 }, () => {
    const stream = session.request(headers)
    stream.on('error', () => undefined).write('{')
    return stream
  })
  await callStream(session, 'GET', '/video/demo/small.ts').catch(() => undefined)
  t.ok(waiting.every(({ closed }) => !closed))
  pass(2000)
  t.equal((await callStream(session, 'GET', '/video/demo/small.ts')).status, 200)
  await until('one closed', () => waiting.filter(({ closed }) => closed).length === 1)
})

t.test('forgets clients that leave after an error of their connection', async (t) => {
  const { app, pass } = await serveSegments(t)
  const socket = connectTls({
    ...{ port: app.port, host: '127.0.0.1' },
    ...{ rejectUnauthorized: false, ALPNProtocols: ['h2'] },
  })
  socket.on('error', () => undefined).resume()
  await once(socket, 'secureConnect')
  const flags = END_STREAM | END_HEADERS
  const payload = requestHead({ path: '/video/demo/large.ts' })
  const request = frame(HEADERS, { flags, stream: 1, payload })
  // A stream that was never opened (RFC 9113 section 5.1).
  const lost = frame(DATA, { stream: 99, payload: Buffer.from('a') })
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS), request, lost]))
  await until('the request', () => app.service.lookUps.length > 0)
  socket.end()
  const timer = setInterval(() => pass(2000), 50)
  t.teardown(() => clearInterval(timer))
  await until('none', () => app.guard.report().connections === 0)
})

t.test('takes little of a body that waits, and all of one that is read', async (t) => {
  const { app } = await serveSegments(t)
  const session = await openSession(t, app)
  t.equal(session.remoteSettings.initialWindowSize, 4096)
  const headers = { 'lt-signature': '0'.repeat(64) }
  const body = Buffer.alloc(64 * 1024)
  const reply = await callStream(session, 'POST', '/api/status', { headers, body })
  t.equal(reply.status, 403, 'the signature of the whole body')
})

t.test('ends requests whose bodies come in more frames than anybody sends', async (t) => {
  const { app } = await serveSegments(t)
  const other = await openSession(t, app)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const attack = sendSmallPieces(targetAt(app.port), stop.signal, {
    ...{ protocol: 'h2', connections: 2, bytesPerSec: 200_000 },
    ...{ method: 'POST', path: '/api/status', headers: { 'lt-signature': '0'.repeat(64) } },
  })
  await until('disconnected', () => app.guard.report().flooding >= 4)
  t.equal((await callStream(other, 'GET', '/video/demo/small.ts')).status, 200)
  stop.abort()
  t.ok((await attack).opened >= 4)
})

t.test('counts the pieces of all bodies of a connection together', async (t) => {
  const { app } = await serveSegments(t)
  const socket = (await startTls(connect(app.port, '127.0.0.1')))!
  const closed = closing(socket.resume())
  const payload = requestHead({
    ...{ method: 'POST', path: '/api/status', headers: { 'lt-signature': '0'.repeat(64) } },
  })
  const bodies = Array.from({ length: 8 }, (_, index) => 1 + 2 * index)
  const requests = bodies.map((stream) => frame(HEADERS, { flags: END_HEADERS, stream, payload }))
  const pieces = bodies.map((stream) => frame(DATA, { stream, payload: Buffer.from('a') }))
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS), ...requests]))
  for (let each = 0; each < 30; each++) socket.write(Buffer.concat(pieces))
  await closed
  t.equal(app.guard.report().flooding, 1)
})

t.test('a connection whose streams ended before their turn is idle', async (t) => {
  const { app, pass } = await serveSegments(t)
  const session = await openSession(t, app)
  const closed = closing(session)
  for (let requests = 0; requests < 50; requests++) {
    const stream = session.request({ ':method': 'POST', ':path': '/api/status' })
    stream.on('error', () => undefined).close(constants.NGHTTP2_CANCEL)
  }
  await callStream(session, 'GET', '/video/demo/small.ts')
  pass(75_000)
  await closed
  t.equal(app.guard.report().expired, 1)
})

t.test('disconnects a connection without a request for 75 s', async (t) => {
  const { app, pass } = await serveSegments(t)
  const session = await openSession(t, app)
  await callStream(session, 'GET', '/video/demo/small.ts')
  const closed = closing(session)
  pass(75_000)
  await closed
  t.equal(app.guard.report().expired, 1)
  await until('none', () => app.guard.report().connections === 0)
})

t.test('handles a crowd of requests a few per turn', async (t) => {
  const { app } = await serveSegments(t)
  const session = await openSession(t, app)
  let turn = 0
  const turns: number[] = []
  const count = () => {
    turn++
    if (turns.length < 80) setImmediate(count)
  }
  const { service } = app
  const find = service.findStream.bind(service)
  service.findStream = (id) => {
    turns.push(turn)
    return find(id)
  }
  setImmediate(count)
  await Promise.all(
    Array.from({ length: 80 }, () => callStream(session, 'GET', '/video/demo/small.ts')),
  )
  const counts = countEach(turns)
  t.ok(Math.max(...counts.values()) <= 16, `at most ${Math.max(...counts.values())} in a turn`)
})

/** Settles when it has closed, with or without an error. */
function closing(emitter: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => void emitter.once('close', () => resolve()))
}

function countEach(turns: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const turn of turns) counts.set(turn, (counts.get(turn) ?? 0) + 1)
  return counts
}

function segment(sizeBytes = 16 * MIB) {
  const chunkBytes = Math.min(sizeBytes, MIB / 8)
  return createStreamFile('segment', {
    chunks: Array.from({ length: sizeBytes / chunkBytes }, () => Buffer.alloc(chunkBytes)),
    version: '1',
    targetDurationSec: 2,
  })
}

/** Serves HTTPS with one response for all requests. */
async function serve(t: Test, respond: (response: ServerResponse) => void) {
  let nowMs = 0
  const logger = pino({ level: 'silent' })
  const guard = new HttpGuard({
    limits: { maxConnections: 1000, maxBufferedMib: 1024 },
    clock: { nowUs: () => nowMs * 1000 },
    logger,
  })
  const app = createApp({
    guard,
    logger,
    certificates: new CertificateSource(writeCertificate(t)),
    before: (_request, response) => {
      respond(response)
      return true
    },
  })
  t.teardown(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { app: { url }, guard, pass: (ms: number) => void (nowMs += ms) }
}

async function serveSegments(
  t: Test,
  limits: { readonly maxConnections?: number; readonly maxBufferedMib?: number } = {},
) {
  const service = new MemoryService()
  const stream = new MemoryStream()
  stream.files.set('large.ts', segment())
  stream.files.set('small.ts', segment(1000))
  service.streams.set('demo', stream)
  let nowMs = 0
  const app = await startHttpsApp(t, service, {
    limits: { maxConnections: 1000, maxBufferedMib: 1024, ...limits },
    clock: { nowUs: () => nowMs * 1000 },
  })
  return {
    app,
    stream,
    pass(ms: number): true {
      nowMs += ms
      return true
    },
    /** Requests a file and reads nothing of it. */
    unread(session: ClientHttp2Session, path = '/video/demo/large.ts'): ClientHttp2Stream {
      const request = session.request({ ':path': path }).pause()
      request.on('error', () => undefined)
      return request
    },
  }
}
