import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import t from 'tap'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { BodyReader } from '../../src/http/body-reader.ts'
import { until } from '../support/until.ts'
import {
  allowSlowRequests,
  MemoryService,
  MemoryStream,
  signedCall,
  startApp,
} from './memory-service.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const KIB = 1024
const MIB = 1024 * KIB

t.test('reads a body split at any positions', async () => {
  const reader = new BodyReader()
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 4000 }), { maxLength: 16 })
  await fc.assert(
    fc.asyncProperty(chunks, async (all) => {
      const payload = new PassThrough()
      const body = reader.read(payload)
      for (const chunk of all) payload.write(chunk)
      payload.end()
      return Buffer.concat(all).equals(await body)
    }),
  )
})

t.test('keeps 64,000 one-byte chunks in the memory of one body', async (t) => {
  const payload = new PassThrough()
  const body = new BodyReader().read(payload)
  const chunks: WeakRef<Buffer>[] = []
  payload.on('data', (chunk: Buffer) => chunks.push(new WeakRef(chunk)))
  for (let index = 0; index < 64_000; index++) {
    payload.write(Buffer.from('x'))
    if (index % 1000 === 999) await new Promise((resolve) => setImmediate(resolve))
  }
  t.equal(chunks.length, 64_000)
  gc()
  const kept = chunks.filter((chunk) => chunk.deref() !== undefined).length
  t.ok(kept < 1000, `${kept} chunks are kept`)
  payload.end()
  const bytes = await body
  t.equal(bytes.length, 64_000)
  t.equal(bytes.buffer.byteLength, 64 * KIB)
})

t.test('limits large bodies to 16 MiB in total, and always reads small ones', async (t) => {
  const reader = new BodyReader()
  const open: { payload: PassThrough; refusal: Promise<unknown> }[] = []
  const start = (sizeBytes: number) => {
    const payload = new PassThrough({ highWaterMark: MIB })
    const refusal = reader.read(payload).catch((error: unknown) => error)
    payload.write(Buffer.alloc(sizeBytes))
    open.push({ payload, refusal })
    return { payload, refusal }
  }
  for (let index = 0; index < 264; index++) start(64 * KIB)
  t.match(await start(64 * KIB).refusal, { code: 'TOO_MANY_BODIES', httpStatus: 503 })
  const small = start(2 * KIB)
  small.payload.end()
  t.equal(((await small.refusal) as Buffer).length, 2 * KIB)

  for (const { payload } of open) payload.destroy()
  await Promise.all(open.map(({ refusal }) => refusal))
  const large = start(64 * KIB)
  large.payload.end()
  t.equal(((await large.refusal) as Buffer).length, 64 * KIB, 'as large as before')
})

t.test('rejects a body whose client disconnects', async (t) => {
  const payload = new PassThrough()
  const body = new BodyReader().read(payload)
  payload.write('x')
  payload.destroy()
  await t.rejects(body, { code: 'REQUEST_MALFORMED' })
})

t.test(
  'refuses a body that is declared too long, or has a malformed signature, before reading it',
  async (t) => {
    const app = await startApp(t)
    const head = (signature: string, sizeBytes: number) =>
      `POST /api/stop-stream HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: ${signature}\r\nContent-Length: ${sizeBytes}\r\n\r\n`
    const requests = { 413: head('0'.repeat(64), 65_537), 403: head('x', 10) }
    for (const [status, text] of Object.entries(requests)) {
      const socket = await send(t, app.port, text)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      t.match(answer.toString(), new RegExp(`^HTTP/1.1 ${status} `))
      socket.destroy()
    }
  },
)

t.test('serves a small call while 1000 unsigned bodies of 60,000 bytes take 16 MiB', async (t) => {
  const service = new MemoryService()
  const app = await startApp(t, service, {
    limits: { maxConnections: 2000, maxBufferedMib: 64 },
    clock: { nowUs: () => 0 },
  })
  allowSlowRequests(app)
  const head =
    `POST /api/start-stream HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: ${'0'.repeat(64)}\r\n` +
    'Content-Length: 60000\r\n\r\n'
  const before = process.memoryUsage().arrayBuffers
  let refused = 0
  for (let index = 0; index < 1000; index++) {
    const socket = await send(t, app.port, head + 'x'.repeat(59_000))
    socket.once('data', (answer: Buffer) => {
      t.match(answer.toString(), /^HTTP\/1.1 503 [^]*"TOO_MANY_BODIES"/)
      refused++
    })
  }
  // 16 MiB hold 264 of what is beyond the first 2 KiB of each, at 64 KiB of capacity.
  await until('the others are refused', () => refused >= 1000 - 264)
  // What the others have sent goes with their connections.
  await until('40 MiB at most', () => {
    gc()
    return process.memoryUsage().arrayBuffers - before < 40 * MIB
  })
  t.equal((await signedCall(app, 'POST', '/api/start-stream', '{"stream_id":"demo"}')).status, 200)
  t.notOk(
    app.log.some((line) => line.includes('request failed')),
    'a refusal is no failure of ours',
  )
})

async function send(
  t: { teardown(close: () => unknown): unknown },
  port: number,
  text: string,
): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

t.test('discards the body of a segment request, also while the client does not read', async (t) => {
  const service = new MemoryService()
  const stream = new MemoryStream()
  const bytes = Buffer.alloc(16 * MIB)
  stream.files.set(
    '1.ts',
    createStreamFile('segment', {
      chunks: [bytes],
      version: '1',
      targetDurationSec: 2,
    }),
  )
  service.streams.set('demo', stream)
  const app = await startApp(t, service)
  gc()
  const before = process.memoryUsage().heapUsed
  const head = 'GET /video/demo/1.ts HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
  for (let index = 0; index < 40; index++) {
    const socket = await send(t, app.port, head + '1\r\na\r\n'.repeat(10_000))
    socket.pause()
  }
  await until('all requests', () => service.lookUps.length >= 40)
  gc()
  const heldBytes = process.memoryUsage().heapUsed - before
  t.ok(heldBytes < 10 * MIB, `${heldBytes} bytes of heap`)
})
