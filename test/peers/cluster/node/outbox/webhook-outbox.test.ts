/**
 * Outboxes of several nodes over a real Redis, with real dispatchers and a real receiver.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { machineClock, machineTimers } from '../../../../../src/timing/clock.ts'
import { Redis } from '../../../../../src/cluster/registry/redis.ts'
import { Outboxes } from '../../../../../src/cluster/registry/outboxes.ts'
import { MillraceError } from '../../../../../src/errors.ts'
import { createLogger } from '../../../../../src/logger.ts'
import { WebhookOutbox } from '../../../../../src/cluster/node/outbox/webhook-outbox.ts'
import { createWebhookDispatcher } from '../../../../../src/webhook/dispatcher.ts'
import type { WebhookEvent } from '../../../../../src/webhook/event.ts'
import { openRegistry } from '../../registry/open-registry.ts'
import { startRedis } from '../../../support/redis.ts'
import { requireTool } from '../../../support/tools.ts'
import { until } from '../../../../support/until.ts'
import { startWebhookReceiver } from '../../../../support/webhook-receiver.ts'

const SECRET = 'c'.repeat(32)
const logger = createLogger('silent')

const eventOf = (streamId: string, type: WebhookEvent['type'] = 'stream.live'): WebhookEvent => ({
  ...{ type, streamId, status: 'STREAMING', data: { stream_key: 'key of the encoder' } },
})

interface NodeOptions {
  readonly secrets?: readonly string[]
  readonly webhookUrls?: readonly string[]
  readonly settleMs?: number
  /** Takes the place of a command's reply. */
  readonly intercept?: (args: readonly (string | Buffer)[], reply: unknown) => unknown
}

async function startNode(
  t: Test,
  url: string,
  {
    secrets = [SECRET],
    webhookUrls = [],
    settleMs = 0,
    intercept = (_, reply) => reply,
  }: NodeOptions = {},
) {
  const node = randomBytes(4).toString('hex')
  const redis = new Redis({ url, timeoutMs: 1000 })
  redis.connect()
  await until('a connection', () => redis.isReady)
  const registry = openRegistry(redis)
  await registry.renewNode({ node, url: 'http://node' })
  const outboxes = new Outboxes({
    redis: {
      command: async (args, options) => intercept(args, await redis.command(args, options)),
    },
    settleMs,
  })
  const webhooks = createWebhookDispatcher({
    readKeys: () => [Buffer.from(SECRET)],
    logger,
    readOutbox: () => outbox,
  })
  const outbox = new WebhookOutbox({
    ...{
      node,
      outboxes,
      clock: machineClock,
      timers: machineTimers,
      logger,
      webhooks,
      webhookUrls,
    },
    readClusterSecrets: () => secrets,
  })
  const timer = setInterval(() => void outbox.look(), 100)
  const die = async () => {
    clearInterval(timer)
    await Promise.all([webhooks.close({ timeoutMs: 0 }), redis.close()])
  }
  t.teardown(die)
  return {
    ...{ node, redis, registry, outbox, webhooks },
    /** Ends the node without a word. */
    die,
    keysOfOutbox: async () =>
      ((await redis.command(['HKEYS', `mr:node:${node}:outbox`])) as string[]).toSorted(),
  }
}

type Node = Awaited<ReturnType<typeof startNode>>

async function startTwo(t: Test, options?: NodeOptions) {
  const redis = await startRedis(t)
  const [a, b] = [await startNode(t, redis.url, options), await startNode(t, redis.url, options)]
  const receiver = await startWebhookReceiver(t)
  return { redis, a, b, receiver }
}

const idsOf = (received: readonly { readonly event: { readonly id: string } }[]) =>
  received.map(({ event }) => event.id)

