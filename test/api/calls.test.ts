import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import * as fc from 'fast-check'
import t from 'tap'
import { sign } from '../../src/auth/signature.ts'
import { MillraceError } from '../../src/errors.ts'
import {
  call,
  json,
  MemoryService,
  SECRET,
  signedCall,
  speak,
  startApp,
  type Reply,
} from '../http/memory-service.ts'

const ROUTES = [
  ['POST', '/api/start-stream'],
  ['POST', '/api/stop-stream'],
  ['POST', '/api/kick'],
  ['GET', '/api/status'],
  ['POST', '/api/status'],
] as const

const JSON_TYPE = { 'content-type': 'application/json' }
const BODY = '{"stream_id":"demo"}'

/** Pattern of a refusal, for `t.match` with `outcome`. */
function refusal(status: number, code: string, error: string | RegExp = /./) {
  return {
    status,
    type: 'application/json; charset=utf-8',
    body: { success: false, code, error },
    keys: code.startsWith('SIGNATURE_') ? 'code,error,hint,success' : 'code,error,success',
  }
}

function outcome(reply: Reply) {
  const body = json(reply)
  return {
    status: reply.status,
    type: reply.headers['content-type'],
    body,
    keys: Object.keys(body).toSorted().join(),
  }
}

t.test('start-stream answers with the key, its expiry and the playlist', async (t) => {
  const app = await startApp(t)
  const reply = await signedCall(app, 'POST', '/api/start-stream', {
    stream_id: 'demo',
    webhook_urls: ['https://example.com/hook?x=1', 'http://127.0.0.1:9000/'],
  })
  t.equal(reply.status, 200)
  t.equal(reply.headers['cache-control'], 'no-store')
  t.strictSame(json(reply), {
    success: true,
    data: {
      stream_id: 'demo',
      status: 'READY',
      srt_url: 'srt://127.0.0.1:10080?streamid=mode=publish,rid=demo,token=t',
      stream_key: 'mode=publish,rid=demo,token=t',
      short_stream_key: `demo-${'s'.repeat(22)}`,
      expires_at: '2026-03-01T14:00:00.000Z',
      playlist_url: 'http://127.0.0.1:8080/video/demo/playlist.m3u8',
      master_url: 'http://127.0.0.1:8080/video/demo/master.m3u8',
      watch_url: 'http://127.0.0.1:8080/watch/demo',
    },
  })
  t.strictSame(app.service.started, [
    { streamId: 'demo', webhookUrls: ['https://example.com/hook?x=1', 'http://127.0.0.1:9000/'] },
  ])
})

t.test('start-stream without webhook_urls keeps the previous ones', async (t) => {
  const app = await startApp(t)
  t.equal((await signedCall(app, 'POST', '/api/start-stream', BODY)).status, 200)
  t.strictSame(app.service.started, [{ streamId: 'demo' }])
})

t.test('kick disconnects the encoder, and answers with the record', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  const reply = await signedCall(app, 'POST', '/api/kick', BODY)
  t.match(json(reply), { success: true, data: { stream_id: 'demo', publisher: null } })
  await signedCall(app, 'POST', '/api/kick', { stream_id: 'demo', ban_sec: 86_400 })
  t.strictSame(app.service.kicked, [
    { streamId: 'demo', banSec: 0 },
    { streamId: 'demo', banSec: 86_400 },
  ])
  for (const ban_sec of [-1, 86_401, '5', null]) {
    const refused = await signedCall(app, 'POST', '/api/kick', { stream_id: 'demo', ban_sec })
    t.match(outcome(refused), refusal(400, 'BODY_INVALID', 'ban_sec must be 0 to 86400 seconds'))
  }
})

