/**
 * Stream keys of a real SRT caller: each invalid one is rejected with 1010.
 */
import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import t from 'tap'
import { keyIdOf } from '../../src/auth/key-list.ts'
import { issueStreamKey } from '../../src/auth/stream-key.ts'
import { createLogger } from '../../src/logger.ts'
import { connect } from '../../src/srt/index.ts'
import { systemClock } from '../../src/timing/clock.ts'
import { patSection, pmtSection, TsBuilder } from '../mpegts/ts-builder.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

const HOUR_MS = 3_600_000

/** Defect of a key -> reason in the webhook, if its stream exists. */
async function badKeys(service: TestService) {
  const key = async (streamId: string, secret = service.jwtSecret, now = new Date()) =>
    (await issueStreamKey({ streamId, secret, now })).streamKey
  const good = await key('studio')
  const token = good.slice(good.indexOf('token=') + 6)
  const [header, claims, signature] = token.split('.') as [string, string, string]
  const flipped = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`
  const withoutExpiry = await new SignJWT({ stream_id: 'studio' })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(service.jwtSecret))
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`
  return {
    expired: await key('studio', service.jwtSecret, new Date(Date.now() - 2.01 * HOUR_MS)),
    'tampered signature': `mode=publish,rid=studio,token=${header}.${claims}.${flipped}`,
    'tampered claims': `mode=publish,rid=studio,token=${header}.${claims.slice(0, -2)}AA.${signature}`,
    'foreign secret': await key('studio', randomBytes(32).toString('hex')),
    'rid of another stream': good.replace('rid=studio', 'rid=other'),
    'unknown stream': await key('never-started'),
    'no token': 'mode=publish,rid=studio',
    'no rid': `mode=publish,token=${token}`,
    'mode=request': good.replace('mode=publish', 'mode=request'),
    'token without expiry': `mode=publish,rid=studio,token=${withoutExpiry}`,
    'alg none': `mode=publish,rid=studio,token=${unsigned}`,
    garbage: '\u0001%%%,,,===!!',
    empty: '',
  }
}

t.test('our caller reports 1010, and the webhook the reason', async (t) => {
  const service = await startService(t)
  const hooks = await startWebhookReceiver(t)
  for (const id of ['studio', 'other']) {
    await service.api('start-stream', { stream_id: id, webhook_urls: [hooks.url] })
  }
  const port = service.server.srtPort
  for (const [what, streamId] of Object.entries(await badKeys(service))) {
    await t.rejects(
      connect({ host: '127.0.0.1', port, streamId }),
      { code: 'SRT_REJECTED', message: /1010/ },
      what,
    )
  }
  const event = await until('the webhook stream.rejected', () =>
    findEvent(hooks, 'stream.rejected'),
  )
  t.match(event, { stream_id: 'studio', status: 'READY', data: { reason: 'Token expired' } })
  t.match(event.data['remote'], /^127\.0\.0\.1:\d+$/)
})

t.test('log and webhook say why a short key is refused, without the key', async (t) => {
  const lines: string[] = []
  const logger = createLogger('trace', { write: (line) => void lines.push(line) })
  const service = await startService(t, { logger })
  const hooks = await startWebhookReceiver(t)
  const { server, jwtSecret } = service
  // A stream for each defect, since lines and webhooks of one are rate-limited.
  const start = async (streamId: string) =>
    (await server.startStream({ streamId, webhookUrls: [hooks.url] })).shortStreamKey
  for (const streamId of ['expired', 'foreign']) await start(streamId)
  const longAgo = new Date(Date.now() - 2.01 * HOUR_MS)
  const expired = await issueStreamKey({ streamId: 'expired', secret: jwtSecret, now: longAgo })
  const revoked = await start('revoked')
  await server.revokeKey('revoked', server.status('revoked').keys![0]!.keyId)
  const [altered, cut] = [await start('altered'), (await start('cut')).slice(0, -1)]
  const other = altered.at(-3) === 'A' ? 'B' : 'A'
  const [revocation, invalid] = ['Token revoked: call start-stream', 'Token invalid: set the whole']
  const refusals = {
    expired: [expired.shortStreamKey, 'EXPIRED', 'Token expired'],
    revoked: [revoked, 'REVOKED', revocation],
    foreign: [altered.replace('altered', 'foreign'), 'INVALID', invalid],
    altered: [altered.slice(0, -3) + other + altered.slice(-2), 'INVALID', invalid],
    cut: [`mode=publish,rid=cut,token=${cut}`, 'INVALID', invalid],
    // Where the stream id ends is unknown, so no stream is told.
    '': [
      cut,
      'MALFORMED',
      'stream key malformed, it is a name without a token, or a short key that',
    ],
  } as const
  for (const [id, [streamId, code, reason]] of Object.entries(refusals)) {
    const options = { host: '127.0.0.1', port: server.srtPort, streamId }
    await t.rejects(connect(options), { code: 'SRT_REJECTED', message: /1010/ }, id)
    const line = lines.map((text) => JSON.parse(text)).findLast(({ srt_reject }) => srt_reject)
    t.match(line, { code: `STREAM_KEY_${code}`, msg: `encoder rejected: ${reason}` })
    t.match(line, { stream_id: id || undefined, srt_reject: 1010 })
    if (id === '') continue
    const isRejection = ({ event: { type, stream_id } }: (typeof hooks.received)[number]) =>
      type === 'stream.rejected' && stream_id === id
    const { event } = await until(`webhook of ${id}`, () => hooks.received.find(isRejection))
    t.match(event.data['reason'], reason)
    t.notMatch(JSON.stringify(event), streamId.slice(-16))
  }
  for (const [key] of Object.values(refusals)) t.notMatch(lines.join(''), key.slice(-16))
})

