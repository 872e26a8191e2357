import t from 'tap'
import { KeyList, keyIdOf, MAX_LISTED_KEYS, parseKeyId } from '../../src/auth/key-list.ts'
import { issueStreamKey, verifyStreamKey } from '../../src/auth/stream-key.ts'

const NOW_SEC = Date.UTC(2026, 10, 22, 12) / 1000
const NOW_MS = NOW_SEC * 1000
const VALID = () => false

t.test(
  'both forms of a key have the same id, which tells of times and encoder alone',
  async (t) => {
    const secret = 'a'.repeat(32)
    const now = new Date(NOW_MS)
    for (const isBackup of [false, true]) {
      const options = { streamId: 'studio', secret, now, lifetimeSec: 600, isBackup }
      const key = await issueStreamKey({ ...options, encryptedSinceSec: NOW_SEC - 5 })
      const ids = await Promise.all(
        [key.streamKey, key.shortStreamKey].map(async (text) =>
          keyIdOf(await verifyStreamKey(text, { secrets: [secret], now })),
        ),
      )
      const id = `${NOW_SEC}-600-${isBackup ? 'backup' : 'main'}`
      t.strictSame(ids, [id, id])
      t.equal(keyIdOf(parseKeyId(id)!), id)
    }
  },
)

t.test('has an id for whatever times an issuer writes', async (t) => {
  for (const [facts, id] of [
    [{ expiresAtSec: 2e9 }, '0-2000000000-main'],
    [{ issuedAtSec: 1.9, expiresAtSec: 3.2 }, '1-2-main'],
    [{ issuedAtSec: -5, expiresAtSec: Infinity }, '0-999999999999-main'],
    [{ issuedAtSec: 9, expiresAtSec: 1 }, '9-0-main'],
  ] as const) {
    t.equal(keyIdOf(facts), id)
    t.equal(keyIdOf(parseKeyId(id)!), id)
  }
  for (const id of [
    '',
    '1-2',
    '1-2-other',
    '-1-2-main',
    `${'1'.repeat(13)}-2-main`,
    '1-2-main ',
    '01-2-main',
    '1-02-main',
  ])
    t.equal(parseKeyId(id), undefined, id)
})

t.test('lists keys that hold, with their latest use, the newest first', async (t) => {
  let revoked: string | undefined
  const list = new KeyList(({ source }) => source !== undefined && source === revoked)
  list.add(`${NOW_SEC}-7200-main`, NOW_MS)
  list.add(`${NOW_SEC + 60}-7200-backup`, NOW_MS)
  list.add('0-2000000000-main', NOW_MS, NOW_MS + 1)
  list.add(`${NOW_SEC + 60}-60-main`, NOW_MS)
  list.add(`${NOW_SEC}-7200-main`, NOW_MS, NOW_MS + 9)
  list.add(`${NOW_SEC}-7200-main`, NOW_MS)
  const backup = {
    keyId: `${NOW_SEC + 60}-7200-backup`,
    source: 'backup',
    issuedAt: new Date(NOW_MS + 60_000),
    expiresAt: new Date(NOW_MS + 7_260_000),
  }
  const main = {
    keyId: `${NOW_SEC}-7200-main`,
    source: 'main',
    issuedAt: new Date(NOW_MS),
    expiresAt: new Date(NOW_MS + 7_200_000),
    lastUsedAt: new Date(NOW_MS + 9),
  }
  const undated = {
    keyId: '0-2000000000-main',
    source: 'main',
    expiresAt: new Date(2e12),
    lastUsedAt: new Date(NOW_MS + 1),
  }
  t.equal(list.list(NOW_MS).length, 4)
  t.strictSame(list.list(NOW_MS + 120_000), [backup, main, undated], 'without the expired')
  revoked = 'backup'
  t.strictSame(list.list(NOW_MS + 120_000), [main, undated], 'without the revoked')
  t.strictSame(list.uses(NOW_MS + 120_000), {
    [main.keyId]: NOW_MS + 9,
    [undated.keyId]: NOW_MS + 1,
  })
  t.strictSame(new KeyList(VALID).uses(NOW_MS), {})
})

t.test('keeps the keys that were issued or used last', async (t) => {
  const list = new KeyList(VALID)
  list.add(`${NOW_SEC - 60}-7200-main`, NOW_MS, NOW_MS + 1_000_000)
  for (let i = 0; i < 1000; i++) list.add(`${NOW_SEC + i}-7200-main`, NOW_MS)
  const keys = list.list(NOW_MS)
  t.equal(keys.length, MAX_LISTED_KEYS)
  t.equal(keys[0]?.keyId, `${NOW_SEC + 999}-7200-main`)
  t.equal(keys.at(-1)?.keyId, `${NOW_SEC - 60}-7200-main`)
})

t.test('keys that have expired or are revoked displace none that holds', async (t) => {
  for (const isExpired of [false, true]) {
    const list = new KeyList(({ source }) => !isExpired && source !== 'backup')
    const kept = `${NOW_SEC}-31536000-backup`
    list.add(kept, NOW_MS)
    for (let i = 1; i <= MAX_LISTED_KEYS; i++)
      list.add(`${NOW_SEC + i}-60-main`, NOW_MS + (isExpired ? 1_000_000 : 0))
    const ids = list.list(NOW_MS + 1000).map(({ keyId }) => keyId)
    t.strictSame(ids, [kept], isExpired ? 'expired' : 'revoked')
  }
})
