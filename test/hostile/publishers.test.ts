/**
 * Misbehaving encoders with valid keys, which cost no other publisher anything.
 */
import t from 'tap'
import { connect } from '../../src/srt/index.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'
import { holdStreamWithoutMedia } from './attacks/silent-publisher.ts'

async function caller({ server }: TestService, streamId: string) {
  const { streamKey } = await server.startStream({ streamId })
  return () => connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey })
}

t.test('a publisher that only sends stuffing is replaced by one with a valid key', async (t) => {
  const service = await startService(t)
  const hooks = await startWebhookReceiver(t)
  await service.server.startStream({ streamId: 'silent', webhookUrls: [hooks.url] })
  const { server, hmacSecret, jwtSecret } = service
  const target = {
    host: '127.0.0.1',
    httpPort: server.httpPort,
    srtPort: server.srtPort,
    hmacSecret,
    jwtSecret,
  }
  const report = await holdStreamWithoutMedia(target, AbortSignal.timeout(60_000))
  t.match(report, { replaced: true })
  const event = await until('the webhook', () => findEvent(hooks, 'stream.interrupted'))
  t.match(event.data, { reason: 'no-media' })
})

t.test('refuses a publisher beyond MAX_PUBLISHERS until another one leaves', async (t) => {
  const service = await startService(t, { maxPublishers: 2 })
  const [first, second, third] = await Promise.all(
    ['first', 'second', 'third'].map((id) => caller(service, id)),
  )
  const publisher = await first!()
  const other = await second!()
  t.teardown(() => other.close())
  await t.rejects(third!(), { code: 'SRT_REJECTED', message: /1003/ })
  await publisher.close()
  const status = () => service.server.status('first').status
  await until('the first is gone', () => status() === 'INTERRUPTED')
  const late = await third!()
  t.teardown(() => late.close())
})

t.test('refuses a key that connects too often, and no other', async (t) => {
  const service = await startService(t)
  const call = await caller(service, 'flapping')
  const other = await caller(service, 'other')
  const status = () => service.server.status('flapping').status
  let connections = 0
  let refusal: { message?: string } | undefined
  while (refusal === undefined && connections < 100) {
    try {
      const publisher = await call()
      connections++
      await publisher.close()
      await until('it is gone', () => status() === 'INTERRUPTED', { everyMs: 1 })
    } catch (error) {
      refusal = error as Error
    }
  }
  t.match(refusal, { message: /2402/ })
  t.ok(connections >= 30, `${connections} connections`)
  const publisher = await other()
  t.teardown(() => publisher.close())
})