t.test(
  'log and webhook say what to put where a name, quotes or a foreign form was given',
  async (t) => {
    const lines: string[] = []
    const logger = createLogger('trace', { write: (line) => void lines.push(line) })
    const { server } = await startService(t, { logger })
    const hooks = await startWebhookReceiver(t)
    // A stream for each mistake, since lines and webhooks of one are rate-limited.
    const start = (streamId: string) => server.startStream({ streamId, webhookUrls: [hooks.url] })
    const { streamKey } = await start('quoted')
    await Promise.all(['named', 'foreign'].map(start))
    const mistakes = {
      named: ['named', 'it is a name without a token'],
      quoted: [`"${streamKey}"`, 'it begins with a quotation mark'],
      foreign: ['publish:foreign', 'it has the form of another server'],
      // Nothing names a stream.
      '': ['', 'the encoder sends no stream id'],
    } as const
    for (const [id, [streamId, what]] of Object.entries(mistakes)) {
      const options = { host: '127.0.0.1', port: server.srtPort, streamId }
      await t.rejects(connect(options), { code: 'SRT_REJECTED', message: /1010/ }, id)
      const line = lines.map((text) => JSON.parse(text)).findLast(({ srt_reject }) => srt_reject)
      const reason = `stream key malformed, ${what}`
      t.match(line, { code: 'STREAM_KEY_MALFORMED', msg: `encoder rejected: ${reason}` })
      t.match(line, { stream_id: id || undefined, srt_reject: 1010 })
      if (id === '') continue
      const { event } = await until(`webhook of ${id}`, () =>
        hooks.received.find(
          ({ event }) => event.type === 'stream.rejected' && event.stream_id === id,
        ),
      )
      t.match(event.data['reason'], reason)
    }
    const sent = JSON.stringify(
      hooks.received.filter(({ event }) => event.type === 'stream.rejected'),
    )
    for (const text of [lines.join(''), sent]) t.notMatch(text, streamKey.slice(-16))
  },
)

t.test('a key from before the start resumes no stream that the API could not stop', async (t) => {
  const service = await startService(t)
  const keyOf = async (streamId: string) => {
    const options = { streamId, secret: service.jwtSecret, now: new Date(Date.now() - 60_000) }
    return (await issueStreamKey(options)).streamKey
  }
  const call = async (streamId: string) =>
    connect({
      ...{ host: '127.0.0.1', port: service.server.srtPort },
      streamId: await keyOf(streamId),
    })
  for (const streamId of ['a/b', '..', 'a"b', 'a\nb', '<img>']) {
    await t.rejects(call(streamId), { code: 'SRT_REJECTED', message: /1010/ }, streamId)
  }
  t.same(service.server.list().streams, [])
  const encoder = await call('studio')
  t.equal((await service.api('status', { stream_id: 'studio' })).body.data['status'], 'STREAMING')
  t.equal((await service.api('kick', { stream_id: 'studio' })).status, 200)
  t.equal((await service.api('stop-stream', { stream_id: 'studio' })).status, 200)
  await encoder.close()
})

