/**
 * The only node of a cluster is killed, or closed, and started again: its streams go on, with their media.
 */
import t from 'tap'
import { complaintsButOfWindow, watchStream } from '../support/cluster.ts'
import {
  createSecrets,
  encodeInLoop,
  startNodes,
  type NodeProcess,
} from '../support/node-processes.ts'
import { ask, startRedis } from '../support/redis.ts'
import { callApi, tryApi } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

/** Numbers that a new process skips if the lease of the one before has lapsed: it may have used them. */
const UNSEEN = 1000

t.test('streams of a single node survive its restarts', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'redis-server')) return
  const redis = await startRedis(t)
  const hooks = await startWebhookReceiver(t)
  const secrets = createSecrets()
  const env = {
    ...secrets,
    REDIS_URL: redis.url,
    CLUSTER_BACKUP: 'true',
    ...{ HLS_SEGMENT_SEC: '1', HLS_PLAYLIST_SEGMENTS: '12' },
  }
  const [node] = (await startNodes(t, 'serve', env, 1)) as [NodeProcess]
  const { url } = node
  const started = await until('the registry answers', async () => {
    const request = { stream_id: 'studio', webhook_urls: [hooks.url] }
    const { status, body } = await tryApi(url, 'start-stream', request, secrets.HMAC_SECRET)
    return status === 200 && body.data
  })
  encodeInLoop(t, [node], String(started['srt_url']))
  const viewer = watchStream(t, () => Number(new URL(url).port), 'studio')
  const latest = () => viewer.last.segments.at(-1)?.sequence ?? 0
  const listed = () => viewer.last.segments.flatMap(({ uri, gap }) => (gap ? [] : (uri ?? [])))
  const load = async (uri: string) => {
    const reply = await fetch(`${url}/video/studio/${uri.replace(/.*\//, '')}`)
    return reply.status === 200 ? Buffer.from(await reply.arrayBuffer()) : undefined
  }
  await until('a playlist', () => listed().length > 4)

  for (const [signal, isInTime] of [
    ['SIGTERM', true],
    ['SIGKILL', true],
    ['SIGKILL', false],
  ] as const) {
    const [uri] = listed().slice(-3)
    const bytes = await load(uri!)
    const before = { latest: latest(), discontinuity: viewer.last.discontinuitySequence }
    const seen = hooks.received.length
    const id = node.id()
    node.program.kill(signal)
    await node.program.exit
    if (signal === 'SIGKILL' && isInTime) {
      // As if the next process, which this machine may load for longer than the lease, were there at once.
      t.match(await ask(redis.port, `PEXPIRE mr:node:${id} 60000`), ':1')
    }
    await node.restart()
    await until('the stream goes on', () => latest() > before.latest + 4)
    await until('the receivers are told', () =>
      hooks.received.slice(seen).some(({ event }) => event.type === 'stream.live'),
    )
    const status = await callApi(url, 'status', { stream_id: 'studio' }, secrets.HMAC_SECRET)
    t.match(status.body.data, { status: 'STREAMING', live: true })
    const isKnown = latest() < before.latest + UNSEEN
    t.comment(`${signal}: ${latest() - before.latest} numbers on`)
    if (isInTime) t.ok(isKnown, `${signal}: the numbers go on where they were`)
    if (isKnown) t.ok(bytes?.equals((await load(uri!))!), `${signal}: the same media`)
    t.strictSame(isKnown ? viewer.complaints : complaintsButOfWindow(viewer), [])
    if (!isKnown) return
  }
  t.notMatch(viewer.texts.join(''), '#EXT-X-ENDLIST')
  t.ok(viewer.texts.join('').match(/#EXT-X-DISCONTINUITY\n/))
})
