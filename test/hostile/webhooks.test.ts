/**
 * Receivers that never answer, unknown names, forbidden addresses, and webhooks replayed as API requests: none of them
 * delays a receiver that answers, or has any other effect.
 */
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { pino } from 'pino'
import t from 'tap'
import { parseAllowList } from '../../src/outbound/address-rules.ts'
import { MAX_CONNECTIONS } from '../../src/webhook/connection-slots.ts'
import {
  createWebhookDispatcher,
  type WebhookDispatcher,
  type WebhookDispatcherOptions,
} from '../../src/webhook/dispatcher.ts'
import type { WebhookEvent, WebhookType } from '../../src/webhook/event.ts'
import { freePort } from '../support/free-port.ts'
import { startNameServer } from '../support/name-server.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { forwardWebhooks, silentReceivers } from './attacks/webhooks.ts'
import type { Target } from './target.ts'

interface Test {
  teardown(close: () => unknown): unknown
}

const KEY = Buffer.alloc(32, 'k')

/** All webhook types; a new one must be added. */
const TYPES: Record<WebhookType, true> = {
  'stream.ready': true,
  'stream.live': true,
  'stream.interrupted': true,
  'stream.source_changed': true,
  'stream.stopped': true,
  'stream.rejected': true,
  'stream.warning': true,
  'stream.key_expiring': true,
  'stream.resumed': true,
  'stream.viewers': true,
  'stream.push_connected': true,
  'stream.push_lost': true,
  'archive.started': true,
  'archive.completed': true,
  'archive.failed': true,
  'service.started': true,
}

function start(t: Test, options: Partial<WebhookDispatcherOptions> = {}) {
  const log: string[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void log.push(line) })
  const dispatcher = createWebhookDispatcher({ readKeys: () => [KEY], logger, ...options })
  t.teardown(() => dispatcher.close({ timeoutMs: 0 }))
  return { dispatcher, log }
}

function event(type: WebhookType = 'stream.live', streamId = 'studio'): WebhookEvent {
  return { type, streamId, status: 'STREAMING', data: {} }
}

function targetOf({ server, hmacSecret, jwtSecret }: TestService): Target {
  const { httpPort, srtPort } = server
  return { host: '127.0.0.1', httpPort, srtPort, hmacSecret, jwtSecret }
}

/** Time in which places go to others and no attempt ends. */
const patience = {
  sleep: (delayMs: number, signal: AbortSignal): Promise<unknown> =>
    delayMs < 1000 ? delay(delayMs, undefined, { signal }) : new Promise(() => undefined),
}

/** Server that accepts connections and never answers. */
async function startSilent(t: Test, host = '127.0.0.1') {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections++
    sockets.add(socket.resume().on('error', () => undefined))
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, host, 1024, resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { port, sockets, connections: () => connections }
}

async function delivered(dispatcher: WebhookDispatcher, events: number): Promise<void> {
  await until(`${events} delivered`, () => dispatcher.stats().delivered === events)
}

t.test('the API refuses every type of webhook sent back to it', async (t) => {
  const service = await startService(t)
  await service.server.startStream({ streamId: 'studio' })
  const { dispatcher } = start(t, { readKeys: () => [Buffer.from(service.hmacSecret)] })
  const types = Object.keys(TYPES) as WebhookType[]
  const { types: came, answers } = await forwardWebhooks(
    targetOf(service),
    AbortSignal.timeout(60_000),
    {
      types,
      provoke: (url) => {
        for (const type of types) dispatcher.send([url], event(type))
      },
    },
  )
  t.strictSame(came, types)
  t.strictSame(
    answers,
    Array.from({ length: types.length * 3 }, () => 400),
  )
  t.equal(service.server.status('studio').status, 'READY', 'nothing has stopped it')
})

t.test(
  'the API refuses the signed text of a webhook with its signature as LT-SIGNATURE',
  async (t) => {
    const service = await startService(t)
    const hooks = await startWebhookReceiver(t)
    await service.server.startStream({ streamId: 'studio', webhookUrls: [hooks.url] })
    const { bytes, headers } = await hooks.next()
    const [, base64 = ''] = String(headers['webhook-signature']).split(',')
    const signature = Buffer.from(base64, 'base64').toString('hex')
    const covered = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.`
    for (const [body, status] of [
      [bytes, 403],
      [Buffer.concat([Buffer.from(covered), bytes]), 400],
    ] as const) {
      const reply = await fetch(`${service.url}/api/stop-stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'lt-signature': signature },
        body,
      })
      t.equal(reply.status, status)
    }
    t.equal(service.server.status('studio').status, 'READY')
  },
)

