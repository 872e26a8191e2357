/**
 * Requests of the API that were recorded and are sent again.
 */
import t from 'tap'
import { startService } from '../support/service.ts'
import { replayRequests } from './attacks/replay.ts'

t.test('refuses requests too far in the past or future with API_MAX_AGE_SEC', async (t) => {
  const { server, tryApi, hmacSecret, jwtSecret } = await startService(t, { apiMaxAgeSec: 30 })
  const { httpPort, srtPort } = server
  const target = { host: '127.0.0.1', httpPort, srtPort, hmacSecret, jwtSecret }
  t.strictSame(await replayRequests(target, AbortSignal.timeout(60_000)), {
    '0': '200',
    '5': '200',
    '60': '403 REQUEST_EXPIRED',
    '3600': '403 REQUEST_EXPIRED',
    '86400': '403 REQUEST_EXPIRED',
    '-5': '200',
    '-60': '403 REQUEST_EXPIRED',
    '-3600': '403 REQUEST_EXPIRED',
    '-86400': '403 REQUEST_EXPIRED',
  })
  for (const name of ['start-stream', 'stop-stream', 'status'] as const) {
    t.match(await tryApi(name, { stream_id: 'replayed', issued_at: undefined }), {
      status: 400,
      body: { code: 'BODY_INVALID', error: /^issued_at is missing: API_MAX_AGE_SEC requires/ },
    })
    const old = { stream_id: 'replayed', issued_at: Math.floor(Date.now() / 1000) - 75 }
    t.match(await tryApi(name, old), {
      status: 403,
      body: { error: /^issued_at is 7[56] s in the past: expected at most 30 s/ },
    })
  }
})

t.test(
  'accepts any age without API_MAX_AGE_SEC, but rejects an issued_at that is not a time',
  async (t) => {
    const { tryApi } = await startService(t)
    const start = (body: object) => tryApi('start-stream', { stream_id: 'studio', ...body })
    for (const body of [{ issued_at: undefined }, { issued_at: 0 }, { issued_at: 4e9 }]) {
      t.equal((await start(body)).status, 200)
    }
    for (const issuedAt of ['now', -1, null]) {
      t.match(await start({ issued_at: issuedAt }), {
        status: 400,
        body: { code: 'BODY_INVALID', error: 'issued_at must be a number of seconds since 1970' },
      })
    }
  },
)