t.test('revoke-key revokes one key, and answers with the record', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  const body = { stream_id: 'demo', key_id: '1772366400-7200-backup' }
  const reply = await signedCall(app, 'POST', '/api/revoke-key', body)
  t.match(json(reply), { success: true, data: { stream_id: 'demo' } })
  t.strictSame(app.service.revoked, [{ streamId: 'demo', keyId: body.key_id }])
  for (const key_id of [undefined, 7, '1772366400-7200']) {
    const refused = await signedCall(app, 'POST', '/api/revoke-key', { ...body, key_id })
    t.match(outcome(refused), refusal(400, 'BODY_INVALID'))
  }
})

t.test('streams answers with a page of records', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  const reply = await signedCall(app, 'POST', '/api/streams', {})
  t.equal(reply.status, 200)
  t.match(json(reply), {
    success: true,
    data: { streams: [{ stream_id: 'demo', live_since: null, publisher: null }], next: 'z' },
  })
  const request = { status: 'READY', limit: 5, after: 'a' }
  await signedCall(app, 'POST', '/api/streams', { ...request, issued_at: 1 })
  t.strictSame(app.service.listed, [{}, request])
  const refused = { status: ['ready', 1], limit: [0, 101, 1.5], after: [1, 'x'.repeat(129)] }
  for (const [field, values] of Object.entries(refused)) {
    for (const value of values) {
      const answer = await signedCall(app, 'POST', '/api/streams', { [field]: value })
      t.match(outcome(answer), refusal(400, 'BODY_INVALID', new RegExp(`^${field} must be `)))
    }
  }
  const unsigned = await call(app, 'POST', '/api/streams', { headers: JSON_TYPE, body: '{}' })
  t.match(outcome(unsigned), refusal(400, 'SIGNATURE_MISSING'))
})

t.test('status is a GET with a signed body', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  const ready = await signedCall(app, 'GET', '/api/status', BODY)
  t.match(json(ready), {
    success: true,
    data: { stream_id: 'demo', status: 'READY', live: false, live_since: null, publisher: null },
  })

  Object.assign(app.service.streams.get('demo')!, { status: 'STREAMING', live: true })
  const streaming = await signedCall(app, 'GET', '/api/status', BODY)
  t.equal(streaming.status, 200)
  t.match(json(streaming), {
    data: {
      status: 'STREAMING',
      live: true,
      started_at: '2026-03-01T12:00:00.000Z',
      live_since: '2026-03-01T12:01:00.000Z',
      publisher: { remote: '127.0.0.1:50000', rtt_ms: 1.5, bitrate_bps: 5e6, packets_lost: 2 },
      tracks: [{ pid: 256, kind: 'video', codec: 'h264', codec_string: 'avc1.64001f' }],
      warnings: [{ code: 'NO_PAT', message: 'no PAT for 5 s' }],
      playlist_url: 'http://127.0.0.1:8080/video/demo/playlist.m3u8',
      master_url: 'http://127.0.0.1:8080/video/demo/master.m3u8',
    },
  })
})

t.test('docs/api-reference.md describes each field of publisher', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  Object.assign(app.service.streams.get('demo')!, { status: 'STREAMING', live: true })
  const { data } = json(await signedCall(app, 'GET', '/api/status', BODY)) as {
    data: { publisher: object }
  }
  const docs = await readFile(new URL('../../docs/api-reference.md', import.meta.url), 'utf8')
  const section = docs.slice(
    docs.indexOf("## The encoder's connection"),
    docs.indexOf('## Refusals'),
  )
  t.strictSame(
    Array.from(section.matchAll(/^\| `(\w+)`/gm), ([, field]) => field),
    // An encoder that bonds no lines has none.
    [...Object.keys(data.publisher), 'lines'],
  )
})

t.test('status is also a POST, for clients that send no body with GET', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  const reply = await fetch(`${app.url}/api/status`, {
    method: 'POST',
    headers: { ...JSON_TYPE, 'lt-signature': sign(Buffer.from(BODY), SECRET) },
    body: BODY,
  })
  t.equal(reply.status, 200)
  t.same(await reply.json(), json(await signedCall(app, 'GET', '/api/status', BODY)))
})

