/**
 * The number of streams is bounded, and streams that wait for an encoder cost almost nothing.
 */
import t from 'tap'
import { startService } from '../support/service.ts'
import { startManyStreams } from './attacks/many-streams.ts'

t.test('refuses starts beyond MAX_STREAMS, and running streams go on', async (t) => {
  const { server, api, tryApi, hmacSecret, jwtSecret } = await startService(t, { maxStreams: 50 })
  await api('start-stream', { stream_id: 'studio' })
  const target = {
    host: '127.0.0.1',
    httpPort: server.httpPort,
    srtPort: server.srtPort,
    hmacSecret,
    jwtSecret,
  }
  const figures = await startManyStreams(target, AbortSignal.timeout(60_000))
  t.equal(figures.started, 49)
  t.ok(figures.refused >= 100)
  t.match(await tryApi('start-stream', { stream_id: 'one-more' }), {
    status: 503,
    body: { success: false, code: 'TOO_MANY_STREAMS', error: /MAX_STREAMS/ },
  })
  const again = await api('start-stream', { stream_id: 'studio' })
  t.equal(again.status, 200, 'one that runs gets another key')
  t.match(await api('status', { stream_id: 'studio' }), { status: 200 })

  await api('stop-stream', { stream_id: 's0' })
  const instead = await api('start-stream', { stream_id: 'one-more' })
  t.equal(instead.status, 200, 'a lingering stream blocks no other')
})
