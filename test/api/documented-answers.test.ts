/**
 * Every answer that the OpenAPI document describes, seen over HTTP; `call` compares each with the document.
 */
import { BlockList, connect } from 'node:net'
import t, { type Test } from 'tap'
import { PlaybackTokens, signPlaybackToken } from '../../src/auth/playback-token.ts'
import { ENDPOINTS } from '../../src/api/endpoints.ts'
import { MillraceError, type ErrorCode } from '../../src/errors.ts'
import type { AppOptions } from '../../src/service/app.ts'
import { openApiDocument } from '../../src/api/calls/openapi.ts'
import { ANY_PATH } from '../../src/api/calls/openapi-operation.ts'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { until } from '../support/until.ts'
import { LiveStore } from '../playback/live-store.ts'
import {
  allowSlowRequests,
  call,
  MemoryService,
  MemoryStream,
  signedCall,
  startApp,
  type Reply,
} from '../http/memory-service.ts'

const SECRET = 'p'.repeat(32)

interface Operation {
  /** Absent from the parameters of a path. */
  readonly responses?: Readonly<Record<string, Response>>
}

interface Response {
  readonly content?: Readonly<
    Record<string, { schema?: { properties?: { code?: { enum?: readonly string[] } } } }>
  >
}

/** Answers of the document, `get /health/live 200` or `get /metrics 403 ADDRESS_FORBIDDEN`. */
function documented(): Set<string> {
  const { paths } = openApiDocument() as { paths: Record<string, Record<string, Operation>> }
  const described = Object.entries(paths).flatMap(([route, operations]) =>
    Object.entries(operations).flatMap(([method, { responses = {} }]) =>
      Object.entries(responses).flatMap(([status, { content }]) => {
        const codes = content?.['application/json']?.schema?.properties?.code?.enum ?? []
        const answers = codes.map((code) => ({ status, code }))
        return (codes.length === 0 ? [{ status, code: '' }] : answers)
          .filter((answer) => !isOfAnyPath(answer))
          .map(({ status, code }) => nameOf(method, route, Number(status), code))
      }),
    ),
  )
  return new Set(described)
}

/** Refusals before a route is known; api.test.ts, https.test.ts and the tests of the guard see each of them once. */
function isOfAnyPath(answer: { readonly status: string; readonly code: string }): boolean {
  return ANY_PATH.some(([status, code]) => status === Number(answer.status) && code === answer.code)
}

function nameOf(method: string, route: string, status: number, code: string): string {
  return `${method.toLowerCase()} ${route} ${status} ${code}`.trim()
}

const seen = new Set<string>()

/** Notes an answer under its route. */
async function note(method: string, route: string, reply: Promise<Reply>): Promise<Reply> {
  const { status, body, headers } = await reply
  const isJson = String(headers['content-type']).startsWith('application/json')
  const { code = '' } = isJson ? (JSON.parse(body.toString()) as { code?: string }) : {}
  seen.add(nameOf(method, route, status, status < 400 ? '' : code))
  return reply
}

const SIGNED = Object.entries(ENDPOINTS).flatMap(([name, { methods }]) =>
  methods.map((method) => ({ method, route: `/api/${name}` })),
)

type App = Awaited<ReturnType<typeof startApp>>

/** Asks every signed route. */
async function askSigned(app: App, body: object | string, headers = {}): Promise<void> {
  for (const { method, route } of SIGNED) {
    await note(method, route, signedCall(app, method, route, body, headers))
  }
}

interface ViewerRequest {
  readonly file?: string
  readonly query?: string
  readonly headers?: Record<string, string>
}

/** Asks every route of viewers about a stream, with or without a token. */
async function askViewers(app: App, id: string, token: string, requests: readonly ViewerRequest[]) {
  const [prefix, template] = token === '' ? ['', ''] : [`/t/${token}`, '/t/{token}']
  const get = (route: string, path: string, headers = {}) =>
    note('GET', template + route, call(app, 'GET', prefix + path, { headers }))
  await get('/video/{stream_id}', `/video/${id}`)
  await get('/watch/{stream_id}', `/watch/${id}`)
  await get('/watch/{stream_id}/state', `/watch/${id}/state`)
  await get('/video/{stream_id}/preview.ts', `/video/${id}/preview.ts`)
  const known = { 'if-none-match': '*' }
  await get('/video/{stream_id}/preview.ts', `/video/${id}/preview.ts`, known)
  for (const { file = 'playlist.m3u8', query = '', headers } of requests) {
    await get('/video/{stream_id}/{file}', `/video/${id}/${file}${query}`, headers)
  }
  for (const file of ['preview.ts', '{file}']) {
    const path = `/video/${id}/${file.replace('{file}', 'playlist.m3u8')}`
    const route = `${template}/video/{stream_id}/${file}`
    await note('OPTIONS', route, call(app, 'OPTIONS', prefix + path))
  }
}