t.test("publishes with a key in the form of SRT's access control guidelines", async (t) => {
  const service = await startService(t)
  const { streamKey } = await service.server.startStream({ streamId: 'studio' })
  const port = service.server.srtPort
  const token = streamKey.slice(streamKey.indexOf('token='))
  const streamId = `#!::r=studio,m=publish,${token}`
  const publishing = () => service.server.status('studio').status === 'STREAMING'

  const caller = await connect({ host: '127.0.0.1', port, streamId })
  await until('our caller publishes', publishing)
  t.pass()
  await caller.close()
})

t.test('publishes the program that the key names', async (t) => {
  const service = await startService(t, { ts: { program: '2' } })
  const hooks = await startWebhookReceiver(t)
  const { streamKey } = await service.server.startStream({
    streamId: 'studio',
    webhookUrls: [hooks.url],
  })
  const port = service.server.srtPort
  const call = (streamId: string) => connect({ host: '127.0.0.1', port, streamId })
  const ts = new TsBuilder().sections(0, patSection([[1, 0x1001], [2, 0x1002]])) // prettier-ignore
  for (const number of [1, 2]) {
    const tracks = [{ pid: 0x100 * number, streamType: 0x1b }]
    ts.sections(0x1000 + number, pmtSection(number, 0x100 * number, tracks))
  }
  const pids = () => service.server.status('studio').tracks.map(({ pid }) => pid)
  const cases = {
    '': [0x200],
    ',program=1': [0x100],
    ',program=all': [0x100, 0x200],
    ',program=first': [0x100],
  }
  for (const [suffix, expected] of Object.entries(cases)) {
    const caller = await call(streamKey + suffix)
    const isCarried = () => String(pids()) === String(expected)
    await until(`${suffix || 'TS_PROGRAM'}: tracks ${expected.join()}`, () => {
      caller.send(ts.bytes)
      return isCarried()
    })
    await caller.close()
    const isGone = () => service.server.status('studio').status === 'INTERRUPTED'
    await until('it is gone', isGone)
  }
  for (const program of ['', '0', '65536', 'one']) {
    const refused = { code: 'SRT_REJECTED', message: /1010/ }
    await t.rejects(call(`${streamKey},program=${program}`), refused, program)
  }
  const event = await until('the webhook stream.rejected', () =>
    findEvent(hooks, 'stream.rejected'),
  )
  const reason = 'program in the stream key must be first, all, or a program number from 1 to 65535'
  t.match(event, { data: { reason } })
})

t.test('a valid key can be used again, also after a new start', async (t) => {
  const service = await startService(t)
  const first = await service.server.startStream({ streamId: 'studio' })
  const second = await service.server.startStream({ streamId: 'studio' })
  t.not(first.streamKey, second.streamKey, 'a new start brings a new key')
  for (const { streamKey } of [first, second, first]) {
    const caller = await connect({
      host: '127.0.0.1',
      port: service.server.srtPort,
      streamId: streamKey,
    })
    await caller.close()
    await until(
      'the encoder is gone',
      () => service.server.status('studio').status === 'INTERRUPTED',
    )
  }
  t.pass('three connections with two keys')
})

t.test('refuses a second encoder with 2409 while the first sends', async (t) => {
  const { server } = await startService(t)
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  const options = { host: '127.0.0.1', port: server.srtPort, streamId: streamKey }
  const first = await connect(options)
  t.teardown(() => first.close())
  const sending = setInterval(() => first.send(Buffer.alloc(1316, 0x47)), 10)
  t.teardown(() => clearInterval(sending))
  await t.rejects(connect(options), { code: 'SRT_REJECTED', message: /2409/ })
  t.equal(server.status('studio').status, 'STREAMING', 'the first goes on')
})

t.test('a kicked encoder is refused with 2403 until its ban is over', async (t) => {
  const { server } = await startService(t)
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  const options = { host: '127.0.0.1', port: server.srtPort, streamId: streamKey }
  const first = await connect(options)
  t.equal(server.kick('studio', { banSec: 60 }).status, 'INTERRUPTED')
  t.equal(await first.closed, 'shutdown')
  await t.rejects(connect(options), { code: 'SRT_REJECTED', message: /2403/ })
  server.kick('studio', { banSec: 0 })
  const second = await connect(options)
  t.equal(server.status('studio').status, 'STREAMING')
  await second.close()
})

