/**
 * SIGTERM at a node of a cluster that has several encoders.
 */
import t from 'tap'
import { publishDemo } from '../../support/demo-encoder.ts'
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
  for (let index = 0; index < ENCODERS; index++) {
    const { body } = await call(node, 'start-stream', { stream_id: `studio-${index}` })
    publishDemo(t, String(body.data['srt_url']), { mayFail: true })
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