if (requireTool(t, 'redis-server')) {
  t.test('delivered events leave nothing in Redis', async (t) => {
    const { a, receiver } = await startTwo(t)
    for (let n = 0; n < 200; n++) a.webhooks.send([receiver.url], eventOf(`s${n}`))
    await until('all are received', () => receiver.received.length === 200)
    await until('nothing is kept', async () => {
      const report = a.outbox.report()
      return report.kept === 0 && report.waiting === 0 && (await a.keysOfOutbox()).length === 0
    })
    t.match(a.outbox.report(), { found: 0, unkept: 0, unreadable: 0 })
    t.equal(new Set(idsOf(receiver.received)).size, 200)
  })

  t.test('another node delivers the events of one that dies, once and in order', async (t) => {
    const { a, b, receiver } = await startTwo(t)
    const other = await startWebhookReceiver(t)
    receiver.answer = (reply) => reply.writeHead(500).end()
    for (let n = 0; n < 120; n++) a.webhooks.send([receiver.url, other.url], eventOf(`s${n}`))
    a.webhooks.send([other.url], eventOf('elsewhere'))
    a.webhooks.send([receiver.url], eventOf('crowd', 'stream.viewers'))
    await until('kept, but for what all its URLs have', async () => {
      const { kept, waiting } = a.outbox.report()
      return kept === 120 && waiting === 0 && (await a.keysOfOutbox()).length === 120
    })
    t.equal(other.received.length, 121)
    const [failed] = idsOf(receiver.received)
    await a.die()
    await b.registry.leaveNode(a.node)
    const before = receiver.received.length
    receiver.answer = (reply) => reply.writeHead(204).end()
    await until('all are received', () => receiver.received.length >= before + 120)
    await until('Redis has none', async () => b.outbox.report().kept === 0)
    const late = receiver.received.slice(before).map(({ event }) => event)
    t.strictSame(
      late.map((event) => event.stream_id),
      Array.from({ length: 120 }, (_, n) => `s${n}`),
    )
    t.equal(late[0]?.id, failed, 'under the id that the receiver has seen')
    t.equal(b.outbox.report().found, 120)
    await until('the outbox is gone', async () => {
      return (await b.redis.command(['HLEN', 'mr:outboxes'])) === 0
    })
  })

  t.test('events of a node that dies twice move on', async (t) => {
    const { redis, a, b, receiver } = await startTwo(t)
    receiver.answer = (reply) => reply.writeHead(500).end()
    a.webhooks.send([receiver.url], eventOf('studio'))
    await until('kept', () => a.outbox.report().kept === 1)
    const moveOn = async (dying: Node, next: Node) => {
      await dying.die()
      await next.registry.leaveNode(dying.node)
      await until('found', () => next.outbox.report().found === 1)
    }
    await moveOn(a, b)
    await moveOn(b, await startNode(t, redis.url))
    t.equal(new Set(idsOf(receiver.received)).size, 1)
  })

  t.test('a node that closes leaves its events to others and drops none', async (t) => {
    const { a, b, receiver } = await startTwo(t)
    receiver.answer = (reply) => reply.writeHead(500).end()
    for (const id of ['one', 'two']) a.webhooks.send([receiver.url], eventOf(id))
    await until('tried', () => receiver.received.length > 0)
    await a.webhooks.close({ timeoutMs: 1000 })
    a.webhooks.send([receiver.url], eventOf('three'))
    await a.outbox.flush(1000)
    t.match(a.webhooks.stats(), { delivered: 0, dropped: 0 })
    const before = receiver.received.length
    receiver.answer = (reply) => reply.writeHead(204).end()
    await b.registry.leaveNode(a.node)
    // A request that was under way may arrive late.
    const received = () =>
      new Set(receiver.received.slice(before).map(({ event }) => event.stream_id))
    await until('all are received', () => received().size >= 3)
    t.strictSame([...received()], ['one', 'two', 'three'])
  })

  t.test('events that are dropped leave Redis', async (t) => {
    const { a } = await startTwo(t)
    a.webhooks.send(['http://169.254.169.254/'], eventOf('studio'))
    await until('dropped', () => a.webhooks.stats().dropped === 1)
    await until('nothing is kept', async () => (await a.keysOfOutbox()).length === 0)
    t.match(a.outbox.report(), { kept: 0, waiting: 0 })
  })

  t.test('without Redis events are delivered, and kept once it is back', async (t) => {
    const { redis, a, receiver } = await startTwo(t)
    const failing = await startWebhookReceiver(t)
    failing.answer = (reply) => reply.writeHead(500).end()
    a.webhooks.send([failing.url], eventOf('before'))
    await until('kept', () => a.outbox.report().kept === 1)
    redis.program.child.kill('SIGKILL')
    await until('lost', () => !a.redis.isReady)
    a.webhooks.send([receiver.url], eventOf('meanwhile'))
    a.webhooks.send([failing.url], eventOf('after'))
    // The receiver has it before the node has the reply.
    await until('delivered', () => a.webhooks.stats().delivered === 1)
    t.match(a.outbox.report(), { kept: 1, waiting: 1 })
    await startRedis(t, { port: redis.port })
    await until('a connection', () => a.redis.isReady)
    await until('both are kept, by a Redis that had lost the first', async () => {
      return a.outbox.report().kept === 2 && (await a.keysOfOutbox()).length === 2
    })
    t.equal(a.outbox.report().waiting, 0)
  })

  t.test('what Redis has taken without a reply is neither lost nor sent twice', async (t) => {
    let isLossy = true
    const intercept: NodeOptions['intercept'] = (_, reply) => {
      if (isLossy) throw new MillraceError('REGISTRY_UNAVAILABLE')
      return reply
    }
    const { a, receiver } = await startTwo(t, { intercept })
    let answerNow = (): unknown => undefined
    receiver.answer = (reply) => (answerNow = () => reply.writeHead(204).end())
    a.webhooks.send([receiver.url], eventOf('studio'))
    await until('received', () => receiver.received.length === 1)
    await until('in Redis', async () => (await a.keysOfOutbox()).length === 1)
    t.match(a.outbox.report(), { kept: 0, waiting: 1 })
    answerNow()
    receiver.answer = (reply) => reply.writeHead(204).end()

    // The reply of the announcement is lost, too.
    await a.registry.start('show', { options: {}, keyExpiresAtMs: Date.now() + 60_000 })
    const stopped = await a.registry.stop('show', { reason: 'api', lingerMs: 0 })
    if (stopped.outcome !== 'stopped') throw new Error(stopped.outcome)
    const run = { streamId: 'show', run: stopped.stream.run }
    const end = { urls: [receiver.url], event: eventOf('show', 'stream.stopped') }
    await t.rejects(a.outbox.announce(run, end), { code: 'REGISTRY_UNAVAILABLE' })
    t.equal(receiver.received.length, 1)
    isLossy = false
    t.equal(await a.outbox.announce(run, end), false, 'it is announced already')
    await until('found', () => receiver.received.length === 2)
    t.match(receiver.received[1], { event: { type: 'stream.stopped', stream_id: 'show' } })
    await until('nothing is kept', async () => (await a.keysOfOutbox()).length === 0)
    // What would have come a second time comes before the end of another run, which a later round finds.
    const options = { webhookUrls: [receiver.url] }
    await a.registry.start('later', { options, keyExpiresAtMs: Date.now() + 60_000 })
    await a.registry.stop('later', { reason: 'api', lingerMs: 0 })
    await until('a later round', () => receiver.received.length > 2)
    t.strictSame(
      receiver.received.map(({ event }) => event.stream_id),
      ['studio', 'show', 'later'],
    )
  })

  t.test('the end of a run is announced once, though two nodes try', async (t) => {
    const receiver = await startWebhookReceiver(t)
    const { a, b } = await startTwo(t, { webhookUrls: [receiver.url] })
    const options = { webhookUrls: [`${receiver.url}/own`] }
    const keyExpiresAtMs = Date.now() + 60_000
    for (const [id, own] of [
      ['x', options],
      ['y', {}],
    ] as const) {
      await a.registry.start(id, { options: own, keyExpiresAtMs })
      await a.registry.stop(id, { reason: 'api', lingerMs: 0 })
      // A new run does not hide that the last one has ended.
      await a.registry.start(id, { options: {}, keyExpiresAtMs })
    }
    await until('both', () => receiver.received.length === 2)
    // What the other node would have announced too comes before the end of another run, which a later round finds.
    await a.registry.start('z', { options, keyExpiresAtMs })
    await a.registry.stop('z', { reason: 'api', lingerMs: 0 })
    await until('a later round', () => receiver.received.length > 2)
    t.strictSame(
      receiver.received.map(({ path, event }) => `${event.stream_id} ${path}`).toSorted(),
      ['x /hook/own', 'y /hook', 'z /hook/own'],
    )
    t.match(receiver.received[0]?.event, {
      ...{ type: 'stream.stopped', status: 'STOPPED' },
      data: { reason: 'api', totals: { segments: 0, dropped: {} } },
    })
    t.strictSame(await new Outboxes({ redis: b.redis }).unannounced(b.node, 10), [])
  })

  t.test('an end whose announcement Redis has lost has the id that it had', async (t) => {
    const receiver = await startWebhookReceiver(t)
    // Until they have settled, nodes leave the announcement to the owner.
    const { redis, a, b } = await startTwo(t, { webhookUrls: [receiver.url], settleMs: 600_000 })
    await a.registry.start('studio', { options: {}, keyExpiresAtMs: Date.now() + 60_000 })
    const { node } = a
    await a.registry.claim('studio', { node, epoch: 'e', seenFence: 0 })
    const stopped = await a.registry.stop('studio', { reason: 'api', lingerMs: 0 })
    if (stopped.outcome !== 'stopped') throw new Error(stopped.outcome)
    const run = { streamId: 'studio', run: stopped.stream.run }
    const lose = async () => {
      const name = `studio ${run.run}`
      await b.redis.command(['HSET', 'mr:unannounced:ends', name, `${node} api `])
      await b.redis.command(['ZADD', 'mr:unannounced', '1', name])
    }
    const isAnnounced = async () => (await b.redis.command(['ZCARD', 'mr:unannounced'])) === 0
    const end = { urls: [receiver.url], event: eventOf('studio', 'stream.stopped') }
    t.equal(await a.outbox.announce(run, end), true)
    await until('received', () => receiver.received.length === 1)
    await lose()
    await until('the owner knows that it has announced it', isAnnounced)
    t.equal(await a.outbox.announce(run, end), false)
    await until('nothing is kept', async () => (await a.keysOfOutbox()).length === 0)
    t.equal(receiver.received.length, 1)

    await a.die()
    await lose()
    const c = await startNode(t, redis.url, { webhookUrls: [receiver.url] })
    await until('another node announces it', () => receiver.received.length === 2)
    t.equal(new Set(idsOf(receiver.received)).size, 1)
    t.match(
      idsOf(receiver.received)[0],
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    await until('settled', () => c.outbox.report().kept === 0)
  })

  t.test('Redis has neither stream keys nor URLs, and what others write is not sent', async (t) => {
    const { redis, a, b, receiver } = await startTwo(t)
    receiver.answer = (reply) => reply.writeHead(500).end()
    a.webhooks.send([receiver.url], eventOf('studio', 'stream.ready'))
    await until('kept', () => a.outbox.report().kept === 1)
    const [id, text] = (await a.redis.command(['HGETALL', `mr:node:${a.node}:outbox`])) as string[]
    t.notMatch(Buffer.from(text!, 'base64').toString('latin1'), /key|hook|studio/)
    await b.redis.command(['HSET', `mr:node:${a.node}:outbox`, 'forged', text!])
    await until('found', () => a.outbox.report().unreadable === 1)
    await until('removed', async () => (await a.keysOfOutbox()).length === 1)

    const newest = await startNode(t, redis.url, { secrets: ['n'.repeat(32), SECRET] })
    await a.die()
    await b.die()
    for (const { node } of [a, b]) await newest.registry.leaveNode(node)
    await until('found', () => newest.outbox.report().found === 1)
    t.strictSame([...new Set(idsOf(receiver.received))], [id], 'during a rotation of the secret')
  })

  t.test('what is too large is delivered without being kept', async (t) => {
    const { a, receiver } = await startTwo(t)
    const data = { text: 'x'.repeat(128 * 1024) }
    a.webhooks.send([receiver.url], { ...eventOf('studio'), data })
    await until('received', () => receiver.received.length === 1)
    t.match(a.outbox.report(), { kept: 0, waiting: 0, unkept: 1 })
  })
}