t.test('revoke refuses keys that do not tell when they were issued', async (t) => {
  const service = await startService(t)
  const nowSec = Math.floor(Date.now() / 1000)
  const call = async (claims: object) => {
    const token = await new SignJWT({ stream_id: 'studio', ...claims })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(new TextEncoder().encode(service.jwtSecret))
    const streamId = `mode=publish,rid=studio,token=${token}`
    const encoder = await connect({ host: '127.0.0.1', port: service.server.srtPort, streamId })
    await encoder.close()
  }
  const undated = { exp: nowSec + 7200 }
  const far = { exp: nowSec + 30 * 86_400 }
  const ahead = { iat: nowSec + 3600, exp: nowSec + 7200 }
  const rejected = { code: 'SRT_REJECTED', message: /1010/ }
  await service.api('start-stream', { stream_id: 'studio' })
  await call(far)
  await t.rejects(call(ahead), rejected, 'iat in the future')
  await service.api('stop-stream', { stream_id: 'studio', revoke: true })
  await service.api('start-stream', { stream_id: 'studio' })
  for (const claims of [undated, far, ahead]) await t.rejects(call(claims), rejected)
})

t.test('refuses an encoder of a stopped stream', async (t) => {
  const { server } = await startService(t)
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  await server.stopStream('studio')
  await t.rejects(connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey }), {
    message: /1010/,
  })
})

t.test('publishes with a short key, revoked with the long one, also after a restart', async (t) => {
  const jwtSecret = randomBytes(32).toString('hex')
  const before = await startService(t, { jwtSecret })
  const { data } = (
    await before.api('start-stream', { stream_id: 'studio', key_lifetime_sec: 86_400 })
  ).body
  const streamId = String(data['short_stream_key'])
  t.match(streamId, /^studio-[\w-]{22}$/)
  const leftMs = Date.parse(String(data['expires_at'])) - systemClock.wallMs()
  t.ok(leftMs > 86_000_000 && leftMs <= 86_400_000, `${leftMs} ms`)
  await before.server.close()
  // Keys of the second in which a process starts may be its own.
  await until(
    'the second is over',
    () =>
      systemClock.wallMs() / 1000 >
      1 + Math.floor(Date.parse(String(data['expires_at'])) / 1000) - 86_400,
  )

  const service = await startService(t, { jwtSecret })
  const call = () => connect({ host: '127.0.0.1', port: service.server.srtPort, streamId })
  const caller = await call()
  await until('our caller publishes', () => service.server.status('studio').status === 'STREAMING')
  await caller.close()
  await service.api('stop-stream', { stream_id: 'studio', revoke: true })
  await service.api('start-stream', { stream_id: 'studio' })
  await t.rejects(call(), { code: 'SRT_REJECTED', message: /1010/ })
})

t.test('lists the keys of a stream, and revokes one of them', async (t) => {
  const service = await startService(t)
  const hooks = await startWebhookReceiver(t)
  const start = async (options: object) =>
    (await service.api('start-stream', { stream_id: 'studio', ...options })).body.data
  const call = (streamId: string) =>
    connect({ host: '127.0.0.1', port: service.server.srtPort, streamId })
  const readKeys = async () =>
    (await service.api('status', { stream_id: 'studio' })).body.data['keys']
  const leaked = await start({ webhook_urls: [hooks.url] })
  const kept = await start({ key_lifetime_sec: 3600, backup: true })
  const keys = await readKeys()
  t.strictSame(
    keys.map((key: Record<string, string>) => `${key['source']} ${key['expires_at']}`).toSorted(),
    [
      `backup ${kept.expires_at}`,
      ...[kept, leaked].map(({ expires_at }) => `main ${expires_at}`).toSorted(),
    ],
  )
  const text = JSON.stringify(keys)
  for (const key of [leaked, kept])
    for (const secret of [key.stream_key.split('token=')[1], key.short_stream_key.slice(7)])
      t.notOk(text.includes(secret))
  t.notMatch(text, 'last_used_at')

  const thief = await call(leaked.short_stream_key)
  const used = await until('its use', async () =>
    (await readKeys()).find((key: { last_used_at?: string }) => key.last_used_at !== undefined),
  )
  t.equal(used.expires_at, leaked.expires_at)
  t.notOk('keys' in (await service.api('streams', {})).body.data.streams[0])
  const { data } = (await service.api('revoke-key', { stream_id: 'studio', key_id: used.key_id }))
    .body
  t.equal(data.status, 'INTERRUPTED')
  t.equal(data.keys.length, 2)
  t.equal(await thief.closed, 'shutdown')
  for (const key of [leaked.stream_key, leaked.short_stream_key])
    await t.rejects(call(key), { code: 'SRT_REJECTED', message: /1010/ })
  const event = await until('stream.rejected', () => findEvent(hooks, 'stream.rejected'))
  t.match(event.data, { reason: 'Token revoked' })
  await (await call(kept.short_stream_key)).close()

  await service.server.stopStream('studio')
  await start({})
  await t.rejects(call(leaked.stream_key), { code: 'SRT_REJECTED' }, 'also of the next start')
  await (await call(kept.stream_key)).close()
})

