import t from 'tap'
import {
  formatPlayRequest,
  issuePlayToken,
  parsePlayRequest,
  verifyPlayToken,
} from '../../src/auth/srt-play-token.ts'
import { issueStreamKey, parseStreamKey, verifyStreamKey } from '../../src/auth/stream-key.ts'

const SECRET = 'playback secret of at least 32 bytes'
const JWT_SECRET = 'jwt secret, another one of 32 bytes..'
const NOW = new Date('2026-01-02T03:04:05Z')
const LATER = new Date(NOW.getTime() + 60_000)

t.test('reads requests in both forms, and leaves publishers alone', async (t) => {
  const token = 'a.b.c'
  for (const text of [
    'mode=request,rid=studio,token=a.b.c',
    'rid=studio,mode=request,token=a.b.c,x=y',
    '#!::m=request,r=studio,token=a.b.c',
    '#!::r=studio,token=a.b.c,mode=request',
    encodeURIComponent('mode=request,rid=studio,token=a.b.c'),
    'mode=request,rid=studio,token=a.b.c#feedbackplay',
    'rid=studio,token=a.b.c,mode=request#feedbackplay',
    encodeURIComponent('rid=studio,token=a.b.c,mode=request#feedbackplay'),
    '#!::name=Studio 1, left,token=a.b.c,r=studio,m=request#feedbackplay',
    formatPlayRequest({ rid: 'studio', token }),
  ])
    t.strictSame(parsePlayRequest(text), { rid: 'studio', token }, text)
  t.strictSame(parsePlayRequest('mode=request,rid=studio'), { rid: 'studio' })
  for (const text of [
    '',
    'studio-AAAAAAAAAAAAAAAAAAAAAA',
    'mode=publish,rid=studio,token=a.b.c',
    'mode=publish,rid=studio,token=a.b.c,m=request',
    '#!::m=publish,r=studio,token=mode=request',
    '#!::m=bidirectional,r=studio',
  ])
    t.equal(parsePlayRequest(text), undefined, text)
  for (const text of ['mode=request', 'mode=request,rid=../x', 'mode=request,mode=request,rid=a'])
    t.throws(() => parsePlayRequest(text), { code: 'STREAM_KEY_MALFORMED', rejectCode: 1010 }, text)
  t.throws(() => parseStreamKey('mode=request,rid=studio,token=a.b.c'), {
    code: 'STREAM_KEY_MALFORMED',
  })
})

t.test('accepts a token of the stream, signed by either secret', async (t) => {
  const token = await issuePlayToken('studio', { secret: SECRET, expiresAt: LATER })
  const secrets = ['the newest secret, of 32 bytes and more', SECRET]
  await verifyPlayToken({ rid: 'studio', token }, { secrets, now: NOW })
  t.match(token, /^[\w-]+\.[\w-]+\.[\w-]+$/)
})

t.test('refuses what is missing, expired, of another stream or a stream key', async (t) => {
  const options = { secrets: [SECRET], now: NOW }
  const refuses = (token: string | undefined, code: string, rid = 'studio') =>
    t.rejects(verifyPlayToken({ rid, ...(token && { token }) }, options), {
      code,
      rejectCode: 1010,
    })
  const token = await issuePlayToken('studio', { secret: SECRET, expiresAt: LATER })
  const old = await issuePlayToken('studio', { secret: SECRET, expiresAt: NOW })
  const { streamKey } = await issueStreamKey({ streamId: 'studio', secret: JWT_SECRET, now: NOW })
  await refuses(undefined, 'PLAYBACK_TOKEN_MISSING')
  await refuses(old, 'PLAYBACK_TOKEN_EXPIRED')
  await refuses(token, 'PLAYBACK_TOKEN_INVALID', 'other')
  await refuses(streamKey.split('token=')[1], 'PLAYBACK_TOKEN_INVALID')
  await refuses(`${token}x`, 'PLAYBACK_TOKEN_INVALID')
  await refuses('1767323045.abc', 'PLAYBACK_TOKEN_INVALID')
  const published = verifyStreamKey(`mode=publish,rid=studio,token=${token}`, {
    secrets: [JWT_SECRET],
    now: NOW,
  })
  await t.rejects(published, { code: 'STREAM_KEY_INVALID' })
})
