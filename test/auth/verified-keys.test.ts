import t from 'tap'
import { SignJWT } from 'jose'
import { issueStreamKey, STREAM_KEY_LIFETIME_SEC } from '../../src/auth/stream-key.ts'
import { VerifiedKeys } from '../../src/auth/verified-keys.ts'

const SECRET = 's'.repeat(32)
const NOW = new Date('2026-01-01T00:00:00Z')
const after = (sec: number) => new Date(NOW.getTime() + sec * 1000)

const issue = (secret = SECRET) => issueStreamKey({ streamId: 'studio', secret, now: NOW })

/** Cache whose secrets can be removed, so that it verifies no key that it does not remember. */
function forgetful() {
  const secrets = [SECRET]
  return { keys: new VerifiedKeys(secrets), forget: () => secrets.splice(0) }
}

t.test('verifies a key once and caches it until it expires', async (t) => {
  const { keys, forget } = forgetful()
  const { streamKey } = await issue()
  const claims = await keys.verify(streamKey, NOW)
  t.match(claims, { streamId: 'studio' })
  forget()
  t.equal(await keys.verify(streamKey, after(STREAM_KEY_LIFETIME_SEC - 1)), claims)
  await t.rejects(keys.verify(streamKey, after(STREAM_KEY_LIFETIME_SEC)), {
    code: 'STREAM_KEY_EXPIRED',
  })
  const other = await issue()
  await t.rejects(keys.verify(other.streamKey, NOW), { code: 'STREAM_KEY_INVALID' })
})

t.test('verifies a key with one changed character anew', async (t) => {
  const keys = new VerifiedKeys([SECRET])
  const { streamKey } = await issue()
  await keys.verify(streamKey, NOW)
  const at = streamKey.length - 10
  const changed =
    streamKey.slice(0, at) + (streamKey[at] === 'A' ? 'B' : 'A') + streamKey.slice(at + 1)
  await t.rejects(keys.verify(changed, NOW), { code: 'STREAM_KEY_INVALID' })
  await t.rejects(keys.verify(streamKey.replace('rid=studio', 'rid=other'), NOW), {
    code: 'STREAM_KEY_MISMATCH',
  })
})

t.test('caches a refusal for a minute', async (t) => {
  const secrets = ['o'.repeat(32)]
  const keys = new VerifiedKeys(secrets)
  const { streamKey } = await issue()
  await t.rejects(keys.verify(streamKey, NOW), { code: 'STREAM_KEY_INVALID' })
  secrets[0] = SECRET
  await t.rejects(keys.verify(streamKey, after(59)), { code: 'STREAM_KEY_INVALID' })
  t.match(await keys.verify(streamKey, after(60)), { streamId: 'studio' })
})

t.test('accepts a key with nbf once it is valid', async (t) => {
  const keys = new VerifiedKeys([SECRET])
  const nowSec = NOW.getTime() / 1000
  const token = await new SignJWT({ stream_id: 'studio' })
    .setProtectedHeader({ alg: 'HS256' })
    .setNotBefore(nowSec + 30)
    .setExpirationTime(nowSec + 7200)
    .sign(new TextEncoder().encode(SECRET))
  const streamKey = `mode=publish,rid=studio,token=${token}`
  await t.rejects(keys.verify(streamKey, NOW), { code: 'STREAM_KEY_INVALID' })
  t.match(await keys.verify(streamKey, after(61)), { streamId: 'studio' })
})

t.test('keeps valid keys cached during a flood of bad ones', async (t) => {
  const { keys, forget } = forgetful()
  const { streamKey } = await issue()
  await keys.verify(streamKey, NOW)
  forget()
  for (let i = 0; i < 10_000; i++) {
    await keys.verify(`mode=publish,rid=studio,token=a.b.${i}`, NOW).catch(() => undefined)
  }
  t.match(await keys.verify(streamKey, NOW), { streamId: 'studio' })
})