t.test('status accepts a chunked body', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  const reply = await signedCall(app, 'GET', '/api/status', BODY, {
    'transfer-encoding': 'chunked',
  })
  t.equal(reply.status, 200)
})

t.test('stop-stream answers with the final record, also when it is repeated', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  for (const _ of [1, 2]) {
    const reply = await signedCall(app, 'POST', '/api/stop-stream', BODY)
    t.equal(reply.status, 200)
    t.match(json(reply), { success: true, data: { stream_id: 'demo', status: 'STOPPED' } })
  }
})

t.test('accepts stream ids of 1 to 128 characters', async (t) => {
  const app = await startApp(t)
  for (const id of ['a', '~', 'A-z_0.9', '-', 'a.', 'x'.repeat(128)]) {
    const reply = await signedCall(app, 'POST', '/api/start-stream', { stream_id: id })
    t.equal(reply.status, 200, id)
  }
})

t.test('takes unknown fields of any name', async (t) => {
  const app = await startApp(t)
  const body = '{"stream_id":"demo","title":1,"__proto__":{"x":1},"constructor":{"prototype":{}}}'
  t.equal((await signedCall(app, 'POST', '/api/start-stream', body)).status, 200)
  t.strictSame(app.service.started, [{ streamId: 'demo' }])
})

t.test('names unknown fields in `warnings`, with the field that was meant', async (t) => {
  const app = await startApp(t)
  const warningsOf = async (name: string, body: object) =>
    json(await signedCall(app, 'POST', `/api/${name}`, { stream_id: 'demo', ...body }))['warnings']
  t.equal(await warningsOf('start-stream', { webhook_urls: [], issued_at: 1 }), undefined)
  const meant = {
    ...{ webhook_url: 'webhook_urls', webhookUrls: 'webhook_urls', latency: 'latency_ms' },
    ...{ playback_tokn: 'playback_token', 'segment-sec': 'segment_sec', bakcup: 'backup' },
    push: 'push_urls',
  }
  for (const [field, name] of Object.entries(meant)) {
    t.strictSame(await warningsOf('start-stream', { [field]: 's3cret' }), [
      `${field} is no field of start-stream, and has no effect. Did you mean ${name}?`,
    ])
  }
  t.strictSame(
    await warningsOf('status', { title: 1, streamId: 'demo' }),
    ['title', 'streamId'].map((field) => `${field} is no field of status, and has no effect.`),
    'no advice to give a field that is given',
  )
  const many = Array.from({ length: 1000 }, (_, index) => [`field-${index}`, 1] as const)
  const names = Object.fromEntries([['x'.repeat(1000), 1] as const, ...many])
  const warnings = (await warningsOf('status', names)) as string[]
  t.equal(warnings.length, 8)
  t.match(warnings[0], /^x{60} is no field/)
  const [long] = (await warningsOf('start-stream', { [`${'_'.repeat(60)}bakcup`]: 1 })) as string[]
  t.equal(
    long,
    `${'_'.repeat(60)} is no field of start-stream, and has no effect.`,
    'only the start of a long name is compared',
  )
  const halves = `${'x'.repeat(59)}😀`
  t.match(await warningsOf('status', { [halves]: 1 }), [/^x{59}\ufffd is no field/])
})

t.test('a refusal for its signature says how to sign', async (t) => {
  const app = await startApp(t)
  const signature = { 'lt-signature': '0'.repeat(64) }
  for (const headers of [{}, signature]) {
    const { hint } = json(await call(app, 'POST', '/api/start-stream', { headers }))
    t.match(hint, 'LT-SIGNATURE')
    t.match(hint, 'hex(hmac_sha256(body, HMAC_SECRET))')
  }
})

