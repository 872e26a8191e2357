/**
 * Main and backup encoder, and a slate, over SRT and the API.
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

const CLIP = new URL('../../fixtures/demo.mpegts', import.meta.url)

t.test('a backup encoder takes over, and the API puts either on air', async (t) => {
  const { server, api, tryApi } = await startService(t)
  const hooks = await startWebhookReceiver(t)
  const { body } = await api('start-stream', {
    ...{ stream_id: 'studio', backup: true, encryption: true },
    webhook_urls: [hooks.url],
  })
  const { data } = body
  t.match(
    data['backup_srt_url'],
    /^srt:\/\/.*\?streamid=mode=publish,rid=studio,token=.*passphrase=/,
  )
  t.match(data['backup_short_stream_key'], /^studio-[\w-]{27}$/)
  t.not(data['backup_short_stream_key'], data['short_stream_key'])
  const onAir = (source: string | null) =>
    until(`${source} on air`, async () => {
      const record = (await api('status', { stream_id: 'studio' })).body.data
      return record['on_air'] === source && record
    })
  t.equal((await api('status', { stream_id: 'studio' })).body.data['on_air'], null)

  const main = publishDemo(t, data['srt_url'] as string)
  await until('live', () => server.status('studio').live)
  t.equal(server.status('studio').onAir, 'main')
  const switched = (source: string) => tryApi('switch-source', { stream_id: 'studio', source })
  t.match(await switched('backup'), { status: 409, body: { code: 'SOURCE_UNAVAILABLE' } })
  t.match(await switched('slate'), {
    status: 400,
    body: { error: 'source must be main or backup' },
  })
  t.match(await tryApi('switch-source', { stream_id: 'none', source: 'main' }), { status: 404 })

  const { srtPort: port } = server
  const short = `srt://127.0.0.1:${port}?streamid=${data['backup_short_stream_key']}&passphrase=${data['passphrase']}`
  const backup = publishDemo(t, short)
  await until('the backup is ready', async () => {
    const { sources } = (await api('status', { stream_id: 'studio' })).body.data as {
      sources: { source: string; ready: boolean; connection: { remote: string } }[]
    }
    return sources.some(({ source, ready }) => source === 'backup' && ready)
  })
  await t.rejects(
    connect({
      ...{ host: '127.0.0.1', port, streamId: data['backup_stream_key'] as string },
      passphrase: data['passphrase'] as string,
    }),
    /2409/,
    'another backup',
  )

  main.stop()
  const record = await onAir('backup')
  t.match(record, { status: 'STREAMING', live: true, sources: [{ source: 'backup' }] })
  t.match(record['totals'], { publishers: 2, source_changes: 1 })
  const event = await until('the webhook', () => findEvent(hooks, 'stream.source_changed'))
  t.match(event.data, { from: 'main', to: 'backup', reason: 'lost' })

  publishDemo(t, data['srt_url'] as string)
  await until('main is ready', async () => (await switched('main')).status === 200)
  await onAir('main')
  t.equal((await switched('backup')).status, 200)
  await onAir('backup')
  backup.stop()
  await onAir('main')
})

t.test('a slate is on air before the first encoder, and after the last', async (t) => {
  const slateDir = mkdtempSync(join(tmpdir(), 'millrace-slates-'))
  t.teardown(() => rmSync(slateDir, { recursive: true }))
  copyFileSync(CLIP, join(slateDir, 'away.ts'))
  const { server, api, tryApi, url } = await startService(t, { slateDir, slateAfterSec: 0 })
  const start = (more: object) => tryApi('start-stream', { stream_id: 'studio', ...more })
  for (const [fields, error] of [
    [{ slate: 'other.ts' }, /slate/],
    [{ slate: '../away.ts' }, /slate/],
    [{ always_on: true }, /always_on must be false or absent: there is no slate/],
  ] as const)
    t.match(await start(fields), { status: 400, body: { error } })
  const { body } = await api('start-stream', {
    ...{ stream_id: 'studio', slate: 'away.ts', always_on: true },
  })
  const playlist = `${url}/video/studio/playlist.m3u8`
  await until('a playlist', async () => (await fetch(playlist)).status === 200)
  t.match(server.status('studio'), { status: 'READY', live: false, onAir: 'slate', sources: [] })
  const encoder = publishDemo(t, body.data['srt_url'] as string)
  await until('live', () => server.status('studio').live)
  t.equal(server.status('studio').onAir, 'main')
  encoder.stop()
  await until('the slate', () => server.status('studio').onAir === 'slate')
  t.match(server.status('studio'), { status: 'INTERRUPTED', live: false })
  t.match(await (await fetch(playlist)).text(), /#EXT-X-DISCONTINUITY\n/)
})

/** Publishes the clip in a loop until the test ends or the controller aborts. */
