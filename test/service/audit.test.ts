/**
 * Audit log over real HTTP: a line for each API call that changes something.
 */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import t from 'tap'
import { keyId } from '../../src/auth/signature.ts'
import type { EndpointName } from '../../src/client/index.ts'
import { callApi, startService, tryApi } from '../support/service.ts'

t.test('each call that changes something has a line, without secrets', async (t) => {
  const lines: string[] = []
  const logger = pino(
    { base: null, timestamp: false },
    { write: (line: string) => void lines.push(line) },
  )
  const [newest, old] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  const { url } = await startService(t, { logger, hmacSecret: `${newest},${old}` })
  const api = (name: EndpointName, body: object, secret: string) => callApi(url, name, body, secret)
  const audited = () =>
    lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => 'audit' in line)

  const urls = {
    webhook_urls: ['http://127.0.0.1:9/hook?key=confidential'],
    push_urls: ['srt://127.0.0.1:9?passphrase=confidential'],
  }
  const terms = {
    encryption: true,
    allow_from: ['127.0.0.0/8'],
    latency_ms: 200,
    formats: ['ts', 'cmaf'],
    segment_sec: 1,
    part_ms: 300,
    playlist_segments: 4,
    playback_token: false,
    key_lifetime_sec: 600,
    backup: true,
    play: true,
  }
  const start = { stream_id: 'studio', ...terms, ...urls }
  const { body } = await api('start-stream', start, newest)
  await api('kick', { stream_id: 'studio', ban_sec: 5 }, old)
  await tryApi(url, 'stop-stream', { stream_id: 'other', revoke: true }, newest)
  await tryApi(url, 'switch-source', { stream_id: 'studio', source: 'backup' }, newest)
  const clip = {
    stream_id: 'studio',
    from: '2026-01-31T12:00:00Z',
    to: '2026-01-31T12:01:00Z',
    run: '20260131T115500Z-node',
  }
  await tryApi(url, 'clip', clip, newest)
  await api('status', { stream_id: 'studio' }, newest)
  await api('streams', {}, newest)
  await tryApi(url, 'stop-stream', { stream_id: 'studio' }, 'wrong')
  await tryApi(url, 'stop-stream', { stream_id: '.' }, newest)
  const line = { level: 30, client: '127.0.0.1', msg: 'API call' }
  const [byNewest, byOld] = [newest, old].map((secret) => ({ ...line, key: keyId(secret) }))
  t.strictSame(audited(), [
    { ...byNewest, audit: 'start-stream', stream_id: 'studio', ...terms, result: 'ok' },
    { ...byOld, audit: 'kick', stream_id: 'studio', ban_sec: 5, result: 'ok' },
    {
      ...byNewest,
      audit: 'stop-stream',
      stream_id: 'other',
      revoke: true,
      result: 'STREAM_NOT_FOUND',
    },
    {
      ...byNewest,
      audit: 'switch-source',
      stream_id: 'studio',
      source: 'backup',
      result: 'SOURCE_UNAVAILABLE',
    },
    { ...byNewest, audit: 'clip', ...clip, result: 'ARCHIVE_NOT_FOUND' },
  ])
  const { passphrase, stream_key: key } = body.data
  for (const secret of [newest, old, passphrase, key, 'confidential']) {
    t.notOk(lines.join('').includes(String(secret)))
  }

  await Promise.all(Array.from({ length: 30 }, () => api('kick', { stream_id: 'studio' }, newest)))
  t.equal(audited().length, 35, 'the limit on other log lines does not apply')
})
