import t from 'tap'
import { KeyExpiry, type ExpiringKey } from '../../src/stream/key-expiry.ts'
import type { Encoder } from '../../src/stream/publication.ts'

const EXPIRES_MS = Date.UTC(2026, 10, 22, 12)

t.test('warns of a key from ten minutes before it expires, and announces it once', async (t) => {
  const announced: ExpiringKey[] = []
  const expiry = new KeyExpiry((key) => void announced.push(key))
  const observe = (encoder: Partial<Encoder>, leftSec: number) =>
    expiry.observe(encoder as Encoder, EXPIRES_MS - leftSec * 1000)
  const main = { keyExpiresAtMs: EXPIRES_MS }
  const backup = { ...main, source: 'backup' } as const
  t.strictSame(observe({}, 0), [], 'an encoder without a key')
  t.strictSame(observe(main, 600.001), [])
  for (const leftSec of [600, 300, -1])
    for (const encoder of [main, backup])
      t.strictSame(observe(encoder, leftSec), [{ code: 'KEY_EXPIRING', leftSec }])
  const expiresAt = new Date(EXPIRES_MS)
  t.strictSame(announced.splice(0), [
    { source: 'main', expiresAt },
    { source: 'backup', expiresAt },
  ])
  const renewed = { keyExpiresAtMs: EXPIRES_MS + 1_000_000 }
  t.strictSame(observe(renewed, 0), [], 'a later key')
  observe(renewed, -500)
  t.strictSame(announced, [{ source: 'main', expiresAt: new Date(renewed.keyExpiresAtMs) }])
})
