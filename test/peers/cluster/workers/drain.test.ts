/**
 * SIGUSR2 at a node of a cluster with HTTP_WORKERS, as real processes.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { startRedis } from '../../support/redis.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'
import { publishStream, serveWithWorkers } from '../../../cluster/workers/workers-service.ts'

t.test('SIGUSR2 drains the ingest process, and its workers go on', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url } = await startRedis(t)
  const service = await serveWithWorkers(t, {
    REDIS_URL: url,
    CLUSTER_SECRET: randomBytes(32).toString('hex'),
  })
  await until('the registry answers', async () => {
    return (await service.tryApi('nodes', {})).status === 200
  })
  const encoder = await publishStream(t, service, 'studio')
  const readiness = () => fetch(`${service.url}/health/ready`)
  t.equal((await readiness()).status, 200)
  service.program.kill('SIGUSR2')
  await until('the encoder is refused', () => /1007/.test(encoder.events.join()))
  const ready = await readiness()
  t.equal(ready.status, 503)
  t.match(await ready.json(), { reasons: ['draining'] })
  t.match((await service.api('status', { stream_id: 'studio' })).body.data, {
    status: 'INTERRUPTED',
    live: false,
  })
  t.match(await service.readPlaylist('studio'), '#EXTINF', 'viewers are served')
  const refused = await service.tryApi('start-stream', { stream_id: 'other' })
  t.match(refused, { status: 503, body: { code: 'SHUTTING_DOWN' } })
  t.equal(service.pids('worker-process').length, 2)
})
