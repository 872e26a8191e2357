import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import {
  createWebhookDispatcher,
  type WebhookDispatcherOptions,
} from '../../src/webhook/dispatcher.ts'
import type { WebhookEvent } from '../../src/webhook/event.ts'
import { MAX_URLS } from '../../src/webhook/url-queues.ts'
import { freePort } from '../support/free-port.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const SECRET = 'a secret of at least 32 characters'
const KEY = Buffer.from(SECRET)
const ATTEMPT_TIMEOUT_MS = 5000

/** Clock that only advances in `pass`. */
class FakeTime {
  /** Time at which the test begins, not its file: receivers refuse timestamps older than 5 minutes. */
  readonly startMs = Math.floor(Date.now() / 1000) * 1000
  #nowMs = 0
  readonly #sleeps = new Set<{ delayMs: number; endMs: number; wake: () => void }>()
  #changed: () => void = () => undefined

  readonly clock = {
    nowUs: () => this.#nowMs * 1000,
    wallMs: () => this.startMs + this.#nowMs,
  }

  readonly sleep = (delayMs: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const sleep = { delayMs, endMs: this.#nowMs + delayMs, wake: resolve }
      this.#sleeps.add(sleep)
      signal.addEventListener('abort', () => {
        this.#sleeps.delete(sleep)
        reject(new Error('aborted'))
      })
      this.#changed()
    })

