import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import t from 'tap'
import { PlaybackTokens, signPlaybackToken } from '../../src/auth/playback-token.ts'

const SECRET = 'p'.repeat(32)
const NOW_MS = Date.UTC(2026, 0, 1)
const expiresAt = new Date(NOW_MS + 60_000)
const ADDRESS = '192.0.2.1'
const use = { streamId: 'studio', nowMs: NOW_MS, readAddress: () => ADDRESS }

t.test('a token is the expiry and the HMAC that other languages can compute', async (t) => {
  const expires = NOW_MS / 1000 + 60
  const hmac = (text: string) => createHmac('sha256', SECRET).update(text).digest('base64url')
  t.equal(
    signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt }),
    `${expires}.${hmac(`playback:studio:${expires}`)}`,
  )
  const addresses = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '2001:db8:1:2:3::4': '20010db800010002',
  }
  for (const [address, name] of Object.entries(addresses)) {
    t.equal(
      signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt, address }),
      `${expires}.ip.${hmac(`playback:studio:${expires}:${name}`)}`,
    )
  }
})

t.test('a token is valid for its stream until it expires, also when it is cached', async (t) => {
  const tokens = new PlaybackTokens(() => [SECRET])
  const token = signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt })
  const valid = { expiresSec: NOW_MS / 1000 + 60, isBound: false }
  for (let i = 0; i < 2; i++) {
    t.same(tokens.verify(token, use), valid)
    t.same(tokens.verify(token, { ...use, nowMs: NOW_MS + 59_999 }), valid)
    t.equal(tokens.verify(token, { ...use, nowMs: NOW_MS + 60_000 }), 'PLAYBACK_TOKEN_EXPIRED')
    t.equal(tokens.verify(token, { ...use, streamId: 'other' }), 'PLAYBACK_TOKEN_INVALID')
  }
})

t.test('a token with an address is valid for that address, or for its /64 of IPv6', async (t) => {
  const tokens = new PlaybackTokens(() => [SECRET])
  const allows = (address: string, ip: string) => {
    const token = signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt, address })
    const limits = tokens.verify(token, { ...use, readAddress: () => ip })
    return typeof limits !== 'string' && limits.isBound
  }
  t.ok(allows('192.0.2.1', '192.0.2.1'))
  t.ok(allows('192.0.2.1', '::ffff:192.0.2.1'))
  t.notOk(allows('192.0.2.1', '192.0.2.2'))
  t.ok(allows('2001:db8::1', '2001:db8::2'))
  t.notOk(allows('2001:db8::1', '2001:db8:0:1::1'))
  t.notOk(allows('192.0.2.1', 'unknown'))
})

t.test(
  'a token without an address cannot pass for one with an address, nor the reverse',
  async (t) => {
    const tokens = new PlaybackTokens(() => [SECRET])
    const given = { streamId: 'studio', secret: SECRET, expiresAt }
    const bound = signPlaybackToken({ ...given, address: ADDRESS })
    const free = signPlaybackToken(given)
    t.equal(tokens.verify(bound.replace('.ip', ''), use), 'PLAYBACK_TOKEN_INVALID')
    t.equal(tokens.verify(free.replace('.', '.ip.'), use), 'PLAYBACK_TOKEN_INVALID')
  },
)

t.test('tokens of both secrets of a rotation are valid, and of no other secret', async (t) => {
  const tokens = new PlaybackTokens(() => [SECRET, 'o'.repeat(32)])
  for (const [secret, refusal] of [
    [SECRET, undefined],
    ['o'.repeat(32), undefined],
    ['x'.repeat(32), 'PLAYBACK_TOKEN_INVALID'],
  ] as const) {
    const token = signPlaybackToken({ streamId: 'studio', secret, expiresAt })
    const limits = tokens.verify(token, use)
    t.equal(typeof limits === 'string' ? limits : undefined, refusal)
  }
})

t.test('a token with any other text in it is invalid', async (t) => {
  const tokens = new PlaybackTokens(() => [SECRET])
  const token = signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt })
  t.type(tokens.verify(token, use), 'object')
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.string({ minLength: 1, maxLength: 3 }), (at, text) => {
      const altered = token.slice(0, at) + text + token.slice(at + text.length)
      return altered === token || tokens.verify(altered, use) === 'PLAYBACK_TOKEN_INVALID'
    }),
  )
  for (const text of ['', '.', `${token} `, `${token}\n`, `0${token}`, token.slice(0, -1)]) {
    t.equal(tokens.verify(text, use), 'PLAYBACK_TOKEN_INVALID', JSON.stringify(text))
  }
})

t.test('signing refuses an empty secret, a bad date and a bad address', async (t) => {
  const valid = { streamId: 'studio', secret: SECRET, expiresAt }
  t.throws(() => signPlaybackToken({ ...valid, secret: '' }), { message: /secret is empty/ })
  t.throws(() => signPlaybackToken({ ...valid, expiresAt: new Date(NaN) }), { message: /date/ })
  t.throws(() => signPlaybackToken({ ...valid, address: 'studio' }), { message: /address/ })
})
