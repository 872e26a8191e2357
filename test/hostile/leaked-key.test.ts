/**
 * Revocation of leaked stream keys, which only an explicit request causes.
 */
import t from 'tap'
import { connect } from '../../src/srt/index.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'
import { publishWithLeakedKeys } from './attacks/leaked-key.ts'

t.test('refuses a revoked key, and accepts one issued in the same second', async (t) => {
  const { server, hmacSecret, jwtSecret } = await startService(t)
  const { httpPort, srtPort } = server
  const target = { host: '127.0.0.1', httpPort, srtPort, hmacSecret, jwtSecret }
  const figures = await publishWithLeakedKeys(target, AbortSignal.timeout(60_000))
  t.strictSame(figures, { rounds: 5, leakedLetIn: 0, newLetIn: 5 })
})

t.test(
  'a revocation disconnects the encoder, refuses its key with 1010, and survives stop and start',
  async (t) => {
    const { server, api } = await startService(t)
    const hooks = await startWebhookReceiver(t)
    const body = { stream_id: 'studio', webhook_urls: [hooks.url] }
    const { stream_key: leaked } = (await api('start-stream', body)).body.data
    const call = (streamId: string) =>
      connect({ host: '127.0.0.1', port: server.srtPort, streamId })
    const thief = await call(leaked)
    await until('the thief publishes', () => server.status('studio').status === 'STREAMING')

    const revoked = await api('stop-stream', { stream_id: 'studio', revoke: true })
    t.match(revoked, { status: 200, body: { data: { status: 'STOPPED' } } })
    await thief.closed.catch(() => undefined)
    for (let i = 0; i < 2; i++) {
      const { stream_key: key } = (await api('start-stream', body)).body.data
      await t.rejects(call(leaked), { code: 'SRT_REJECTED', message: /1010/ })
      await (await call(key)).close()
      await api('stop-stream', { stream_id: 'studio' })
    }
    const event = await until('stream.rejected', () => findEvent(hooks, 'stream.rejected'))
    t.match(event, { stream_id: 'studio', data: { reason: 'Token revoked' } })
  },
)

t.test('revokes keys of an unknown stream', async (t) => {
  const { server, tryApi } = await startService(t, { hls: { lingerSec: 0 } })
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  await server.stopStream('studio')
  await until('it is forgotten', () => server.findStream('studio') === undefined)
  t.match(await tryApi('stop-stream', { stream_id: 'studio', revoke: true }), {
    status: 404,
    body: { code: 'STREAM_NOT_FOUND', error: /issued for it so far are revoked/ },
  })
  await server.startStream({ streamId: 'studio' })
  const caller = connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey })
  await t.rejects(caller, { message: /1010/ })
})

t.test('an older key publishes a restarted stream unless it was revoked', async (t) => {
  const { server, api } = await startService(t)
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  await api('stop-stream', { stream_id: 'studio' })
  await server.startStream({ streamId: 'studio' })
  const port = server.srtPort
  await (await connect({ host: '127.0.0.1', port, streamId: streamKey })).close()
  t.equal(server.status('studio').totals.publishers, 1)
})

t.test(
  'callers with a leaked key but no passphrase do not keep out encoders with both',
  async (t) => {
    const { server } = await startService(t)
    const { streamKey, passphrase } = await server.startStream({
      streamId: 'studio',
      encryption: true,
    })
    const options = { host: '127.0.0.1', port: server.srtPort, streamId: streamKey }
    for (let i = 0; i < 35; i++) await t.rejects(connect(options), { message: /1011/ })
    await (await connect({ ...options, passphrase: passphrase! })).close()
    t.equal(server.status('studio').totals.publishers, 1)
  },
)