t.test('silent receivers hold a bounded number of connections', async (t) => {
  const service = await startService(t)
  const figures = await silentReceivers(targetOf(service), AbortSignal.timeout(60_000), {
    urls: 1024,
    ports: 64,
    watchMs: 3000,
  })
  t.equal(figures.urls, 1024)
  t.ok(figures.healthyMs !== undefined, 'the receiver that answers gets its webhook')
  t.ok(figures.maxConnections <= MAX_CONNECTIONS, `${figures.maxConnections} connections`)
})

t.test(
  'delivers to a receiver behind 1,600 silent ones before any of their timeouts',
  async (t) => {
    const silent = await Promise.all(Array.from({ length: 40 }, () => startSilent(t)))
    const healthy = await startWebhookReceiver(t)
    const { dispatcher } = start(t, patience)
    const urls = Array.from(
      { length: 1600 },
      (_, i) => `http://127.0.0.1:${silent[i % 40]!.port}/${i}`,
    )
    dispatcher.send([...urls, healthy.url], event())
    await delivered(dispatcher, 1)
    t.match(dispatcher.stats(), { failed: 0, pending: 1600 })
    for (let count = 2; count < 20; count++) {
      dispatcher.send([healthy.url], event())
      await delivered(dispatcher, count)
    }
    t.match(dispatcher.stats(), { failed: 0, pending: 1600 })
  },
)

