/**
 * SIGTERM at a node of a cluster that has several encoders.
 */
import { setMaxListeners } from 'node:events'
import t from 'tap'
import { publish } from '../../../src/publisher/publisher.ts'
import { createSecrets, startNodes } from '../support/node-processes.ts'
import { startRedis } from '../support/redis.ts'
import { callApi } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const ENCODERS = 6

t.test('a node that is closed leaves all its streams to the other', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url } = await startRedis(t)
  const env = { ...createSecrets(), REDIS_URL: url }
  const [node, other] = await startNodes(t, 'serve', env, 2)
  await until('both have joined', () => [node, other].every((each) => each!.id() !== ''))
  const call = (at: typeof node, name: 'start-stream' | 'streams', body: object) =>
    callApi(at!.url, name, body, env.HMAC_SECRET)
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  for (let index = 0; index < ENCODERS; index++) {
    const { body } = await call(node, 'start-stream', { stream_id: `studio-${index}` })
    const done = publish({
      ...{ file: 'fixtures/demo.mpegts', url: String(body.data['srt_url']), loop: true },
      signal: stop.signal,
    }).catch(() => undefined)
    t.teardown(() => (stop.abort(), done))
  }
  const listed = async () => {
    const { body } = await call(other, 'streams', {})
    return body.data['streams'] as { status: string; node: string }[]
  }
  await until('all publish', async () => {
    const streams = await listed()
    return streams.filter(({ status }) => status === 'STREAMING').length === ENCODERS
  })
  node!.program.kill('SIGTERM')
  t.equal(await node!.program.exit, 0)
  await until('all are adopted', async () => {
    const streams = await listed()
    const adopted = streams.filter(({ status, node: owner }) => {
      return status === 'INTERRUPTED' && owner === other!.id()
    })
    return adopted.length === ENCODERS
  })
  const log = node!.program.output()
  t.equal(log.match(/"reason":"draining"/g)?.length, ENCODERS, 'each is sent away by the drain')
})