/** Requests whose answers differ. */
const FILES: readonly ViewerRequest[] = [
  {},
  { headers: { 'if-none-match': '*' } },
  { query: '?_HLS_msn=x' },
  { query: '?_HLS_msn=99' },
  { query: '?_HLS_msn=8&_HLS_part=1' },
  { file: 'none.ts' },
  { file: 'a-p0.m4s', headers: { range: 'bytes=0-9' } },
  { file: 'a-p0.m4s', headers: { range: 'bytes=9999-' } },
]

/** A stream that has parts and a preview; waits for more end at once. */
function liveStream(options: { maxWaitMs?: number; maxWaiters?: number } = {}) {
  const live = new LiveStore({ maxWaitMs: 20, ...options })
  live.addPart()
  live.endSegment()
  const media = { version: 'p', targetDurationSec: 2, chunks: [Buffer.alloc(188)] }
  const preview = createStreamFile('preview', media)
  const { files } = live
  const get: typeof files.get = (name, directives) =>
    name === 'preview.ts' ? preview : files.get(name, directives)
  return {
    live,
    stream: {
      ...{ status: 'STREAMING' as const, live: true, policy: {} },
      files: {
        get,
        availability: files.availability.bind(files),
        wait: files.wait.bind(files),
      },
    },
  }
}

function serviceWith(options?: Parameters<typeof liveStream>[0]) {
  const service = new MemoryService()
  const { live, stream } = liveStream(options)
  service.stored.set('demo', stream)
  service.streams.set('empty', new MemoryStream())
  return { service, live }
}

function start(t: Test, service: MemoryService, options: Partial<AppOptions> = {}): Promise<App> {
  return startApp(t, service, {}, undefined, options)
}

function tokenFor(streamId: string, sec = 60): string {
  const expiresAt = new Date(Date.now() + sec * 1000)
  return signPlaybackToken({ streamId, secret: SECRET, expiresAt })
}

/** Body of calls of the stream `demo`: switch-source and clip need more. */
const DEMO = {
  ...{ stream_id: 'demo', source: 'main', key_id: '1767225600-7200-main' },
  ...{ from: '2026-01-31T20:00:00Z', to: '2026-01-31T20:05:00Z' },
}

t.test('sees the answers of signed routes', async (t) => {
  const { service } = serviceWith()
  const app = await start(t, service)
  await askSigned(app, DEMO)
  service.streams.get('demo')!.live = true
  const switching = signedCall(app, 'POST', '/api/switch-source', DEMO)
  await note('POST', '/api/switch-source', switching)
  await askSigned(app, { stream_id: 'nobody' })
  await note(
    'POST',
    '/api/stop-stream',
    signedCall(app, 'POST', '/api/stop-stream', { stream_id: 'x' }),
  )
  await note('POST', '/api/kick', signedCall(app, 'POST', '/api/kick', { stream_id: 'x' }))
  service.streams.delete('nobody')
  const unknown = { ...DEMO, stream_id: 'unknown' }
  await note('POST', '/api/clip', signedCall(app, 'POST', '/api/clip', unknown))
  for (const name of ['stop-stream', 'revoke-key', 'kick', 'switch-source', 'status']) {
    for (const { method, route } of SIGNED.filter(({ route }) => route.endsWith(name))) {
      await note(method, route, signedCall(app, method, route, { ...DEMO, stream_id: 'unknown' }))
    }
  }
  await askSigned(app, { stream_id: 7, limit: 'x', issued_at: 'x' })
  await askSigned(app, `"${'x'.repeat(70_000)}"`)
  await askSigned(app, '{}', { 'content-type': 'text/plain' })
  await askSigned(app, '{}', { 'lt-signature': '0'.repeat(64) })
  for (const { method, route } of SIGNED) await note(method, route, call(app, method, route))

  const expiring = await start(t, service, { maxAgeSec: 10 })
  await askSigned(expiring, { ...DEMO, issued_at: 1 })
  const nobody = await start(t, service, { apiFrom: new BlockList(), metrics: METRICS })
  await askSigned(nobody, { stream_id: 'demo' })
  await note('GET', '/api/openapi.json', call(nobody, 'GET', '/api/openapi.json'))
  await note('GET', '/metrics', call(nobody, 'GET', '/metrics'))
  const slow = await start(t, service, { apiRate: 0.001 })
  await askSigned(slow, { stream_id: 'demo' })
  await askSigned(slow, { stream_id: 'demo' })
  await note('GET', '/api/openapi.json', call(slow, 'GET', '/api/openapi.json'))

  for (const code of ['TOO_MANY_STREAMS', 'SHUTTING_DOWN'] as const) {
    const refusing = await start(t, new RefusingService(code))
    const reply = signedCall(refusing, 'POST', '/api/start-stream', { stream_id: 'demo' })
    await note('POST', '/api/start-stream', reply)
  }
  const storeless = await start(t, new StorelessService())
  await note('POST', '/api/clip', signedCall(storeless, 'POST', '/api/clip', DEMO))
  const away = await start(t, new RefusingService('REGISTRY_UNAVAILABLE'))
  await askSigned(away, DEMO)

  // Bodies that do not end: 546 of them take 16 MiB, and what is left is too little for a body of twice their size.
  const full = await startApp(t, service, {
    limits: { maxConnections: 2000, maxBufferedMib: 64 },
    clock: { nowUs: () => 0 },
  })
  allowSlowRequests(full)
  const head = `POST /api/kick HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: ${'0'.repeat(64)}\r\n`
  let refused = 0
  for (let index = 0; index < 600; index++) {
    const socket = connect(full.port, '127.0.0.1', () => {
      socket.write(`${head}Content-Length: 30000\r\n\r\n${'x'.repeat(29_000)}`)
    })
    socket.on('error', () => undefined)
    socket.once('data', () => refused++)
    t.teardown(() => socket.destroy())
  }
  await until('the others are refused', () => refused >= 600 - 546)
  await askSigned(full, `"${'x'.repeat(65_000)}"`)
})