t.test('a revoked key is refused after a restart once it is revoked again', async (t) => {
  let service = await startService(t)
  const call = (streamId: string) =>
    connect({ host: '127.0.0.1', port: service.server.srtPort, streamId })
  const issue = async (lifetimeSec: number) => {
    const issued = { secret: service.jwtSecret, now: new Date(Date.now() - 60_000), lifetimeSec }
    const { streamKey } = await issueStreamKey({ streamId: 'studio', ...issued })
    const nowSec = Math.floor(issued.now.getTime() / 1000)
    return {
      streamKey,
      keyId: keyIdOf({ issuedAtSec: nowSec, expiresAtSec: nowSec + lifetimeSec }),
    }
  }
  const [leaked, kept] = [await issue(7200), await issue(3600)]
  const revoke = async () => {
    const revoked = await service.tryApi('revoke-key', {
      stream_id: 'studio',
      key_id: leaked.keyId,
    })
    t.match(revoked, { status: 404, body: { error: /the key is refused from now on/ } })
    await t.rejects(call(leaked.streamKey), { code: 'SRT_REJECTED', message: /1010/ })
  }
  await revoke()
  await service.server.close()
  service = await startService(t, { jwtSecret: service.jwtSecret })
  await revoke()
  await (await call(kept.streamKey)).close()
  t.match(service.server.status('studio').keys, [{ keyId: kept.keyId, lastUsedAt: Date }])
  for (const key_id of ['', 'x', `${leaked.keyId} `, `0${leaked.keyId}`, '1-2-other']) {
    await t.rejects(service.api('revoke-key', { stream_id: 'studio', key_id }), {
      message: /400 BODY_INVALID, key_id must be a `key_id` of the status of the stream/,
    })
  }
})

t.test('refuses a lifetime out of bounds', async (t) => {
  const { api } = await startService(t)
  for (const key_lifetime_sec of [59, 31_536_001, 60.5, '60']) {
    await t.rejects(api('start-stream', { stream_id: 'studio', key_lifetime_sec }), {
      message: /400 BODY_INVALID, key_lifetime_sec must be a whole number of seconds from 60 to/,
    })
  }
})

t.test('warns once of the key of an encoder that expires', async (t) => {
  const service = await startService(t)
  const hooks = await startWebhookReceiver(t)
  const { data } = (
    await service.api('start-stream', {
      ...{ stream_id: 'studio', key_lifetime_sec: 300, webhook_urls: [hooks.url] },
    })
  ).body
  const options = { host: '127.0.0.1', port: service.server.srtPort }
  for (let times = 0; times < 2; times++) {
    const caller = await connect({ ...options, streamId: String(data['stream_key']) })
    const { warnings } = await until('the warning', () => {
      const status = service.server.status('studio')
      return status.warnings.some(({ code }) => code === 'KEY_EXPIRING') && status
    })
    t.match(warnings, [{ message: /expires in 5 min/ }])
    await caller.close()
    await until(
      'the encoder has left',
      () => service.server.status('studio').publisher === undefined,
    )
  }
  const event = await until('the webhook', () => findEvent(hooks, 'stream.key_expiring'))
  t.match(event.data, { expires_at: data['expires_at'] })
  const isWanted = ({ event: { type, data: facts } }: (typeof hooks.received)[number]) =>
    type === 'stream.key_expiring' || facts['code'] === 'KEY_EXPIRING'
  t.equal(hooks.received.filter(isWanted).length, 1)
})
