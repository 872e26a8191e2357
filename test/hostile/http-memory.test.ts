/**
 * Unread replies wait in bounded memory and for a bounded time.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get, request, type IncomingMessage } from 'node:http'
import { get as getSecurely } from 'node:https'
import t, { type Test } from 'tap'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { openSession } from '../http/http2-client.ts'
import {
  call,
  MemoryService,
  MemoryStream,
  startApp,
  startHttpsApp,
  type TestApp,
} from '../http/memory-service.ts'
import { writeCertificate } from '../support/certificate.ts'
import { until } from '../support/until.ts'
import { sendOnePipeline } from './attacks/one-pipeline.ts'
import { crowdSlowly } from './attacks/slow-crowd.ts'
import { readSlowly } from './attacks/slow-readers.ts'
import { sendSmallPieces } from './attacks/small-pieces.ts'
import { sendUnreadPipelines } from './attacks/unread-pipelines.ts'
import { rssBytes, startServiceProcess } from './service-process.ts'
import { targetAt } from './target.ts'

const MIB = 1024 * 1024

t.test('a process with 64 MB of heap survives pipelines of 5,000 unread requests', async (t) => {
  for (const path of ['/watch/assets/hls.min.js', '/video/none/playlist.m3u8', '/api/status']) {
    const { program, target, url } = await startServiceProcess(t, {
      nodeArgs: ['--max-old-space-size=64'],
    })
    const before = rssBytes(target.pid!)
    const stop = new AbortController()
    const attack = sendUnreadPipelines(target, stop.signal, {
      connections: 50,
      requestsEach: 5000,
      path,
    })
    // Each answer comes after a turn of the attack.
    for (let answers = 0; answers < 5; answers++) {
      t.equal((await fetch(`${url}/watch/studio`)).status, 200)
    }
    const growth = rssBytes(target.pid!) - before
    t.ok(growth < 100 * MIB, `${path}: RSS grew by ${Math.round(growth / MIB)} MiB`)
    stop.abort()
    t.equal((await attack).connected, 50)
    program.kill('SIGTERM')
    t.equal(await program.exit, 0)
  }
})

t.test(
  'a process with 64 MB of heap survives bodies that come byte by byte and never end',
  async (t) => {
    const { cert, key } = writeCertificate(t)
    for (const protocol of ['h2', 'http/1.1'] as const) {
      const isTls = protocol === 'h2'
      const { program, target, url } = await startServiceProcess(t, {
        nodeArgs: ['--max-old-space-size=64'],
        ...(isTls && { env: { TLS_CERT: cert, TLS_KEY: key } }),
      })
      const before = rssBytes(target.pid!)
      const stop = new AbortController()
      let opened = 0
      const attack = sendSmallPieces(target, stop.signal, {
        ...{ protocol, connections: 20, bytesPerSec: 524_288 },
        onOpened: (count) => (opened = count),
        ...{ method: 'POST', path: '/api/status', headers: { 'lt-signature': '0'.repeat(64) } },
      })
      const trusted = { rejectUnauthorized: false }
      let answers = 0
      const answer = async () => {
        const request = isTls
          ? getSecurely(`${url}/watch/studio`, trusted)
          : get(`${url}/watch/studio`)
        const [reply] = (await once(request, 'response')) as [IncomingMessage]
        t.equal(reply.resume().statusCode, 200)
        return ++answers >= 20 && opened > 20
      }
      // A viewer's pace, so that the attack goes on between the answers.
      await until('connections are closed, and opened again', answer, { everyMs: 100 })
      const growth = rssBytes(target.pid!) - before
      t.ok(growth < 100 * MIB, `${protocol}: RSS grew by ${Math.round(growth / MIB)} MiB`)
      stop.abort()
      await attack
      program.kill('SIGTERM')
      t.equal(await program.exit, 0)
    }
  },
)

t.test('answers all 20,000 requests of one pipeline in bounded memory', async (t) => {
  const { target, url } = await startServiceProcess(t, {
    nodeArgs: ['--max-old-space-size=64'],
  })
  const before = rssBytes(target.pid!)
  const stop = new AbortController()
  const attack = sendOnePipeline(target, stop.signal, {
    requests: 20_000,
    path: '/video/none/playlist.m3u8',
    onAnswered: () => stop.abort(),
  })
  const answer = async () => {
    t.equal((await fetch(`${url}/watch/studio`)).status, 200)
    return stop.signal.aborted
  }
  // A viewer's pace, so that the attack goes on between the answers.
  await until('all are answered', answer, { everyMs: 200 })
  t.equal((await attack).answered, 20_000)
  const growth = rssBytes(target.pid!) - before
  t.ok(growth < 100 * MIB, `RSS grew by ${Math.round(growth / MIB)} MiB`)
})

t.test(
  'keeps waiting replies below their limit while a crowd reads slowly and segments leave',
  async (t) => {
    const { app, stream, target } = await serveSegments(t, { maxBufferedMib: 40 })
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    let serial = 0
    const newest = async () => {
      stream.files.clear()
      const name = `${serial++}.ts`
      stream.files.set(name, segment())
      return `/video/demo/${name}`
    }
    const attack = crowdSlowly(target, stop.signal, {
      ...{ slow: 30, silent: 10, bytesPerSec: 10_000, requestEveryMs: 4000, newest },
    })
    await until('eight segments, of which readers hold four', () => {
      const { bufferedBytes } = app.guard.report()
      if (bufferedBytes > 40 * MIB) t.fail(`${bufferedBytes} bytes`)
      return serial >= 8
    })
    t.ok(app.guard.report().overMemory > 0)
    stop.abort()
    await attack
  },
)

t.test(
  'disconnects readers of evicted segments at the memory limit, the slowest first',
  async (t) => {
    const { app, stream, target } = await serveSegments(t, { maxBufferedMib: 33 })
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const requested = new Set<string>()
    const get = stream.files.get.bind(stream.files)
    stream.files.get = (name) => {
      requested.add(name)
      return get(name)
    }
    // A requested file leaves the stream, as from a cache: only its reader holds it.
    const attack = readSlowly(target, stop.signal, {
      readers: 5,
      path: async () => {
        const name = `${stream.files.size}.ts`
        stream.files.set(name, segment())
        return `/video/demo/${name}`
      },
    })
    await until('a request of each', () => requested.size === 5)
    t.equal(app.guard.report().overMemory, 0, 'in the cache they cost nothing')
    stream.files.clear()
    const { overMemory, bufferedBytes } = await until('cut', () => {
      const stats = app.guard.report()
      return stats.overMemory > 0 && stats
    })
    t.equal(overMemory, 3, 'of 80 MiB for five, those for two remain')
    t.ok(bufferedBytes <= 33 * MIB, `${bufferedBytes} bytes`)
    stop.abort()
    t.equal((await attack).connected, 5)
  },
)

t.test(
  'has one piece of a segment in memory for each client over TLS that reads nothing',
  async (t) => {
    const pieceBytes = 64 * 1024
    for (const protocol of ['h2', 'http/1.1'] as const) {
      const { app, stream } = await serveSegments(
        t,
        { maxBufferedMib: 64 },
        undefined,
        startHttpsApp,
      )
      stream.files.set('1.ts', segment())
      const before = rssBytes(process.pid)
      for (let client = 0; client < 20; client++) await requestUnread(t, app, protocol)
      const bufferedBytes = await until('a piece of each', () => {
        const { bufferedBytes } = app.guard.report()
        return bufferedBytes >= 20 * pieceBytes && bufferedBytes
      })
      t.ok(bufferedBytes < 21 * pieceBytes, `${protocol}: ${bufferedBytes} bytes`)
      const growth = rssBytes(process.pid) - before
      t.ok(growth < 100 * MIB, `${protocol}: RSS grew by ${Math.round(growth / MIB)} MiB`)
    }
  },
)

t.test('sends all pieces of a body over TLS', async (t) => {
  const { app, stream } = await serveSegments(t, { maxBufferedMib: 64 }, undefined, startHttpsApp)
  const chunks = [100_000, 1, 65_536, 200_000].map((sizeBytes) => randomBytes(sizeBytes))
  const file = { chunks, version: '1', targetDurationSec: 2 }
  stream.files.set('1.ts', createStreamFile('segment', file))
  const reply = await call(app, 'GET', '/video/demo/1.ts')
  t.equal(reply.headers['content-length'], '365537')
  t.ok(reply.body.equals(Buffer.concat(chunks)))
})

t.test('counts a segment once for many readers', async (t) => {
  const { app, stream, target } = await serveSegments(t, { maxBufferedMib: 17 })
  stream.files.set('1.ts', segment())
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const attack = readSlowly(target, stop.signal, { readers: 20, path: () => '/video/demo/1.ts' })
  await until('requests', () => app.service.lookUps.length >= 20)
  stream.files.clear()
  const bufferedBytes = await until('a sample with the segment', () => {
    const { bufferedBytes } = app.guard.report()
    return bufferedBytes >= 16 * MIB && bufferedBytes
  })
  t.ok(bufferedBytes < 17 * MIB, `${bufferedBytes} bytes`)
  t.equal(app.guard.report().overMemory, 0)
  stop.abort()
  await attack
})

t.test('disconnects a reader below the minimum rate, and no other', async (t) => {
  let nowMs = 0
  const { app, stream, target } = await serveSegments(t, { maxBufferedMib: 1024 }, () => nowMs)
  stream.files.set('1.ts', segment())
  stream.files.set('small.ts', { ...segment(), chunks: [Buffer.alloc(1000)] })
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  // Paused players: each request has been read.
  const paused = readSlowly(target, stop.signal, { readers: 3, path: () => '/video/demo/small.ts' })
  // Has read the first half at the first sweep, and reads more before each.
  const phone = request({ port: app.port, host: '127.0.0.1', path: '/video/demo/1.ts' }).end()
  const [reply] = (await once(phone, 'response')) as [NodeJS.ReadableStream]
  let readBytes = 0
  const attack = readSlowly(target, stop.signal, {
    readers: 4,
    path: () => '/video/demo/1.ts',
    bytesEach: 16 * 1024,
    everyMs: 300,
  })
  await until('requests', () => app.service.lookUps.length >= 8)
  const timer = setInterval(() => {
    const chunk = reply.read() as Buffer | null
    readBytes += chunk?.length ?? 0
    // The clock advances after each sweep of the service.
    nowMs += 500
  }, 20)
  t.teardown(() => clearInterval(timer))
  const { slow, connections } = await until('cut', () => {
    const stats = app.guard.report()
    return stats.slow >= 4 && stats
  })
  t.equal(slow, 4)
  t.ok(connections >= 1, 'the others are there')
  t.equal((await attack).closedByService, 4)
  await until('all of it, on a line that is slow but of use', () => readBytes === 16 * MIB)
  stop.abort()
  await paused
})

/** Requests the segment, and reads nothing of it. */
async function requestUnread(t: Test, app: TestApp, protocol: 'h2' | 'http/1.1'): Promise<void> {
  if (protocol === 'h2') {
    const request = (await openSession(t, app)).request({ ':path': '/video/demo/1.ts' }).pause()
    request.on('error', () => undefined)
    await once(request, 'response')
    return
  }
  const trusted = { rejectUnauthorized: false, agent: false }
  const request = getSecurely(`${app.url}/video/demo/1.ts`, trusted)
  request.on('error', () => undefined)
  t.teardown(() => request.destroy())
  await once(request, 'response')
}

function segment() {
  return createStreamFile('segment', {
    // Slabs, as the cache has them.
    chunks: Array.from({ length: 128 }, () => Buffer.alloc(MIB / 8)),
    version: '1',
    targetDurationSec: 2,
  })
}

async function serveSegments(
  t: Test,
  limits: { readonly maxBufferedMib: number },
  nowMs: () => number = () => performance.now(),
  start: typeof startApp | typeof startHttpsApp = startApp,
) {
  const service = new MemoryService()
  const stream = new MemoryStream()
  service.streams.set('demo', stream)
  const app = await start(t, service, {
    limits: { maxConnections: 100, ...limits },
    clock: { nowUs: () => nowMs() * 1000 },
  })
  const target = targetAt(app.port)
  return { app, stream, target }
}