const METRICS = { renderMetrics: async () => 'up 1\n', readTokens: () => ['token'] }

class StorelessService extends MemoryService {
  override clip(): never {
    throw new MillraceError('ARCHIVE_UNAVAILABLE')
  }
}

class RefusingService extends MemoryService {
  readonly #code: ErrorCode

  constructor(code: ErrorCode) {
    super()
    this.#code = code
  }

  override startStream(): never {
    throw new MillraceError(this.#code)
  }

  override stopStream = this.startStream
  override revokeKey = this.startStream
  override kick = this.startStream
  override switchSource = this.startStream
  override status = this.startStream
  override list = this.startStream
  nodes = this.startStream
}

t.test('sees the answers of unsigned routes', async (t) => {
  const { service } = serviceWith()
  const app = await start(t, service, { metrics: METRICS })
  const document = await note('GET', '/api/openapi.json', call(app, 'GET', '/api/openapi.json'))
  const headers = { 'if-none-match': String(document.headers['etag']) }
  await note('GET', '/api/openapi.json', call(app, 'GET', '/api/openapi.json', { headers }))
  const unready = await start(t, service, { listUnreadyReasons: () => ['draining'] })
  for (const route of ['/health/live', '/health/ready']) {
    await note('GET', route, call(app, 'GET', route))
    await note('GET', route, call(unready, 'GET', route))
  }
  await note('GET', '/metrics', call(app, 'GET', '/metrics'))
  const authorization = { headers: { authorization: 'Bearer token' } }
  await note('GET', '/metrics', call(app, 'GET', '/metrics', authorization))
})

t.test('sees the answers of viewers, with tokens and without', async (t) => {
  const open: Partial<AppOptions> = {}
  const guarded: Partial<AppOptions> = { playbackTokens: new PlaybackTokens(() => [SECRET]) }
  for (const [options, tokenOf] of [
    [open, () => ''],
    [guarded, (id: string) => tokenFor(id)],
  ] as const) {
    const app = await start(t, serviceWith().service, options)
    await askViewers(app, 'demo', tokenOf('demo'), FILES)
    await askViewers(app, 'empty', tokenOf('empty'), [])
    await askViewers(app, 'nobody', tokenOf('nobody'), [{}])
    await askViewers(app, '%2f', tokenOf('demo'), [{}])
    const full = await start(t, serviceWith({ maxWaiters: 0 }).service, options)
    await askViewers(full, 'demo', tokenOf('demo'), FILES)
    const { service, live } = serviceWith({ maxWaitMs: 9000 })
    const closing = await start(t, service, options)
    const waiting = askViewers(closing, 'demo', tokenOf('demo'), [FILES[4]!])
    await until('a viewer waits', () => live.files.waiters === 1)
    await Promise.all([closing.close(), waiting.catch(() => undefined)])
  }
  const { service } = serviceWith()
  service.streams.get('empty')!.policy = { playbackToken: false }
  const app = await start(t, service, guarded)
  await askViewers(app, 'empty', '', [])
  await askViewers(app, 'demo', '', [{}])
  await askViewers(app, 'demo', tokenFor('demo', -1), [{}])
  await askViewers(app, 'demo', tokenFor('other'), [{}])
  const unguarded = await start(t, serviceWith().service)
  await askViewers(unguarded, 'demo', tokenFor('demo'), [{}])
})

t.test('the document describes no answer that was not seen', async (t) => {
  const missing = [...documented()].filter((answer) => !seen.has(answer))
  t.same(missing, [])
})