for (const [method, path] of ROUTES) {
  t.test(`${method} ${path} requires a signature over the exact body`, async (t) => {
    const app = await startApp(t)
    await signedCall(app, 'POST', '/api/start-stream', BODY)

    const unsigned = await call(app, method, path, { headers: JSON_TYPE, body: BODY })
    t.match(
      outcome(unsigned),
      refusal(400, 'SIGNATURE_MISSING', 'Missing Header for Verification!'),
      'rule 3',
    )

    const right = sign(Buffer.from(BODY), SECRET)
    const wrong: Record<string, string | string[]> = {
      'of another body': sign(Buffer.from('{"stream_id": "demo"}'), SECRET),
      'with another secret': sign(Buffer.from(BODY), 'another'),
      'cut off': right.slice(0, 40),
      'not hexadecimal': right.replace(/./, 'x'),
      empty: '',
      'sent twice': [right, right],
    }
    for (const [what, signature] of Object.entries(wrong)) {
      const reply = await signedCall(app, method, path, BODY, { 'lt-signature': signature })
      t.match(outcome(reply), refusal(403, 'SIGNATURE_INVALID', 'Invalid Request'), what)
    }

    const upper = { 'lt-signature': right.toUpperCase() }
    t.equal((await signedCall(app, method, path, BODY, upper)).status, 200, 'upper-case digits')
  })

  t.test(
    `${method} ${path} checks signature, content type, body and stream in this order`,
    async (t) => {
      const app = await startApp(t)
      const wrong = { 'lt-signature': '0'.repeat(64) }

      const nothing = await call(app, method, path)
      t.match(outcome(nothing), refusal(400, 'SIGNATURE_MISSING'), 'nothing at all')
      const empty = await call(app, method, path, { headers: wrong })
      t.match(outcome(empty), refusal(403, 'SIGNATURE_INVALID'), 'no body, wrong signature')
      const typeless = await signedCall(app, method, path, '', { 'content-type': [] })
      t.match(outcome(typeless), refusal(415, 'CONTENT_TYPE_UNSUPPORTED'), 'no body, no type')
      t.match(
        outcome(await signedCall(app, method, path, '')),
        refusal(400, 'BODY_INVALID'),
        'no body',
      )

      for (const type of [
        'text/plain',
        'application/jsonp',
        'application / json',
        ';',
        'text/json',
      ]) {
        const headers = { 'content-type': type }
        const unsigned = await signedCall(app, method, path, 'x', { ...headers, ...wrong })
        t.match(outcome(unsigned), refusal(403, 'SIGNATURE_INVALID'), `${type}, wrong signature`)
        const signed = await signedCall(app, method, path, 'x', headers)
        t.match(outcome(signed), refusal(415, 'CONTENT_TYPE_UNSUPPORTED'), type)
      }

      const unknown = path === '/api/start-stream' ? 200 : 404
      for (const type of [
        'application/json; charset=utf-8',
        'Application/JSON',
        'application/json;',
      ]) {
        const reply = await signedCall(app, method, path, BODY, { 'content-type': type })
        t.equal(reply.status, unknown, type)
      }
    },
  )

  t.test(`${method} ${path} names the field that does not fit`, async (t) => {
    const app = await startApp(t)
    const bodies: [string, RegExp][] = [
      ['', /not valid JSON/],
      ['{"stream_id":"demo"', /not valid JSON/],
      ['stream_id=demo', /not valid JSON/],
      ['null', /must be a JSON object/],
      ['[]', /must be a JSON object$/],
      ['"demo"', /must be a JSON object/],
      ['7', /must be a JSON object/],
      ['{}', /must be a JSON object with stream_id/],
      ['{"streamId":"demo"}', /must be a JSON object with stream_id/],
      ...[
        7,
        null,
        true,
        ['demo'],
        {},
        '',
        '.',
        '..',
        '.demo',
        '../x',
        'a/b',
        'a b',
        'a\0',
        'a,b',
        'ä',
        'a\n',
        'x'.repeat(129),
      ].map((id): [string, RegExp] => [
        JSON.stringify({ stream_id: id }),
        /^stream_id must be 1 to 128 characters of A-Z a-z 0-9 \. _ ~ -/,
      ]),
    ]
    for (const [body, error] of bodies) {
      const reply = await signedCall(app, method, path, body)
      t.match(outcome(reply), refusal(400, 'BODY_INVALID', error), body)
    }
    const notUtf8 = await signedCall(app, method, path, Buffer.from('7b22ff227d', 'hex'))
    t.match(outcome(notUtf8), refusal(400, 'BODY_INVALID'))
  })

  t.test(`${method} ${path} accepts a body of up to 64 KiB`, async (t) => {
    const app = await startApp(t)
    await signedCall(app, 'POST', '/api/start-stream', BODY)
    const padded = (size: number) => BODY.padEnd(size, ' ')
    t.equal((await signedCall(app, method, path, padded(65_536))).status, 200)
    const chunked = { 'transfer-encoding': 'chunked' }
    for (const headers of [{}, chunked]) {
      const reply = await signedCall(app, method, path, padded(65_537), headers)
      t.match(outcome(reply), refusal(413, 'BODY_TOO_LARGE', /65536 bytes/))
      const huge = await signedCall(app, method, path, padded(5_000_000), headers)
      t.match(outcome(huge), refusal(413, 'BODY_TOO_LARGE'))
    }
  })
}