t.test('URLs of one host share its connections, and leave some for a proven one', async (t) => {
  let held = 0
  const server = createHttpServer((request, reply) => {
    if (request.url === '/healthy') reply.writeHead(204).end()
    else held++
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => (server.close(), server.closeAllConnections()))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { dispatcher } = start(t, patience)
  dispatcher.send([`${base}/healthy`], event())
  await delivered(dispatcher, 1)
  dispatcher.send(
    Array.from({ length: 100 }, (_, i) => `${base}/${i}`),
    event(),
  )
  await until('all that one host gets', () => held === 16)
  dispatcher.send([`${base}/healthy`], event())
  await delivered(dispatcher, 2)
  t.match(dispatcher.stats(), { failed: 0, pending: 100 })
  t.equal(held, 16)
})

t.test('dead names delay no other URL, and are looked up once at a time', async (t) => {
  const healthy = await startWebhookReceiver(t)
  const { port } = new URL(healthy.url)
  const names = await startNameServer(t, (name) =>
    name === 'receiver.example' ? ['127.0.0.1'] : undefined,
  )
  // A name server has all the time of the test.
  const createResolver = () => names.createResolver({ timeout: 60_000, tries: 1 })
  const { dispatcher } = start(t, { ...patience, createResolver })
  const dead = Array.from({ length: 16 }, (_, i) => `http://dead-${i}.example/`)
  const same = Array.from({ length: 16 }, (_, i) => `http://dead.example/${i}`)
  dispatcher.send([...dead, ...same], event())
  const urls = [
    healthy.url,
    `http://localhost:${port}/hook`,
    `http://receiver.example:${port}/hook`,
  ]
  for (const url of urls) dispatcher.send([url], event())
  await delivered(dispatcher, 3)
  t.match(dispatcher.stats(), { failed: 0, pending: 32 })

  const queries = names.queries.filter((name) => name === 'dead.example')
  t.equal(queries.length, 2, 'once for IPv4, once for IPv6')
})

t.test('connects only to the address that was checked after the look-up', async (t) => {
  const port = await freePort()
  const receiver = await startWebhookReceiver(t, port)
  const forbidden = createServer(() => t.fail('a connection to an address that is not allowed'))
  await new Promise<void>((resolve) => forbidden.listen(port, '127.0.0.2', resolve))
  t.teardown(() => forbidden.close())
  // The owner of a name may change its address between the check and the connection.
  let answers = 0
  const names = await startNameServer(t, (name) => {
    if (name === 'rebinding.example') return [answers++ < 2 ? '127.0.0.1' : '127.0.0.2']
    return name === 'both.example' ? ['127.0.0.2', '127.0.0.1'] : ['127.0.0.2']
  })
  const { dispatcher } = start(t, { ...names, allowed: parseAllowList('127.0.0.1')! })
  dispatcher.send([`http://rebinding.example:${port}/`], event('stream.live', 'rebinding'))
  await delivered(dispatcher, 1)
  dispatcher.send([`http://both.example:${port}/`], event('stream.live', 'both'))
  await delivered(dispatcher, 2)
  dispatcher.send([`http://other.example:${port}/`, `http://127.0.0.2:${port}/`], event())
  await until('what is forbidden is dropped', () => dispatcher.stats().dropped === 2)
  t.match(dispatcher.stats(), { pending: 0 })
  const hosts = receiver.received.map(({ headers }) => headers.host)
  t.strictSame(hosts, [`rebinding.example:${port}`, `both.example:${port}`])
})

t.test('refuses link-local and metadata addresses behind any name', async (t) => {
  const names = await startNameServer(t, (name) => [
    name.replace('.example', '').replaceAll('-', '.'),
  ])
  const { dispatcher, log } = start(t, names)
  const never = ['169-254-169-254', '169-254-0-1', '100-100-100-200', '0-0-0-0', '224-0-0-1']
  dispatcher.send(
    never.map((name) => `http://${name}.example/`),
    event(),
  )
  await until('all are dropped', () => dispatcher.stats().dropped === never.length)
  t.match(dispatcher.stats(), { failed: never.length, pending: 0 }, 'and not tried again')
  t.equal(log.filter((line) => line.includes('ADDRESS_FORBIDDEN')).length, never.length)
})

t.test('start-stream refuses URLs that can never be delivered', async (t) => {
  const { tryApi } = await startService(t, { webhook: { allow: '127.0.0.0/8, .example.org' } })
  const reply = (url: string) =>
    tryApi('start-stream', { stream_id: 'studio', webhook_urls: [url] })
  const refused = [
    'http://169.254.169.254/latest/meta-data/',
    'http://0xa9fea9fe/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fd00:ec2::254]/',
    'http://[fe80::1]/',
    'http://0.0.0.0:9000/',
    'http://192.0.2.1/',
  ]
  for (const url of refused) {
    t.match(await reply(url), {
      status: 400,
      body: { code: 'BODY_INVALID', error: /^webhook_urls must not lead to link-local/ },
    })
  }
  for (const url of ['http://127.0.0.1:9/', 'http://hooks.example.org/']) {
    t.equal((await reply(url)).status, 200)
  }
})

t.test('the API reveals no difference between open and closed ports', async (t) => {
  const { api, server } = await startService(t)
  const silent = await startSilent(t)
  const closedPort = await freePort()
  const answers = []
  for (const port of [silent.port, closedPort]) {
    const webhookUrls = [`http://127.0.0.1:${port}/`]
    await server.startStream({ streamId: 'studio', webhookUrls })
    await until('a try', () => port === closedPort || silent.connections() > 0)
    const { body } = await api('status', { stream_id: 'studio' })
    const { started_at: _, stops_at: __, service: ___, ...rest } = body.data
    answers.push(JSON.stringify(rest))
  }
  t.equal(answers[0], answers[1])
  t.notMatch(answers[0], new RegExp(`${silent.port}|webhook`))
})

t.test('close delivers to healthy receivers first, and ends open connections', async (t) => {
  const silent = await startSilent(t)
  const healthy = await startWebhookReceiver(t)
  const { dispatcher, log } = start(t)
  dispatcher.send([healthy.url], event('stream.ready'))
  await delivered(dispatcher, 1)
  const urls = Array.from({ length: 500 }, (_, i) => `http://127.0.0.1:${silent.port}/${i}`)
  for (let count = 0; count < 100; count++) dispatcher.send(urls, event('stream.warning'))
  await until('silent connections', () => silent.sockets.size === 16)
  dispatcher.send([...urls, healthy.url], event('stream.stopped'))
  await dispatcher.close({ timeoutMs: 300 })
  t.strictSame(
    healthy.received.map(({ event: { type } }) => type),
    ['stream.ready', 'stream.stopped'],
  )
  t.match(dispatcher.stats(), { delivered: 2, dropped: 500 * 101, pending: 0 })
  await until('no connection is left', () => silent.sockets.size === 0)
  t.ok(log.length <= 40, `${log.length} lines in the log`)
  t.match(JSON.parse(log.at(-1)!), { msg: /^Webhooks dropped at shutdown: \d+\. / })
})

t.test('sends the host of the URL as TLS server name, not the address', async (t) => {
  const queries: string[] = []
  const server = createTlsServer({
    SNICallback: (name, callback) => {
      queries.push(name)
      callback(new Error('no certificate'))
    },
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const names = await startNameServer(t, () => ['127.0.0.1'])
  const { dispatcher } = start(t, names)
  const { port } = server.address() as AddressInfo
  dispatcher.send([`https://receiver.example:${port}/`], event())
  await until('a handshake', () => dispatcher.stats().failed === 1)
  t.strictSame(queries, ['receiver.example'])
})