  /** Waits until a sleep of this length begins. */
  async asleep(delayMs: number): Promise<void> {
    while (![...this.#sleeps].some((sleep) => sleep.delayMs === delayMs)) {
      await new Promise<void>((resolve) => (this.#changed = resolve))
    }
  }

  /** Waits until a sleep of this length begins, and advances the clock by it. */
  async pass(delayMs: number): Promise<void> {
    await this.asleep(delayMs)
    this.jump(delayMs)
  }

  jump(delayMs: number): void {
    this.#nowMs += delayMs
    for (const sleep of this.#sleeps) {
      if (sleep.endMs > this.#nowMs) continue
      this.#sleeps.delete(sleep)
      sleep.wake()
    }
  }
}

function start(options: Partial<WebhookDispatcherOptions> = {}) {
  const time = new FakeTime()
  const log: string[] = []
  const logger = pino({ level: 'debug' }, { write: (line: string) => void log.push(line) })
  const { clock, sleep } = time
  const dispatcher = createWebhookDispatcher({
    readKeys: () => [KEY],
    logger,
    clock,
    sleep,
    ...options,
  })
  return { dispatcher, time, log }
}

function event(streamId: string, type: WebhookEvent['type'] = 'stream.live'): WebhookEvent {
  return { type, streamId, status: 'STREAMING', data: { playlist_url: 'http://x/playlist.m3u8' } }
}

/** Lets sockets do their work until the claim holds; the time of the test stands still. */
async function until(claim: () => boolean): Promise<void> {
  while (!claim()) await new Promise((resolve) => setImmediate(resolve))
}

/** @returns URL of a receiver that speaks raw TCP */
async function startTcpReceiver(
  t: { teardown(close: () => void): unknown },
  onConnection: (socket: Socket) => void,
): Promise<string> {
  const server = createTcpServer(onConnection)
  t.teardown(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

/** URL without a listener, at a port that no other process takes. */
async function deadUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}/hook`
}

t.test('sends an event as a signed POST of JSON', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const { dispatcher, time } = start()
  dispatcher.send([`${receiver.url}?token=x`], event('demo'))
  const { method, path, headers, bytes, event: body } = await receiver.next()
  t.equal(method, 'POST')
  t.equal(path, '/hook?token=x')
  t.equal(headers['content-type'], 'application/json')
  const webhook = new Webhook(SECRET, { format: 'raw' })
  t.strictSame(webhook.verify(bytes, headers as Record<string, string>), body)
  t.equal(headers['webhook-id'], body.id)
  t.equal(headers['webhook-timestamp'], String(time.startMs / 1000))
  t.notOk('lt-signature' in headers, 'it is no request of the API')
  t.strictSame(Object.keys(body), ['id', 'type', 'created_at', 'stream_id', 'status', 'data'])
  t.match(body, {
    id: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    type: 'stream.live',
    created_at: new Date(time.startMs).toISOString(),
    stream_id: 'demo',
    status: 'STREAMING',
    data: { playlist_url: 'http://x/playlist.m3u8' },
  })
  await dispatcher.close({ timeoutMs: 1 })
  t.match(dispatcher.stats(), { delivered: 1, failed: 0, dropped: 0, pending: 0 })
})

t.test('delivers every event once to each URL, in order, under one id', async (t) => {
  const receivers = [await startWebhookReceiver(t), await startWebhookReceiver(t)]
  const { dispatcher } = start()
  const ids = ['a', 'b', 'c', 'd', 'e']
  for (const id of ids)
    dispatcher.send(
      receivers.map(({ url }) => url),
      event(id),
    )
  await dispatcher.close({ timeoutMs: 1000 })
  const [first, second] = receivers.map(({ received }) => received.map((webhook) => webhook.event))
  t.strictSame(
    first?.map(({ stream_id: id }) => id),
    ids,
  )
  t.strictSame(second, first)
  t.equal(new Set(first?.map(({ id }) => id)).size, ids.length)
})

t.test('delivers an event once to a URL that is listed twice', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const { dispatcher } = start()
  dispatcher.send([receiver.url, receiver.url], event('demo'))
  await dispatcher.close({ timeoutMs: 1000 })
  t.equal(receiver.received.length, 1)
})

t.test('drops events of a malformed URL without effect on others', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const { dispatcher } = start()
  dispatcher.send(['', 'hush', 'ftp://127.0.0.1/', receiver.url], event('demo'))
  await dispatcher.close({ timeoutMs: 1000 })
  t.equal(receiver.received.length, 1)
  t.match(dispatcher.stats(), { delivered: 1, dropped: 3, pending: 0 })
})

t.test('repeats an event without a 2xx after 1, 2, 4 … 60 s with the same bytes', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const answers = [500, 404, 400, 429, 503, 199 + 1]
  receiver.answer = (reply) => reply.writeHead(answers.shift()!).end()
  const { dispatcher, time, log } = start()
  dispatcher.send([receiver.url], event('demo'))
  for (const delaySec of [1, 2, 4, 8, 16]) await time.pass(delaySec * 1000)
  await dispatcher.close({ timeoutMs: 1000 })
  t.equal(receiver.received.length, 6)
  const webhook = new Webhook(SECRET, { format: 'raw' })
  for (const { bytes, headers } of receiver.received) {
    t.ok(bytes.equals(receiver.received[0]!.bytes))
    t.equal(headers['webhook-id'], receiver.received[0]!.event.id)
    t.ok(webhook.verify(bytes, headers as Record<string, string>), 'signed for each try')
  }
  t.strictSame(
    receiver.received.map(
      ({ headers }) => Number(headers['webhook-timestamp']) - time.startMs / 1000,
    ),
    [0, 1, 3, 7, 15, 31],
  )
  t.match(dispatcher.stats(), { delivered: 1, failed: 5, dropped: 0 })
  const lines = log.map((line) => JSON.parse(line) as { level: number })
  t.match(lines[0], { failure: 'answered 500', stream_id: 'demo', type: 'stream.live' })
  t.strictSame(
    lines.map(({ level }) => level),
    [40, 20, 20, 20, 20],
    'a warning at the first failure only',
  )
})

t.test('drops an event after ten minutes, and delivers the next one', async (t) => {
  const { dispatcher, time, log } = start()
  const url = await deadUrl()
  dispatcher.send([url], event('first'))
  for (const delaySec of [1, 2, 4, 8, 16, 32]) await time.pass(delaySec * 1000)
  for (let tries = 8; tries < 15; tries++) await time.pass(60_000)
  dispatcher.send([url], event('second'))
  await time.asleep(60_000)
  t.match(dispatcher.stats(), { failed: 14, dropped: 0, pending: 2 }, 'after 483 s')

  // The try after 543 s is the last: the next would come after 603 s. Then the second event starts with 1 s.
  await time.pass(60_000)
  await time.asleep(1000)
  t.match(dispatcher.stats(), { failed: 16, dropped: 1, pending: 1 })
  t.match(JSON.parse(log.find((line) => line.includes('Webhook dropped'))!), {
    level: 40,
    failure: 'ECONNREFUSED',
    stream_id: 'first',
    webhook: new URL(url).origin,
  })
})

t.test('drops an event that waited ten minutes for a connection without an attempt', async (t) => {
  const receiver = await startWebhookReceiver(t)
  receiver.answer = () => undefined
  const { dispatcher, time, log } = start()
  const urls = Array.from({ length: 17 }, (_, id) => `${receiver.url}?${id}`)
  dispatcher.send(urls, event('demo'))
  await until(() => receiver.received.length === 16)
  time.jump(601_000)
  await until(() => dispatcher.stats().pending === 0)
  t.match(dispatcher.stats(), { delivered: 0, failed: 16, dropped: 17 })
  t.equal(receiver.received.length, 16)
  t.equal(log.filter((line) => line.includes('waited too long for a connection')).length, 1)
})

t.test('logs a connection that is closed without a response', async (t) => {
  const url = await startTcpReceiver(t, (socket) => {
    socket.once('data', () => {
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    })
  })
  const { dispatcher, log } = start()
  dispatcher.send([url], event('demo'))
  await until(() => log.length > 0)
  t.match(JSON.parse(log[0]!), {
    failure: 'NO_ANSWER',
    msg: 'Webhook failed, is retried for 10 minutes.',
  })
  await dispatcher.close({ timeoutMs: 1 })
})

t.test('disconnects a receiver that sends endless interim responses', async (t) => {
  let sent = 0
  const url = await startTcpReceiver(t, (socket) => {
    const timer = setInterval(() => {
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
      sent++
    }, 1)
    socket.on('error', () => undefined).once('close', () => clearInterval(timer))
  })
  const { dispatcher, log } = start()
  dispatcher.send([url], event('demo'))
  await until(() => log.length > 0)
  t.match(JSON.parse(log[0]!), { failure: 'NO_ANSWER' })
  t.ok(sent > 8, `${sent} interim responses`)
  await dispatcher.close({ timeoutMs: 1 })
})

t.test('delivers waiting events in order when a receiver returns', async (t) => {
  const url = await deadUrl()
  const { dispatcher, time } = start()
  for (const id of ['a', 'b', 'c']) dispatcher.send([url], event(id))
  await time.pass(1000)
  await time.asleep(2000)
  const receiver = await startWebhookReceiver(t, Number(new URL(url).port))
  await time.pass(2000)
  for (const id of ['a', 'b', 'c']) t.equal((await receiver.next()).event.stream_id, id)
  await dispatcher.close({ timeoutMs: 1000 })
  t.match(dispatcher.stats(), { delivered: 3, failed: 2, pending: 0 })
})

t.test('repeats an event to a silent URL after 5 s without delaying others', async (t) => {
  const silent = await startWebhookReceiver(t)
  silent.answer = () => undefined
  const prompt = await startWebhookReceiver(t)
  const { dispatcher, time, log } = start()
  for (const id of ['a', 'b', 'c']) dispatcher.send([silent.url, prompt.url], event(id))
  for (const id of ['a', 'b', 'c']) t.equal((await prompt.next()).event.stream_id, id)
  t.equal((await silent.next()).event.stream_id, 'a')
  await until(() => dispatcher.stats().delivered === 3)

  await time.pass(ATTEMPT_TIMEOUT_MS)
  await time.pass(1000)
  t.equal((await silent.next()).event.stream_id, 'a')
  t.match(JSON.parse(log[0]!), { failure: 'no answer within 5000 ms' })
  t.equal(prompt.received.length, 3)

  silent.answer = (reply) => reply.writeHead(204).end()
  await time.pass(ATTEMPT_TIMEOUT_MS)
  await time.pass(2000)
  for (const id of ['a', 'b', 'c']) t.equal((await silent.next()).event.stream_id, id)
  await dispatcher.close({ timeoutMs: 1000 })
})

t.test('treats a redirect as a failure without following it', async (t) => {
  const target = await startWebhookReceiver(t)
  const receiver = await startWebhookReceiver(t)
  const statuses = [301, 302, 303, 307, 308]
  const answers = [...statuses, 204]
  receiver.answer = (reply) => reply.writeHead(answers.shift()!, { location: target.url }).end()
  const { dispatcher, time, log } = start()
  dispatcher.send([receiver.url], event('demo'))
  for (const delaySec of [1, 2, 4, 8, 16]) await time.pass(delaySec * 1000)
  await dispatcher.close({ timeoutMs: 1000 })
  t.equal(target.received.length, 0)
  t.match(dispatcher.stats(), { delivered: 1, failed: 5 })
  t.match(
    log.map((line) => JSON.parse(line) as object),
    statuses.map((status) => ({ failure: `answered ${status}` })),
  )
})

t.test('counts an endless response as delivered by its status, and disconnects', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const cutOff = new Promise<void>((resolve) => {
    receiver.answer = (reply) => {
      reply.writeHead(200)
      const pour = () => {
        while (reply.write(Buffer.alloc(65_536)));
      }
      reply.on('drain', pour).on('close', resolve)
      pour()
    }
  })
  const { dispatcher } = start()
  dispatcher.send([receiver.url], event('demo'))
  await cutOff
  await dispatcher.close({ timeoutMs: 1000 })
  t.match(dispatcher.stats(), { delivered: 1, failed: 0 })
})

t.test('keeps 256 events of a failing URL, and drops and counts the oldest', async (t) => {
  const url = await deadUrl()
  const { dispatcher, time } = start()
  for (let index = 0; index < 300; index++) dispatcher.send([url], event(`s${index}`))
  t.match(dispatcher.stats(), { dropped: 44, pending: 256 })
  await time.asleep(1000)

  const receiver = await startWebhookReceiver(t, Number(new URL(url).port))
  await dispatcher.close({ timeoutMs: 1000 })
  t.strictSame(
    receiver.received.map((webhook) => webhook.event.stream_id),
    ['s0', ...Array.from({ length: 255 }, (_, index) => `s${index + 45}`)],
    'the first is being delivered, and is not taken away',
  )
  t.match(dispatcher.stats(), { delivered: 256, dropped: 44, pending: 0 })
})

t.test('attempts no more delivery to a URL that was displaced during its pause', async (t) => {
  const url = await deadUrl()
  const silent = await startWebhookReceiver(t)
  silent.answer = () => undefined
  const { dispatcher, time } = start()
  dispatcher.send([url], event('a'))
  await time.asleep(1000)
  const others = Array.from({ length: MAX_URLS }, (_, index) => `${silent.url}/${index}`)
  dispatcher.send(others, event('b'))
  t.match(dispatcher.stats(), { failed: 1, dropped: 1, pending: MAX_URLS })
  const receiver = await startWebhookReceiver(t, Number(new URL(url).port))
  await silent.next()
  time.jump(1000)
  const closed = dispatcher.close({ timeoutMs: 1 })
  await time.pass(1)
  await closed
  t.equal(receiver.received.length, 0)
  t.match(dispatcher.stats(), { delivered: 0, failed: 1, pending: 0 })
})

t.test('sends a limited event once in 10 s per stream, and other events always', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const { dispatcher, time } = start()
  const send = (id: string, rateLimitKey?: string) =>
    dispatcher.send([receiver.url], {
      ...event(id, rateLimitKey === undefined ? 'stream.live' : 'stream.warning'),
      data: { rateLimitKey },
      ...(rateLimitKey !== undefined && { rateLimitKey }),
    })
  send('a', 'NO_PAT')
  send('a', 'NO_PAT')
  send('b', 'NO_PAT')
  send('a', 'OPEN_GOP')
  send('a')
  send('a')
  await until(() => dispatcher.stats().pending === 0)
  time.jump(9999)
  send('a', 'NO_PAT')
  t.equal(dispatcher.stats().pending, 0)
  time.jump(1)
  send('a', 'NO_PAT')
  send('b', 'NO_PAT')
  send('b', 'NO_PAT')
  await dispatcher.close({ timeoutMs: 1000 })
  const delivered = receiver.received.map(({ event: { stream_id: id, data } }) =>
    [id, data['rateLimitKey']].join(' '),
  )
  const first = ['a NO_PAT', 'b NO_PAT', 'a OPEN_GOP', 'a ', 'a ']
  t.strictSame(delivered, [...first, 'a NO_PAT', 'b NO_PAT'])
  t.match(dispatcher.stats(), { suppressed: 3 })
})

t.test('does not limit an event after one without URLs', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const { dispatcher } = start()
  const refusal = { ...event('demo', 'stream.rejected'), rateLimitKey: 'stream.rejected' }
  dispatcher.send([], refusal)
  dispatcher.send([receiver.url], refusal)
  t.equal((await receiver.next()).event.type, 'stream.rejected')
  t.match(dispatcher.stats(), { suppressed: 0 })
  await dispatcher.close({ timeoutMs: 1000 })
})

t.test('close makes one attempt for each pending event, and ends slow ones', async (t) => {
  const prompt = await startWebhookReceiver(t)
  const silent = await startWebhookReceiver(t)
  silent.answer = () => undefined
  const dead = await deadUrl()
  const { dispatcher, time } = start()
  dispatcher.send([prompt.url, silent.url, dead], event('a'))
  dispatcher.send([prompt.url, silent.url, dead], event('b'))
  await silent.next()
  await time.asleep(1000)

  const closed = dispatcher.close({ timeoutMs: 1500 })
  dispatcher.send([prompt.url], event('too late'))
  await until(() => dispatcher.stats().delivered === 2 && dispatcher.stats().dropped === 3)
  await time.pass(1500)
  await closed
  t.strictSame(
    prompt.received.map((webhook) => webhook.event.stream_id),
    ['a', 'b'],
  )
  // Two for the dead URL after a second try, two for the silent one, one that came too late.
  t.match(dispatcher.stats(), { delivered: 2, dropped: 5, pending: 0 })
})

t.test('close settles at once when nothing is pending', async (t) => {
  const { dispatcher } = start()
  await dispatcher.close({ timeoutMs: 60_000 })
  t.match(dispatcher.stats(), { delivered: 0, failed: 0, dropped: 0, suppressed: 0, pending: 0 })
})

t.test('reveals neither URL path, secret nor event in the log', async (t) => {
  const receiver = await startWebhookReceiver(t)
  receiver.answer = (reply) => reply.writeHead(500).end('answer text')
  const { dispatcher, log } = start()
  dispatcher.send([`${receiver.url}/hush?token=hush`], {
    ...event('demo', 'stream.ready'),
    data: { stream_key: 'hush' },
  })
  await receiver.next()
  await dispatcher.close({ timeoutMs: 1000 })
  t.match(log.join(''), /Webhook dropped/)
  t.notMatch(log.join(''), /hush|answer text|a secret/)
})

t.test('lets many URLs wait without a warning from Node', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const dead = await deadUrl()
  const logger = pino({ level: 'silent' })
  // With Node's timers, which add a listener for each wait.
  const dispatcher = createWebhookDispatcher({ readKeys: () => [KEY], logger })
  const urls = Array.from({ length: 30 }, (_, index) => `${dead}/${index}`)
  dispatcher.send(urls, event('demo'))
  await until(() => dispatcher.stats().failed === 30)
  await dispatcher.close({ timeoutMs: 1000 })
  t.strictSame(warnings, [])
  t.match(dispatcher.stats(), { failed: 60, dropped: 30 })
})
