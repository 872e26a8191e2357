/**
 * The end of the service, which waits for no client.
 */
import t from 'tap'
import { publishDemo } from '../support/demo-encoder.ts'
import { callApi } from '../support/service.ts'
import { until } from '../support/until.ts'
import { HELD_KINDS, holdConnections } from './attacks/held-connections.ts'
import { startServiceProcess } from './service-process.ts'

t.test('SIGTERM writes ENDLIST and exits 0 with every kind of client', async (t) => {
  const { program, target, url } = await startServiceProcess(t, { env: { HLS_SEGMENT_SEC: '1' } })
  const { body } = await callApi(url, 'start-stream', { stream_id: 'studio' }, target.hmacSecret)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  publishDemo(t, String(body.data['srt_url']), { mayFail: true })
  const playlistUrl = `${url}/video/studio/playlist.m3u8`
  await until('the playlist', async () => (await fetch(playlistUrl)).ok)
  const kinds = Object.keys(HELD_KINDS).length
  const attack = holdConnections(target, stop.signal, { each: 5, everyMs: 500 })
  // Connections opened before this response are accepted.
  await until('the playlist', async () => (await fetch(playlistUrl)).ok)

  program.kill('SIGTERM')
  await until('ENDLIST', async () =>
    (await (await fetch(playlistUrl)).text()).includes('#EXT-X-ENDLIST'),
  )
  t.equal(await program.exit, 0)
  const { connected, closedByService } = await attack
  t.equal(connected, 5 * kinds)
  t.equal(closedByService, 5 * (kinds - 1), 'one kind never reads that it was closed')
  stop.abort()
})