t.test('rejects unusable webhook_urls', async (t) => {
  const app = await startApp(t)
  const url = 'https://example.com/'
  const lists: unknown[] = [
    url,
    null,
    {},
    [7],
    [null],
    [''],
    ['example.com'],
    ['/hook'],
    ['ftp://example.com/'],
    ['javascript:alert(1)'],
    ['http://'],
    ['https://user:password@example.com/'],
    [url, 'file:///etc/passwd'],
    [url.padEnd(2049, 'x')],
    Array.from({ length: 17 }, () => url),
  ]
  for (const urls of lists) {
    const body = { stream_id: 'demo', webhook_urls: urls }
    const reply = await signedCall(app, 'POST', '/api/start-stream', body)
    const expected = refusal(400, 'BODY_INVALID', /^webhook_urls must be at most 16 http or https/)
    t.match(outcome(reply), expected, JSON.stringify(urls).slice(0, 60))
  }
  t.strictSame(app.service.started, [])

  for (const urls of [[], [url.padEnd(2048, 'x')], Array.from({ length: 16 }, () => url)]) {
    const body = { stream_id: 'demo', webhook_urls: urls }
    t.equal((await signedCall(app, 'POST', '/api/start-stream', body)).status, 200)
  }
})

t.test('answers stop, kick and status of an unknown stream with 404', async (t) => {
  const app = await startApp(t)
  const body = { stream_id: 'x'.repeat(128) }
  for (const [method, path] of ROUTES.slice(1)) {
    const reply = await signedCall(app, method, path, body)
    t.match(outcome(reply), refusal(404, 'STREAM_NOT_FOUND', 'no such stream'))
  }
})

t.test('/api/nodes is empty without a cluster', async (t) => {
  const app = await startApp(t)
  const reply = await signedCall(app, 'POST', '/api/nodes', {})
  t.match(outcome(reply), { status: 200 })
  t.strictSame(json(reply), { success: true, data: { nodes: [] } })
})

t.test('answers other methods and paths with 404 in the same envelope', async (t) => {
  const app = await startApp(t)
  const requests = [
    ['GET', '/api/start-stream'],
    ['PUT', '/api/start-stream'],
    ['DELETE', '/api/stop-stream'],
    ['PUT', '/api/status'],
    ['GET', '/api/kick'],
    ['GET', '/api/streams'],
    ['GET', '/api'],
    ['GET', '/api/start-stream/'],
    ['POST', '/'],
    ['GET', '/api/%2e%2e/status'],
    ['PROPFIND', '/api/status'],
  ] as const
  for (const [method, path] of requests) {
    const reply = await signedCall(app, method, path, BODY)
    t.match(outcome(reply), refusal(404, 'ROUTE_NOT_FOUND'), `${method} ${path}`)
  }
  const head = await signedCall(app, 'HEAD', '/api/status', BODY)
  t.equal(head.status, 404)
  t.equal(head.body.length, 0)
})

