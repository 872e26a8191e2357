/**
 * A machine that slept for 15 minutes: its wall clock is right again at once, its monotonic clock stood still.
 */
import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { startService } from '../support/service.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const SLEEP_MS = 15 * 60_000

t.test('webhooks and signed requests use the wall clock after a jump', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const { api, hmacSecret } = await startService(t, { apiMaxAgeSec: 30 })
  const { now } = Date
  Date.now = () => now() + SLEEP_MS
  t.teardown(() => void (Date.now = now))

  const issuedSec = Math.floor(Date.now() / 1000)
  const body = { stream_id: 'studio', issued_at: issuedSec, webhook_urls: [receiver.url] }
  const reply = await api('start-stream', body)
  t.match(reply, { status: 200 }, 'a request of now is no older than 30 s')
  const { bytes, headers, event } = await receiver.next()
  const webhook = new Webhook(hmacSecret, { format: 'raw' })
  t.strictSame(webhook.verify(bytes, headers as Record<string, string>), event)
  t.ok(Date.parse(event.created_at) >= issuedSec * 1000)

  const lifetimeMs = Date.parse(reply.body.data['expires_at']) - now()
  t.ok(lifetimeMs <= 2 * 3_600_000, 'keys keep the time before')
})
