import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import t from 'tap'
import {
  deriveEncryption,
  issueStreamKey,
  parseStreamKey,
  streamNamedIn,
  verifyStreamKey,
} from '../../src/auth/stream-key.ts'
import { MillraceError, type ErrorCode } from '../../src/errors.ts'
import { RejectCode } from '../../src/srt/wire/reject-code.ts'
import { MAX_STREAM_ID_BYTES } from '../../src/srt/wire/limits.ts'

const SECRET = '0123456789abcdef0123456789abcdef'
const NOW = new Date('2026-03-01T12:00:00.700Z')
const NOW_SEC = 1772366400

/** A JWT made by hand (RFC 7515 section 3.3), for claims that the library refuses to sign. */
function jwt(header: object, claims: object, secret = SECRET): string {
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function claimsOf(streamKey: string): Record<string, unknown> {
  const payload = streamKey.split('token=')[1]?.split('.')[1] ?? ''
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
}

async function refusal(text: string, now = NOW): Promise<MillraceError | undefined> {
  try {
    await verifyStreamKey(text, { secrets: [SECRET], now })
    return undefined
  } catch (error) {
    if (error instanceof MillraceError) return error
    throw error
  }
}

async function codeOf(text: string, now = NOW): Promise<ErrorCode | undefined> {
  return (await refusal(text, now))?.code
}

const HS256 = { alg: 'HS256' }
const CLAIMS = { stream_id: 'demo', exp: NOW_SEC + 60 }
const TOKEN = jwt(HS256, CLAIMS)

t.test('issues a key of mode, rid and token that expires after two hours', async (t) => {
  const { streamKey, expiresAt } = await issueStreamKey({
    streamId: 'demo',
    secret: SECRET,
    now: NOW,
  })
  t.match(streamKey, /^mode=publish,rid=demo,token=[\w-]+\.[\w-]+\.[\w-]+$/)
  t.equal(expiresAt.toISOString(), '2026-03-01T14:00:00.000Z')
  t.match(claimsOf(streamKey), { stream_id: 'demo', iat: NOW_SEC, exp: NOW_SEC + 7200 })
  t.strictSame(await verifyStreamKey(streamKey, { secrets: [SECRET], now: NOW }), {
    streamId: 'demo',
    issuedAtSec: NOW_SEC,
    expiresAtSec: NOW_SEC + 7200,
  })
})

t.test('issues a new token at each start, and keeps older ones valid', async (t) => {
  const first = await issueStreamKey({ streamId: 'demo', secret: SECRET, now: NOW })
  const second = await issueStreamKey({ streamId: 'demo', secret: SECRET, now: NOW })
  t.not(first.streamKey, second.streamKey)
  for (const { streamKey } of [first, second, first]) t.equal(await codeOf(streamKey), undefined)
})

t.test('issues a key that fits a StreamID of SRT for the longest stream id', async (t) => {
  const streamId = '~'.repeat(128)
  for (const encryptedSinceSec of [undefined, NOW_SEC]) {
    const options = { streamId, secret: SECRET, now: NOW, encryptedSinceSec }
    const { streamKey } = await issueStreamKey(options)
    t.ok(streamKey.length <= MAX_STREAM_ID_BYTES, `${streamKey.length} bytes`)
    t.equal(await codeOf(streamKey), undefined)
  }
})

t.test('accepts keys of both secrets during a rotation, and none of a third', async (t) => {
  const older = 'the secret that signed before this one'
  const keys = await Promise.all(
    [SECRET, older, 'a secret that never signed anything'].map((secret) =>
      issueStreamKey({ streamId: 'demo', secret, now: NOW }),
    ),
  )
  const verify = (streamKey: string, now = NOW) =>
    verifyStreamKey(streamKey, { secrets: [SECRET, older], now })
  const [byNewest, byOlder, byNone] = keys.map(({ streamKey }) => streamKey)
  t.match(await verify(byNewest!), { streamId: 'demo' })
  t.match(await verify(byOlder!), { streamId: 'demo' })
  await t.rejects(verify(byNone!), { code: 'STREAM_KEY_INVALID' })
  const later = new Date(NOW.getTime() + 7_200_000)
  await t.rejects(verify(byOlder!, later), { code: 'STREAM_KEY_EXPIRED' })
})

t.test('derives the passphrase of an encrypted stream from its key', async (t) => {
  const key = async (streamId: string, sinceSec: number, secret = SECRET) => {
    const options = { streamId, secret, now: NOW, encryptedSinceSec: sinceSec }
    const { streamKey } = await issueStreamKey(options)
    const claims = await verifyStreamKey(streamKey, { secrets: [SECRET, 'older'], now: NOW })
    t.strictSame(claims.encryption, deriveEncryption({ streamId, secret, sinceSec }))
    t.notOk(streamKey.includes(claims.encryption!.passphrase))
    return claims.encryption!.passphrase
  }
  const passphrase = await key('demo', NOW_SEC)
  t.match(passphrase, /^[\w-]{32}$/)
  t.equal(await key('demo', NOW_SEC), passphrase, 'of all keys of the stream')
  const others = [
    await key('other', NOW_SEC),
    await key('demo', NOW_SEC + 1),
    await key('demo', NOW_SEC, 'older'),
  ]
  t.equal(new Set([passphrase, ...others]).size, 4, 'each its own')
})

t.test('a token without iat has no time of issue', async (t) => {
  const key = `mode=publish,rid=demo,token=${TOKEN}`
  const { issuedAtSec } = await verifyStreamKey(key, { secrets: [SECRET], now: NOW })
  t.equal(issuedAtSec, undefined)
})

t.test('rejects a token issued more than a minute ahead of the clock', async (t) => {
  const keyOf = (iat: number) => `mode=publish,rid=demo,token=${jwt(HS256, { ...CLAIMS, iat })}`
  t.equal(await codeOf(keyOf(NOW_SEC + 60)), undefined)
  const error = await refusal(keyOf(NOW_SEC + 61))
  t.match(error, { code: 'STREAM_KEY_INVALID', rejectCode: 1010, message: /clock/ })
})

t.test('accepts a token until the second before exp, and none from exp on', async (t) => {
  const { streamKey, expiresAt } = await issueStreamKey({
    streamId: 'demo',
    secret: SECRET,
    now: NOW,
  })
  t.equal(await codeOf(streamKey, new Date(expiresAt.getTime() - 1)), undefined)
  t.equal(await codeOf(streamKey, expiresAt), 'STREAM_KEY_EXPIRED')
  t.match(await refusal(streamKey, new Date(expiresAt.getTime() + 1)), {
    message: 'Token expired',
    rejectCode: RejectCode.BADSECRET,
  })
})

t.test('accepts a token that another implementation signed with HS256', async (t) => {
  // Header with typ, claims in another order: what jsonwebtoken or PyJWT write.
  const token = jwt({ typ: 'JWT', alg: 'HS256' }, { exp: NOW_SEC + 1, stream_id: 'demo' })
  t.equal(await codeOf(`mode=publish,rid=demo,token=${token}`), undefined)
})

t.test('accepts pairs in any order, and ignores unknown keys', async (t) => {
  t.equal(await codeOf(`token=${TOKEN},x-encoder=obs=30,rid=demo,mode=publish`), undefined)
})

t.test('accepts a key that is percent-encoded as a whole', async (t) => {
  const key = `mode=publish,rid=demo,token=${TOKEN}`
  t.equal(await codeOf(encodeURIComponent(key)), undefined)
  t.equal(await codeOf(new URLSearchParams({ '': key }).toString().slice(1)), undefined)
})

t.test("accepts the form of SRT's access control guidelines", async (t) => {
  const accepted = [
    `#!::r=demo,m=publish,token=${TOKEN}`,
    `#!::token=${TOKEN},u=somebody,t=stream,mode=publish,rid=demo`,
    encodeURIComponent(`#!::m=publish,r=demo,token=${TOKEN}`),
    // A Blackmagic Web Presenter writes its own names in front; here its user gave the whole key as the stream's name.
    `#!::bmd_uuid=0e1df79f-77e6-465c,bmd_name=wp-003,r=mode=publish,rid=demo,token=${TOKEN},m=publish`,
    `#!::bmd_uuid=0e1df79f-77e6-465c,bmd_name=wp-003,u=mode=publish,rid=demo,token=${TOKEN}`,
  ]
  for (const text of accepted) t.equal(await codeOf(text), undefined, text.slice(0, 60))
  const refused: Record<string, RegExp> = {
    [`#!::r=demo,token=${TOKEN}`]: /mode is not publish/,
    [`#!::r=demo,m=request,token=${TOKEN}`]: /mode is not publish/,
    [`#!::r=demo,m=publish,mode=request,token=${TOKEN}`]: /mode is not publish/,
    [`#!::m=publish,token=${TOKEN}`]: /rid is missing/,
    [`#!::r=demo,r=demo,m=publish,token=${TOKEN}`]: /repeated/,
    [`#!:r=demo,m=publish,token=${TOKEN}`]: /mode is not publish/,
    [`r=demo,m=publish,token=${TOKEN}`]: /mode is not publish/,
    '#!::': /no part is name=value/,
    '#!::r=demo,m=publish': /token is missing/,
  }
  for (const [text, message] of Object.entries(refused)) {
    t.match(await refusal(text), { code: 'STREAM_KEY_MALFORMED', message }, text.slice(0, 60))
  }
  t.equal(await codeOf(`#!::r=other,m=publish,token=${TOKEN}`), 'STREAM_KEY_MISMATCH')
})

t.test('cuts what follows a # at the end, in every form of the key', async (t) => {
  const { shortStreamKey } = await issueStreamKey({ streamId: 'demo', secret: SECRET, now: NOW })
  const keys = [
    `mode=publish,rid=demo,token=${TOKEN}`,
    `token=${TOKEN},mode=publish,rid=demo`,
    `token=${TOKEN},rid=demo,mode=publish`,
    `mode=publish,rid=demo,token=${TOKEN},program=2`,
    `#!::r=demo,m=publish,token=${TOKEN}`,
    `#!::token=${TOKEN},m=publish,r=demo`,
    `#!::bmd_name=wp-003,u=mode=publish,rid=demo,token=${TOKEN}`,
    `#!::bmd_name=Studio #1,u=mode=publish,rid=demo,token=${TOKEN}`,
    `#!::m=publish,r=${shortStreamKey}`,
    shortStreamKey,
  ]
  for (const key of keys) {
    for (const end of ['#feedbackplay', '#', '#a=1', '#%', '#a,b', '#a#b']) {
      const title = `${key.replace(TOKEN, '').slice(0, 40)} ${end}`
      t.equal(await codeOf(key + end), undefined, title)
      t.equal(await codeOf(encodeURIComponent(key) + end), undefined, `encoded ${title}`)
      t.equal(await codeOf(encodeURIComponent(key + end)), undefined, `all encoded ${title}`)
      t.equal(parseStreamKey(key + end).program, key.includes('program=') ? '2' : undefined)
    }
  }
  t.equal(await codeOf('#feedbackplay'), 'STREAM_KEY_MALFORMED')
  t.equal(await codeOf(`mode=publish,rid=demo#,token=${TOKEN}x`), 'STREAM_KEY_INVALID')
})

t.test('ignores parts that are not name=value where the rest is a valid key', async (t) => {
  const accepted = [
    `mode=publish,rid=demo,token=${TOKEN},`,
    `,mode=publish,rid=demo,token=${TOKEN}`,
    `mode=publish,=x,rid=demo,token=${TOKEN}`,
    `name=Camera 2, left,mode=publish,rid=demo,token=${TOKEN}`,
    `#!::bmd_name=Smith, Jones, and sons,u=mode=publish,rid=demo,token=${TOKEN}`,
    `#!::Camera 2,r=demo,m=publish,token=${TOKEN}, left`,
  ]
  for (const text of accepted) {
    t.equal(await codeOf(text), undefined, text.slice(0, 60))
    t.equal(await codeOf(encodeURIComponent(text)), undefined, `encoded ${text.slice(0, 60)}`)
  }
  t.match(await refusal('#!::bmd_name=Smith, Jones,m=publish,r=demo'), {
    code: 'STREAM_KEY_MALFORMED',
    message: /token is missing/,
  })
})

t.test('accepts a program in either form of the key', async (t) => {
  const programOf = (text: string) => parseStreamKey(text).program
  t.equal(programOf(`mode=publish,rid=demo,token=${TOKEN},program=3`), '3')
  t.equal(programOf(`#!::r=demo,program=all,m=publish,token=${TOKEN}`), 'all')
  t.equal(programOf(encodeURIComponent(`program=,mode=publish,rid=demo,token=${TOKEN}`)), '')
  t.equal(programOf(`mode=publish,rid=demo,token=${TOKEN}`), undefined)
  const twice = `mode=publish,rid=demo,token=${TOKEN},program=1,program=2`
  t.match(await refusal(twice), { code: 'STREAM_KEY_MALFORMED', message: /repeated/ })
})

t.test('rejects malformed keys with 1010 and the reason', async (t) => {
  const refused: Record<string, string | RegExp> = {
    ',': /no part is name=value/,
    [`rid=demo,token=${TOKEN}`]: /mode is not publish/,
    [`mode=request,rid=demo,token=${TOKEN}`]: /mode is not publish/,
    [`MODE=publish,rid=demo,token=${TOKEN}`]: /mode is not publish/,
    [`mode=publish,token=${TOKEN}`]: /rid is missing/,
    [`mode=publish,rid=,token=${TOKEN}`]: /rid is missing/,
    [`mode=publish,rid=${'a'.repeat(129)},token=${TOKEN}`]: /rid must be 1 to 128 characters/,
    'mode=publish,rid=demo': /token is missing/,
    'mode=publish,rid=demo,token=': /token is missing/,
    [`mode=publish,rid=demo,rid=demo,token=${TOKEN}`]: /repeated/,
    [`mode=publish,rid=demo,token=${TOKEN},token=${TOKEN}`]: /repeated/,
    [`mode=publish,rid=demo,token=${TOKEN},a=1,a=2`]: /repeated/,
    [`mode=publish,rid=demo,token=${TOKEN},pad=${'x'.repeat(512)}`]: /longer than 512 bytes/,
    'mode%3Dpublish%2': /percent-encoding/,
  }
  for (const [text, message] of Object.entries(refused)) {
    const error = await refusal(text)
    t.match(error, { code: 'STREAM_KEY_MALFORMED', message, rejectCode: 1010 }, text.slice(0, 60))
  }
})

t.test(
  'says what to put where a user has given no key, a name, quotes or a foreign form',
  async (t) => {
    const key = `mode=publish,rid=demo,token=${TOKEN}`
    const whole =
      'set streamid to the whole stream_key of start-stream, mode=publish,rid=<stream_id>,token=<jwt>'
    const none =
      'the encoder sends no stream id: set streamid (OBS: Stream Key) to stream_key of start-stream, or start the stream with publish_port'
    const quoted = 'it begins with a quotation mark: set streamid to the key without quotes'
    const foreign = `it has the form of another server, such as publish:<name>: ${whole}`
    const name = `it is a name without a token, or a short key that was cut: ${whole}`
    const cases: Record<string, string> = {
      '': none,
      [`"${key}"`]: quoted,
      [`'${key}'`]: quoted,
      [`“${key}”`]: quoted,
      [encodeURIComponent(`"${key}"`)]: quoted,
      '"demo"': quoted,
      'publish:demo': foreign,
      'publish:demo:user:password': foreign,
      'publish%3Ademo': foreign,
      'live/demo': foreign,
      demo: name,
      'demo#feedbackplay': name,
    }
    for (const [text, what] of Object.entries(cases)) {
      const message = `stream key malformed, ${what}`
      const error = await refusal(text)
      t.match(error, { code: 'STREAM_KEY_MALFORMED', message, rejectCode: 1010 }, text.slice(0, 30))
    }
    t.match(await refusal('srt://example.org:10080'), { message: /no part is name=value/ })
  },
)

t.test('finds the name of a stream in a text that is no key', async (t) => {
  const key = `mode=publish,rid=demo,token=${TOKEN}`
  for (const text of [
    ...['demo', '"demo"', 'publish:demo', '"publish:demo"', 'publish:demo:user:password'],
    ...['publish%3Ademo', 'demo#feedbackplay', 'live/demo', 'rid=demo#feedbackplay'],
    ...[key, `"${key}"`, `‘${key}’`, '"mode=publish,rid=demo"', '#!::r=demo,m=publish'],
    ...['#!::m=publish,r=demo', '#!::r=other,rid=demo', `#!::r=${key}`, `u=Camera #1,${key}`],
    ...[`other,${key}`, `token=r=other,${key}`, `srt://other:10080?streamid=${key}`],
  ])
    t.equal(streamNamedIn(text), 'demo', text.slice(0, 30))
  for (const text of [
    ...['', '=', 'mode=publish', 'live:demo', 'demo:user', 'srt://demo:10080'],
    ...['publish:demo?x', 'publish:demo,x', 'r=demo,m=publish', 'token=r=demo', 'x-rid=demo'],
  ])
    t.equal(streamNamedIn(text), undefined, text)
})

t.test('rejects an invalid token with 1010', async (t) => {
  const [header, payload, signature] = TOKEN.split('.') as [string, string, string]
  const unsigned = jwt({ alg: 'none' }, CLAIMS).replace(/[^.]*$/, '')
  const sha512 = createHmac('sha512', SECRET)
  const hs512 = jwt({ alg: 'HS512' }, CLAIMS).replace(/\.[^.]*$/, '')
  const tokens: Record<string, string> = {
    'foreign secret': jwt(HS256, CLAIMS, 'another secret'),
    'tampered signature': `${header}.${payload}.${signature.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`,
    'tampered claims': `${header}.${jwt(HS256, { ...CLAIMS, exp: NOW_SEC + 9999 }).split('.')[1]}.${signature}`,
    'alg none without signature': unsigned,
    'alg none with signature': jwt({ alg: 'none' }, CLAIMS),
    'HS512, properly signed': `${hs512}.${sha512.update(hs512).digest('base64url')}`,
    'RS256 named, signed with HMAC': jwt({ alg: 'RS256' }, CLAIMS),
    'critical extension': jwt({ alg: 'HS256', crit: ['x'], x: 1 }, CLAIMS),
    'no exp': jwt(HS256, { stream_id: 'demo' }),
    'exp a string': jwt(HS256, { ...CLAIMS, exp: String(NOW_SEC + 60) }),
    'no stream_id': jwt(HS256, { exp: NOW_SEC + 60 }),
    'not a JWT': 'abc',
    'three empty parts': '..',
  }
  for (const [what, token] of Object.entries(tokens)) {
    const error = await refusal(`mode=publish,rid=demo,token=${token}`)
    t.match(error, { code: 'STREAM_KEY_INVALID', rejectCode: 1010 }, what)
  }
})

t.test('rejects the token of another stream', async (t) => {
  t.match(await refusal(`mode=publish,rid=other,token=${TOKEN}`), {
    code: 'STREAM_KEY_MISMATCH',
    rejectCode: 1010,
  })
  const numeric = jwt(HS256, { ...CLAIMS, stream_id: 7 })
  t.equal(await codeOf(`mode=publish,rid=7,token=${numeric}`), 'STREAM_KEY_MISMATCH')
})

t.test('reveals neither token, secret nor claims in a refusal', async (t) => {
  const expired = jwt(HS256, { stream_id: 'demo', exp: 1 })
  for (const token of [TOKEN, expired, `${TOKEN}x`]) {
    const error = await refusal(`mode=publish,rid=other,token=${token}`)
    const text = `${error?.message} ${error?.stack} ${JSON.stringify(error)} ${String(error?.cause)}`
    t.notOk(text.includes(token.slice(0, 20)))
    t.notOk(text.includes(token.slice(-20)))
    t.notOk(text.includes(SECRET))
  }
})

t.test('rejects arbitrary text with a MillraceError of 1010', async () => {
  const words = fc.constantFrom(
    'mode',
    'rid',
    'token',
    'publish',
    '=',
    ',',
    '%',
    '%3D',
    '#!::',
    'demo',
    TOKEN,
    '\0',
    '.',
  )
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(words).map((parts) => parts.join('')),
  )
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const error = await refusal(text)
      return error === undefined ? text.includes(TOKEN) : error.rejectCode === RejectCode.BADSECRET
    }),
    { numRuns: 500 },
  )
})

t.test('parses any allowed stream id back from its key', async () => {
  const letters = 'ABCxyz059._~-'.split('')
  const streamIds = fc
    .string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 128 })
    .filter((id) => !id.startsWith('.'))
  await fc.assert(
    fc.asyncProperty(streamIds, async (streamId) => {
      const { streamKey } = await issueStreamKey({ streamId, secret: SECRET, now: NOW })
      const claims = await verifyStreamKey(streamKey, { secrets: [SECRET], now: NOW })
      return claims.streamId === streamId
    }),
    { numRuns: 50 },
  )
})

t.test('rejects a signed key whose rid is no stream id', async (t) => {
  for (const streamId of [
    'a/b',
    '..',
    '.a',
    'a b',
    '"',
    "a'b",
    'a\nb',
    'a\r',
    '<img>',
    'ä',
    '\0',
  ]) {
    const token = jwt(HS256, { ...CLAIMS, stream_id: streamId })
    const error = await refusal(`mode=publish,rid=${streamId},token=${token}`)
    t.match(
      error,
      { code: 'STREAM_KEY_MALFORMED', rejectCode: 1010, message: /^[ -~]+$/ },
      streamId,
    )
  }
})
