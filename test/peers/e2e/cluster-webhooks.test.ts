/**
 * A cluster of real processes whose receiver of webhooks is away when the owner of a stream is killed.
 */
import t from 'tap'
import { createSecrets, encodeInLoop, startNodes } from '../support/node-processes.ts'
import { startRedis } from '../support/redis.ts'
import { callApi } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { receivedTypes, startWebhookReceiver } from '../../support/webhook-receiver.ts'

t.test('webhooks outlive the node where they happened', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'redis-server')) return
  const { url } = await startRedis(t)
  const secrets = createSecrets()
  const nodes = await startNodes(t, 'serve', {
    ...secrets,
    REDIS_URL: url,
    RECONNECT_GRACE_SEC: '3',
  })
  const [owner, other] = nodes
  await until('all nodes have joined', () => nodes.every((node) => node.id() !== ''))
  const receiver = await startWebhookReceiver(t)
  receiver.answer = (reply) => reply.writeHead(503).end()
  const body = { stream_id: 'studio', webhook_urls: [receiver.url] }
  const started = await callApi(owner!.url, 'start-stream', body, secrets.HMAC_SECRET)
  encodeInLoop(t, [owner!], String(started.body.data['srt_url']))
  await until('live', async () => {
    const status = await callApi(other!.url, 'status', { stream_id: 'studio' }, secrets.HMAC_SECRET)
    return status.body.data['live'] === true
  })
  await until('tried', () => receiver.received.length > 0)
  const ready = receiver.received[0]!.event
  owner!.program.kill('SIGKILL')
  const killedMs = Date.now()
  const before = receiver.received.length
  receiver.answer = (reply) => reply.writeHead(204).end()
  await until('the end', () => receivedTypes(receiver).includes('stream.stopped'))
  const late = receiver.received.slice(before).map(({ event }) => event)
  t.strictSame(
    late.map(({ type }) => type),
    ['stream.ready', 'stream.live', 'stream.interrupted', 'stream.stopped'],
    'all of them, once, in order',
  )
  t.equal(late[0]?.id, ready.id)
  t.comment(`the end was received ${Date.now() - killedMs} ms after the kill`)
})
