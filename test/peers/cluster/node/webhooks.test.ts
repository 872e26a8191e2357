/**
 * Webhooks of a cluster of real services: what becomes of them when a node goes away, is cut off, or loses Redis.
 */
import t from 'tap'
import type { EndpointName } from '../../../../src/api/endpoints.ts'
import type { Server } from '../../../../src/service/server.ts'
import { encodeTo, linkTo, startCluster } from '../../support/cluster.ts'
import { callApi } from '../../../support/service.ts'
import { ask } from '../../support/redis.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'
import {
  receivedTypes,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../../../support/webhook-receiver.ts'

const endsOf = ({ received }: WebhookReceiver) =>
  received.filter(({ event }) => event.type === 'stream.stopped').map(({ event }) => event)

if (requireTool(t, 'redis-server')) {
  t.test('a node that closes leaves its webhooks to another one', async (t) => {
    const cluster = await startCluster(t)
    const [a, b] = [await cluster.startNode(), await cluster.startNode()]
    const receiver = await startWebhookReceiver(t)
    receiver.answer = (reply) => reply.writeHead(500).end()
    const key = await cluster.startStream('studio', { webhookUrls: [receiver.url] })
    const encoder = encodeTo(t, a, key)
    await until('live', () => receivedTypes(receiver).includes('stream.live'))
    const [{ event: failed }] = receiver.received as [(typeof receiver.received)[number]]
    await a.close()
    const before = receiver.received.length
    receiver.answer = (reply) => reply.writeHead(204).end()
    encoder.stop()
    await until('both', () => receiver.received.length >= before + 2)
    const [live, interrupted] = receiver.received.slice(before)
    t.match(live?.event, { type: 'stream.live', id: failed.id })
    t.match(interrupted?.event, { type: 'stream.interrupted' }, 'from the node that adopts it')
    await until('adopted', () => b.findStream('studio')?.status === 'INTERRUPTED')
  })

  t.test('a run has one stream.stopped, with the totals of its owner', async (t) => {
    const cluster = await startCluster(t)
    const [a, b] = [await cluster.startNode(), await cluster.startNode()]
    const receiver = await startWebhookReceiver(t)
    const api = (node: Server, name: EndpointName) =>
      callApi(
        `http://127.0.0.1:${node.httpPort}`,
        name,
        { stream_id: 'studio' },
        cluster.hmacSecret,
      )
    const key = await cluster.startStream('studio', { webhookUrls: [receiver.url] })
    const encoder = encodeTo(t, a, key)
    await until('media', () => (a.findStream('studio')?.report().totals.segments ?? 0) > 1)
    const stops = await Promise.all([a, b, b].map((node) => api(node, 'stop-stream')))
    for (const { body } of stops) t.equal(body.data['status'], 'STOPPED')
    encoder.stop()
    await until('stopped', () => endsOf(receiver).length === 1)
    const { totals } = (await api(a, 'status')).body.data
    t.strictSame(endsOf(receiver)[0]?.data, { reason: 'api', totals })
    t.ok(totals.segments > 1)
    t.match(
      await ask(cluster.redis.port, 'ZCARD mr:unannounced'),
      ':0',
      'no node has to announce it',
    )
  })

  t.test(
    'an end that Redis has lost is written to it again, and no webhook repeats it',
    async (t) => {
      const cluster = await startCluster(t)
      const [a] = [await cluster.startNode(), await cluster.startNode()]
      const { port } = cluster.redis
      const receiver = await startWebhookReceiver(t)
      const key = await cluster.startStream('studio', { webhookUrls: [receiver.url] })
      const encoder = encodeTo(t, a, key)
      await until('live', () => receivedTypes(receiver).includes('stream.live'))
      const { owner } = (await cluster.registry.get('studio'))!
      await a.control.stopStream('studio')
      encoder.stop()
      await until('stopped', () => endsOf(receiver).length === 1)
      // As a replica has it that got neither the stop nor the announcement.
      await ask(port, 'HSET mr:{studio} status STREAMING')
      await ask(port, `ZADD mr:node:${owner}:streams 0 studio`)
      const isStopped = async () => (await cluster.registry.get('studio'))?.status === 'STOPPED'
      await until('the stop is back', isStopped)
      const isOver = async () =>
        /:0/.test(await ask(port, 'ZCARD mr:unannounced')) &&
        /:0/.test(await ask(port, 'HLEN mr:outboxes'))
      await until('no node has to announce it', isOver)
      t.equal(endsOf(receiver).length, 1)
    },
  )

  t.test('a node that is cut off does not end the stream of another one', async (t) => {
    const cluster = await startCluster(t, { reconnectGraceSec: 5 })
    const link = await linkTo(t, cluster.redis)
    const a = await cluster.startNode({ redisUrl: link.url })
    const b = await cluster.startNode()
    const receiver = await startWebhookReceiver(t)
    const key = await cluster.startStream('studio', { webhookUrls: [receiver.url] })
    const encoder = encodeTo(t, a, key)
    await until('live', () => a.findStream('studio')?.report().live)
    link.cut()
    encoder.stop()
    await encoder.end
    await until('adopted', () => b.findStream('studio') !== undefined)
    const next = encodeTo(t, b, key, true)
    await until('live', () => b.findStream('studio')?.report().live)
    await until(
      'the grace of the first is over',
      () => a.findStream('studio')?.status === 'STOPPED',
    )
    link.mend()
    await until('the first gives it up', () => a.findStream('studio') === undefined)
    t.strictSame(endsOf(receiver), [])
    next.stop()
    await until('stopped', () => endsOf(receiver).length > 0)
    t.match(endsOf(receiver), [{ data: { reason: 'grace-expired' } }])
  })

  t.test('an end that Redis did not hear of is announced when it is back', async (t) => {
    const cluster = await startCluster(t, { reconnectGraceSec: 1 })
    const a = await cluster.startNode()
    const receiver = await startWebhookReceiver(t)
    const key = await cluster.startStream('studio', { webhookUrls: [receiver.url] })
    const encoder = encodeTo(t, a, key)
    await until('live', () => receivedTypes(receiver).includes('stream.live'))
    cluster.redis.program.kill('SIGSTOP')
    encoder.stop()
    await until('over', () => a.findStream('studio')?.status === 'STOPPED')
    t.match(receivedTypes(receiver).at(-1), 'stream.interrupted', 'the others need no Redis')
    t.strictSame(endsOf(receiver), [])
    cluster.redis.program.kill('SIGCONT')
    await until('stopped', () => endsOf(receiver).length === 1)
    t.match(await cluster.registry.get('studio'), { status: 'STOPPED', reason: 'grace-expired' })
  })

  t.test('a stream that no node owns ends with one webhook', async (t) => {
    const cluster = await startCluster(t)
    const nodes = [await cluster.startNode(), await cluster.startNode()]
    const receiver = await startWebhookReceiver(t)
    await cluster.startStream('studio', { webhookUrls: [receiver.url] })
    for (const node of nodes) {
      const url = `http://127.0.0.1:${node.httpPort}`
      await callApi(url, 'stop-stream', { stream_id: 'studio' }, cluster.hmacSecret)
    }
    await until('stopped', () => endsOf(receiver).length > 0)
    t.match(endsOf(receiver), [{ stream_id: 'studio', status: 'STOPPED', data: { reason: 'api' } }])
  })
}