t.test('answers malformed HTTP in the same envelope', async (t) => {
  const app = await startApp(t)
  const answers: [string, RegExp][] = [
    ['NONSENSE\r\n\r\n', /^HTTP\/1\.1 400 Bad Request\r\n/],
    ['GET /api/status HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n', /^HTTP\/1\.1 400 /],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    ['GET /video/%zz/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 400 /],
    [
      `GET /video/${'x'.repeat(600)}/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      /^HTTP\/1\.1 400 /,
    ],
  ]
  for (const [text, status] of answers) {
    const answer = await speak(app, text)
    t.match(answer, status)
    t.match(
      answer,
      /"success":false,"error":"the HTTP request is malformed","code":"REQUEST_MALFORMED"\}$/,
    )
  }
  t.strictSame(app.log, [], 'none of it is our fault')
})

t.test('logs an internal error, and reveals nothing of it in the reply', async (t) => {
  class Broken extends MemoryService {
    override status(): never {
      throw new TypeError('secret detail')
    }
  }
  const app = await startApp(t, new Broken())
  const reply = await signedCall(app, 'GET', '/api/status', BODY)
  t.match(outcome(reply), refusal(500, 'INTERNAL', 'internal error'))
  t.notMatch(reply.body.toString(), /secret detail|TypeError/)
  t.equal(app.log.length, 1)
  t.match(JSON.parse(app.log[0]!), {
    level: 50,
    err: { message: 'secret detail' },
    route: '/api/status',
  })
})

t.test('answers an error without HTTP status as an internal one', async (t) => {
  class Misplaced extends MemoryService {
    override status(): never {
      throw new MillraceError('STREAM_KEY_EXPIRED')
    }
  }
  const app = await startApp(t, new Misplaced())
  const reply = await signedCall(app, 'GET', '/api/status', BODY)
  t.match(outcome(reply), refusal(500, 'INTERNAL', 'internal error'))
  t.match(JSON.parse(app.log[0]!), { err: { message: 'Token expired' } })
})

t.test('logs neither requests, keys nor signatures', async (t) => {
  const app = await startApp(t)
  await signedCall(app, 'POST', '/api/start-stream', BODY)
  await signedCall(app, 'GET', '/api/status', 'x')
  await call(app, 'GET', '/nowhere')
  t.strictSame(app.log, [])
})

t.test('survives a client that disconnects in the middle of its body', async (t) => {
  const app = await startApp(t)
  const head =
    'POST /api/start-stream HTTP/1.1\r\nHost: x\r\nLT-SIGNATURE: 00\r\nContent-Length: 99\r\n\r\n{'
  await new Promise<void>((resolve) => {
    const socket = connect(app.port, '127.0.0.1', () => socket.end(head))
    socket.on('close', () => resolve())
    socket.resume()
  })
  t.equal((await signedCall(app, 'POST', '/api/start-stream', BODY)).status, 200)
  t.strictSame(app.log, [])
})

t.test('answers any signed body with 200, 400 or 404 in JSON', async (t) => {
  const app = await startApp(t)
  const values = fc.oneof(
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc
      .record({ stream_id: fc.jsonValue(), webhook_urls: fc.jsonValue() })
      .map((v) => JSON.stringify(v)),
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ROUTES), values, async ([method, path], body) => {
      const reply = await signedCall(app, method, path, body)
      json(reply)
      return [200, 400, 404].includes(reply.status)
    }),
    { numRuns: 150 },
  )
  t.strictSame(app.log, [])
})

t.test('the error of a body names the fields that the call needs', async (t) => {
  const app = await startApp(t)
  for (const [name, fields] of [
    ['switch-source', 'stream_id, source'],
    ['clip', 'stream_id, from, to'],
  ]) {
    const reply = await signedCall(app, 'POST', `/api/${name}`, BODY)
    const error = `the request body must be a JSON object with ${fields}`
    t.match(outcome(reply), refusal(400, 'BODY_INVALID', error))
  }
})
