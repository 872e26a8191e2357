import * as fc from 'fast-check'
import t from 'tap'
import { createShortKey, verifyShortToken } from '../../src/auth/short-key.ts'
import { issueStreamKey, parseStreamKey, verifyStreamKey } from '../../src/auth/stream-key.ts'
import type { MillraceError } from '../../src/errors.ts'

const SECRET = '0123456789abcdef0123456789abcdef'
const NOW = new Date('2026-03-01T12:00:00.700Z')
const NOW_SEC = 1772366400

const issue = (options: Partial<Parameters<typeof issueStreamKey>[0]> = {}) =>
  issueStreamKey({ streamId: 'demo', secret: SECRET, now: NOW, ...options })

function verify(text: string, now = NOW, secrets = [SECRET]) {
  return verifyStreamKey(text, { secrets, now }).catch((error: unknown) => {
    const { code, rejectCode } = error as MillraceError
    return { code, rejectCode }
  })
}

t.test(
  'a short key has the stream id and 22 characters, and is valid for its lifetime',
  async (t) => {
    const { shortStreamKey, expiresAt } = await issue({ lifetimeSec: 60 })
    // Python 3: base64url(struct.pack('>II', 60 << 7, 1772366400) + HMAC-SHA256(HKDF(secret), fields + b'demo')[:8])
    t.equal(shortStreamKey, 'demo-AAAeAGmkKkAGv5XvswFs2g')
    const claims = { streamId: 'demo', issuedAtSec: NOW_SEC, expiresAtSec: NOW_SEC + 60 }
    t.strictSame(await verify(shortStreamKey), claims)
    t.strictSame(await verify(shortStreamKey, new Date(expiresAt.getTime() - 1)), claims)
    t.match(await verify(shortStreamKey, expiresAt), {
      code: 'STREAM_KEY_EXPIRED',
      rejectCode: 1010,
    })
  },
)

t.test('a short key for a year is valid for a year', async (t) => {
  const { shortStreamKey } = await issue({ lifetimeSec: 31_536_000 })
  t.match(await verify(shortStreamKey), { expiresAtSec: NOW_SEC + 31_536_000 })
})

t.test('the standard form takes short keys in each of its places', async (t) => {
  const { shortStreamKey } = await issue()
  const token = shortStreamKey.slice('demo-'.length)
  const forms = [
    `#!::m=publish,r=demo,token=${token}`,
    `#!::m=publish,r=demo,token=${shortStreamKey}`,
    `#!::m=publish,r=${shortStreamKey}`,
    `mode=publish,rid=demo,token=${token},program=2`,
    `#!::token=${token},t=stream,r=demo,m=publish`,
    `#!::r=${shortStreamKey},u=somebody,m=publish`,
    encodeURIComponent(`#!::token=${shortStreamKey},m=publish,r=demo`),
    encodeURIComponent(`#!::m=publish,r=${shortStreamKey}`),
  ]
  for (const form of forms) t.match(await verify(form), { streamId: 'demo' }, form)
  t.equal(parseStreamKey(forms[3]!).program, '2')
  const refused = [`#!::r=${shortStreamKey}`, `#!::m=request,r=${shortStreamKey}`]
  for (const form of refused) t.match(await verify(form), { code: 'STREAM_KEY_MALFORMED' }, form)
  t.match(await verify(`#!::m=publish,r=other,token=${token}`), { code: 'STREAM_KEY_INVALID' })
})

t.test('each altered character of a short key is refused with 1010', async (t) => {
  const { shortStreamKey } = await issue()
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  for (let at = 0; at < shortStreamKey.length; at++) {
    for (const letter of alphabet) {
      if (letter === shortStreamKey[at]) continue
      const altered = shortStreamKey.slice(0, at) + letter + shortStreamKey.slice(at + 1)
      const { rejectCode } = (await verify(altered)) as Partial<MillraceError>
      if (rejectCode !== 1010) t.fail(altered)
    }
  }
  t.match(await verify(shortStreamKey, NOW, ['f'.repeat(32)]), { code: 'STREAM_KEY_INVALID' })
  const ahead = createShortKey('demo', { issuedAtSec: NOW_SEC + 62, lifetimeSec: 60 }, SECRET)
  t.match(await verify(ahead), { code: 'STREAM_KEY_INVALID' })
})

t.test('a short key that an encoder cuts is refused with 1010', async (t) => {
  for (const encryptedSinceSec of [undefined, NOW_SEC]) {
    const { shortStreamKey } = await issue({ encryptedSinceSec })
    for (let length = 0; length < shortStreamKey.length; length++)
      t.match(await verify(shortStreamKey.slice(0, length)), { rejectCode: 1010 }, `${length}`)
    for (let at = 1; at < shortStreamKey.length; at++)
      t.match(await verify(shortStreamKey.slice(at)), { rejectCode: 1010 }, `from ${at}`)
  }
})

t.test('a short key of an encrypted stream derives the passphrase of the long one', async (t) => {
  const { streamKey, shortStreamKey } = await issue({ encryptedSinceSec: NOW_SEC - 100 })
  t.match(shortStreamKey, /^demo-[\w-]{27}$/)
  const long = await verify(streamKey, NOW, ['n'.repeat(32), SECRET])
  t.match(long, { encryption: { sinceSec: NOW_SEC - 100, passphrase: /^[\w-]{32}$/ } })
  t.strictSame(await verify(shortStreamKey, NOW, ['n'.repeat(32), SECRET]), long)
})

t.test('the stream id of any short key is known, though it may contain the separator', async () => {
  const letters = fc.constantFrom(...'Az09._~-'.split(''))
  const streamIds = fc
    .string({ unit: letters, minLength: 1, maxLength: 128 })
    .filter((id) => !id.startsWith('.'))
  const times = fc.record({
    isBackup: fc.boolean(),
    issuedAtSec: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    lifetimeSec: fc.integer({ min: 60, max: 31_536_000 }),
    encryptedSinceSec: fc.option(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(streamIds, times, (streamId, claims) => {
      const { rid, token } = parseStreamKey(createShortKey(streamId, claims, SECRET))
      const { encryptedSinceSec, ...rest } = claims
      const expected = { ...rest, ...(encryptedSinceSec !== undefined && { encryptedSinceSec }) }
      const verified = verifyShortToken(rid, token, SECRET)
      return (
        rid === streamId && JSON.stringify(sorted(verified!)) === JSON.stringify(sorted(expected))
      )
    }),
    { numRuns: 2000 },
  )
})

function sorted(claims: object): [string, unknown][] {
  return Object.entries(claims).toSorted(([one], [other]) => (one < other ? -1 : 1))
}
