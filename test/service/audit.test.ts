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

  const webhook = 'http://127.0.0.1:9/hook?key=confidential'
  const terms = {
    encryption: true,
    allow_from: ['127.0.0.0/8'],
    latency_ms: 200,
    formats: ['ts', 'cmaf'],
    segment_sec: 1,
    part_ms: 300,
    playlist_segments: 4,
    playback_token: false,
  }
  const start = { stream_id: 'studio', ...terms, webhook_urls: [webhook] }
  const { body } = await api('start-stream', start, newest)
  await api('kick', { stream_id: 'studio', ban_sec: 5 }, old)
  await tryApi(url, 'stop-stream', { stream_id: 'other', revoke: true }, newest)
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
  ])
  const { passphrase, stream_key: key } = body.data
  for (const secret of [newest, old, passphrase, key, 'confidential']) {
    t.notOk(lines.join('').includes(String(secret)))
  }

  await Promise.all(Array.from({ length: 30 }, () => api('kick', { stream_id: 'studio' }, newest)))
  t.equal(audited().length, 33, 'the limit on other log lines does not apply')
})
