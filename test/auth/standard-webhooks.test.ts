import * as fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import {
  formatWebhookSecret,
  parseWebhookSecret,
  signWebhook,
  webhookKeys,
} from '../../src/auth/standard-webhooks.ts'

const key = fc.uint8Array({ minLength: 24, maxLength: 64 }).map((bytes) => Buffer.from(bytes))

/** Current time: receivers refuse timestamps older than five minutes. */
const timestampSec = Math.floor(Date.now() / 1000)

function headersOf(id: string, signature: string) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSec),
    'webhook-signature': signature,
  }
}

t.test(
  'signs webhooks that the library of receivers verifies with the printed secret',
  async () => {
    fc.assert(
      fc.property(key, fc.uuid(), fc.jsonValue(), (key, id, value) => {
        const body = Buffer.from(JSON.stringify({ value }))
        const headers = headersOf(id, signWebhook({ id, timestampSec, body }, [key]))
        new Webhook(formatWebhookSecret(key)).verify(body, headers)
      }),
    )
  },
)

t.test('signs the example of the specification with its signature', async (t) => {
  const [key] = parseWebhookSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')!
  const body = Buffer.from('{"test": 2432232314}')
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampSec: 1614265330, body }
  t.equal(signWebhook(message, [key]), 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

t.test('signs with both keys during a rotation, so that either verifies', async (t) => {
  const keys = [Buffer.alloc(32, 'n'), Buffer.alloc(32, 'o')]
  const body = Buffer.from('{}')
  const headers = headersOf('x', signWebhook({ id: 'x', timestampSec, body }, keys))
  for (const key of keys) new Webhook(formatWebhookSecret(key)).verify(body, headers)
  const other = new Webhook(formatWebhookSecret(Buffer.alloc(32, 'z')))
  t.throws(() => other.verify(body, headers))
  t.throws(() => new Webhook(formatWebhookSecret(keys[0]!)).verify('[]', headers))
})

t.test('decodes a secret to the key that the library of receivers decodes', async (t) => {
  fc.assert(
    fc.property(key, fc.boolean(), (key, hasPrefix) => {
      const text = hasPrefix ? formatWebhookSecret(key) : key.toString('base64')
      const [parsed] = parseWebhookSecret(text)!
      const body = Buffer.from('{}')
      const signature = signWebhook({ id: 'x', timestampSec, body }, [parsed])
      new Webhook(text).verify(body, headersOf('x', signature))
    }),
  )
  const hexadecimal = 'ab'.repeat(32)
  t.strictSame(parseWebhookSecret(hexadecimal), [Buffer.from(hexadecimal, 'base64')])
})

t.test(
  'parses two secrets as new and old, and rejects all but base64 of 24 to 64 bytes',
  async (t) => {
    const [a, b] = [Buffer.alloc(24, 1), Buffer.alloc(64, 2)]
    const text = a.toString('base64')
    t.strictSame(parseWebhookSecret(`${text}, ${formatWebhookSecret(b)}`), [a, b])
    const none = [
      '',
      'whsec_',
      'hush',
      `${text},`,
      `${text},${text},${text}`,
      `${text}=`,
      `${text} x`,
    ]
    const sizes = [23, 65].map((size) => Buffer.alloc(size, 1).toString('base64'))
    const urlSafe = Buffer.alloc(24, 0xff).toString('base64url')
    for (const text of [...none, ...sizes, urlSafe])
      t.equal(parseWebhookSecret(text), undefined, text)
  },
)

t.test('uses the bytes of HMAC_SECRET, new and old, without WEBHOOK_SECRET', async (t) => {
  t.strictSame(webhookKeys('', ['new', 'öld']), [Buffer.from('new'), Buffer.from('öld')])
  const own = Buffer.alloc(32, 3)
  t.strictSame(webhookKeys(formatWebhookSecret(own), ['new', 'old']), [own])
})
