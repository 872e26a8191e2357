import { connect } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import Fastify from 'fastify'
import t from 'tap'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { chooseCoding, codingOf } from '../../src/playback/content-coding.ts'
import { representationOf } from '../../src/playback/representation.ts'
import { playback } from '../../src/playback/fastify-plugin.ts'
import type { StreamFile } from '../../src/playback/playback-source.ts'
import { call, json, MemoryService, MemoryStream, speak, startApp } from '../http/memory-service.ts'

const PLAYLIST = Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:5\n')
const SEGMENT = Buffer.from(Uint8Array.from({ length: 188 * 1000 }, (_, index) => index % 251))
/** Chunks of different sizes, as the cache has them. */
const CHUNKS = [0, 188, 100_016, 100_204].map((start, index, starts) =>
  SEGMENT.subarray(start, starts[index + 1]),
)

const FILES: Record<string, StreamFile> = {
  'playlist.m3u8': createStreamFile('media-playlist', {
    chunks: [PLAYLIST],
    version: 'a1-7',
    targetDurationSec: 5,
  }),
  'master.m3u8': createStreamFile('multivariant-playlist', {
    chunks: [PLAYLIST],
    version: 'a1-m1',
    targetDurationSec: 5,
  }),
  'a1-7.ts': createStreamFile('segment', { chunks: CHUNKS, version: 'a1-7', targetDurationSec: 5 }),
}

const bytesOf = ({ chunks }: StreamFile) => Buffer.concat(chunks)

/** A service with the stream `demo` that has a playlist and a segment. */
function playing(): MemoryService {
  const service = new MemoryService()
  const stream = new MemoryStream()
  stream.status = 'STREAMING'
  stream.live = true
  for (const [name, file] of Object.entries(FILES)) stream.files.set(name, file)
  service.streams.set('demo', stream)
  return service
}

const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Age, Content-Length, Content-Range, Date, ETag',
}

t.test('sends playlists and segments with their type, lifetime, ETag and CORS', async (t) => {
  const app = await startApp(t, playing())
  const expected = {
    'playlist.m3u8': ['application/vnd.apple.mpegurl', 'public, max-age=2', '"a1-7"'],
    'master.m3u8': ['application/vnd.apple.mpegurl', 'public, max-age=5', '"a1-m1"'],
    'a1-7.ts': ['video/mp2t', 'public, max-age=30, immutable', '"a1-7"'],
  }
  for (const [name, [type, caching, etag]] of Object.entries(expected)) {
    const reply = await call(app, 'GET', `/video/demo/${name}`)
    t.equal(reply.status, 200)
    t.match(reply.headers, {
      'content-type': type,
      'cache-control': caching,
      etag,
      'content-length': String(bytesOf(FILES[name]!).length),
      date: /GMT$/,
      ...CORS,
    })
    t.ok(reply.body.equals(bytesOf(FILES[name]!)), name)
  }
})

t.test('sends CMAF media as it is, in whole and in ranges, with the type it has', async (t) => {
  const service = playing()
  const media = { chunks: CHUNKS, version: 'a1-v1-7', targetDurationSec: 5 }
  const [video, audio] = ['video/mp4', 'audio/mp4'].map((contentType) => ({
    ...createStreamFile('segment', media),
    contentType,
  }))
  const { files } = service.streams.get('demo')!
  files.set('a1-v1-7.m4s', video!)
  files.set('a1-v1-0f1e2d3c4b5a.mp4', video!)
  files.set('a1-a1-p7.m4s', audio!)
  files.set('mutable', { ...audio!, immutable: false })
  const app = await startApp(t, service)
  for (const [name, { contentType }] of [...files].slice(-4)) {
    const headers = { 'accept-encoding': 'gzip, br' }
    const whole = await call(app, 'GET', `/video/demo/${name}`, { headers })
    t.match(whole, { status: 200, headers: { 'content-type': contentType } }, name)
    t.ok(whole.body.equals(SEGMENT), name)
    t.notOk('content-encoding' in whole.headers || 'vary' in whole.headers, name)
  }
  const headers = { range: 'bytes=0-187' }
  const range = await call(app, 'GET', '/video/demo/a1-a1-p7.m4s', { headers })
  t.match(range, { status: 206, headers: { 'content-type': 'audio/mp4' } })
  t.equal(range.body.length, 188)
})

t.test('serves the longest stream id', async (t) => {
  const service = playing()
  const id = 'x'.repeat(128)
  service.streams.set(id, service.streams.get('demo')!)
  const app = await startApp(t, service)
  t.equal((await call(app, 'GET', `/video/${id}/playlist.m3u8`)).status, 200)
})

t.test('answers HEAD with the headers of GET and no body (RFC 9110 section 9.3.2)', async (t) => {
  const app = await startApp(t, playing())
  for (const name of Object.keys(FILES)) {
    const path = `/video/demo/${name}`
    const [get, head] = [await call(app, 'GET', path), await call(app, 'HEAD', path)]
    t.equal(head.status, 200)
    t.equal(head.body.length, 0)
    t.strictSame({ ...head.headers, date: '' }, { ...get.headers, date: '' })
  }
  const ranged = await call(app, 'HEAD', '/video/demo/a1-7.ts', { headers: { range: 'bytes=0-1' } })
  t.equal(ranged.status, 200, 'Range counts for GET alone (section 14.2)')
  const unknown = await call(app, 'HEAD', '/video/other/playlist.m3u8')
  t.equal(unknown.status, 404)
  t.equal(unknown.body.length, 0)
})

t.test(
  'answers a current ETag with 304, and an older one in full (RFC 9110 section 13.1.2)',
  async (t) => {
    const app = await startApp(t, playing())
    const ask = (file: string, etag: string) =>
      call(app, 'GET', `/video/demo/${file}`, { headers: { 'if-none-match': etag } })
    for (const etag of ['"a1-7"', 'W/"a1-7"', '"x", "a1-7"', '*']) {
      for (const file of ['playlist.m3u8', 'a1-7.ts']) {
        const reply = await ask(file, etag)
        t.equal(reply.status, 304, `${file} ${etag}`)
        t.equal(reply.body.length, 0)
        t.match(reply.headers, { etag: '"a1-7"', 'cache-control': /^public/, ...CORS })
        t.notOk(reply.headers['content-type'])
      }
    }
    for (const etag of ['"a1-6"', 'a1-7', '', '""', '"a1-7']) {
      t.equal((await ask('playlist.m3u8', etag)).status, 200, etag)
    }
  },
)

t.test('serves a changed playlist as a new version at once', async (t) => {
  const service = playing()
  const app = await startApp(t, service)
  const bytes = Buffer.from('#EXTM3U\n#EXT-X-ENDLIST\n')
  const file = createStreamFile('media-playlist', {
    chunks: [bytes],
    version: 'a1-8',
    targetDurationSec: 5,
  })
  service.streams.get('demo')!.files.set('playlist.m3u8', file)
  const reply = await call(app, 'GET', '/video/demo/playlist.m3u8', {
    headers: { 'if-none-match': '"a1-7"' },
  })
  t.equal(reply.status, 200)
  t.ok(reply.body.equals(bytes))
})

t.test('answers one range of a segment with 206 (RFC 9110 section 14.2)', async (t) => {
  const app = await startApp(t, playing())
  const size = SEGMENT.length
  const ask = (range: string, headers = {}) =>
    call(app, 'GET', '/video/demo/a1-7.ts', { headers: { range, ...headers } })
  const ranges: [string, number, number][] = [
    ['bytes=0-0', 0, 0],
    ['bytes=0-187', 0, 187],
    ['bytes=188-', 188, size - 1],
    ['bytes=-188', size - 188, size - 1],
    [`bytes=0-${size * 2}`, 0, size - 1],
    [`bytes=-${size * 2}`, 0, size - 1],
    [`bytes=${size - 1}-${size - 1}`, size - 1, size - 1],
    ['BYTES=5-6', 5, 6],
  ]
  for (const [range, first, last] of ranges) {
    const reply = await ask(range)
    t.equal(reply.status, 206, range)
    t.equal(reply.headers['content-range'], `bytes ${first}-${last}/${size}`)
    t.match(reply.headers, {
      'content-type': 'video/mp2t',
      etag: '"a1-7"',
      'accept-ranges': 'bytes',
    })
    t.ok(reply.body.equals(SEGMENT.subarray(first, last + 1)))
  }
  for (const range of [
    `bytes=${size}-`,
    `bytes=${size}-${size + 5}`,
    'bytes=-0',
    `bytes=${'9'.repeat(400)}-`,
  ]) {
    const reply = await ask(range)
    t.equal(reply.status, 416, range.slice(0, 30))
    t.equal(reply.headers['content-range'], `bytes */${size}`)
    t.match(json(reply), { success: false, code: 'RANGE_NOT_SATISFIABLE' })
  }
  for (const range of [
    'bytes=0-1,4-5',
    'bytes=5-4',
    'bytes=-',
    'bytes=a-b',
    'items=0-1',
    'bytes',
    '',
  ]) {
    const reply = await ask(range)
    t.equal(reply.status, 200, range)
    t.equal(reply.body.length, size)
  }
  t.equal((await ask('bytes=0-1', { 'if-range': '"a1-7"' })).status, 206)
  t.equal((await ask('bytes=0-1', { 'if-range': '"a1-6"' })).status, 200)
  t.equal((await ask('bytes=0-1', { 'if-range': 'W/"a1-7"' })).status, 200, 'compared strongly')
})

t.test('ignores ranges of playlists', async (t) => {
  const app = await startApp(t, playing())
  const reply = await call(app, 'GET', '/video/demo/playlist.m3u8', {
    headers: { range: 'bytes=0-3' },
  })
  t.equal(reply.status, 200)
  t.ok(reply.body.equals(PLAYLIST))
})

t.test(
  'sends Retry-After with 404 only before the first playlist of a running stream',
  async (t) => {
    const service = playing()
    const ready = new MemoryStream()
    service.streams.set('ready', ready)
    const app = await startApp(t, service)
    const early = await call(app, 'GET', '/video/ready/playlist.m3u8')
    t.equal(early.status, 404)
    t.match(early.headers, { 'retry-after': '1', 'cache-control': 'public, max-age=1', ...CORS })
    t.match(json(early), { code: 'FILE_NOT_FOUND', error: 'the stream has no playlist yet' })

    ready.status = 'STOPPED'
    const stopped = await call(app, 'GET', '/video/ready/playlist.m3u8')
    t.equal(stopped.status, 404)
    t.notOk(stopped.headers['retry-after'], 'it will never have one')

    const absent = await call(app, 'GET', '/video/demo/a1-1.ts')
    t.equal(absent.status, 404)
    t.notOk(absent.headers['retry-after'])
    t.match(absent.headers, { 'cache-control': 'public, max-age=1', ...CORS })
    t.strictSame(json(absent), { success: false, error: 'no such file', code: 'FILE_NOT_FOUND' })

    const unknown = await call(app, 'GET', '/video/other/playlist.m3u8')
    t.equal(unknown.status, 404)
    t.match(unknown.headers, { 'content-type': /^application\/json/, ...CORS })
    t.strictSame(json(unknown), {
      success: false,
      error: 'no such stream',
      code: 'STREAM_NOT_FOUND',
    })
  },
)

t.test('refuses path traversal without a query of streams', async (t) => {
  const app = await startApp(t, playing())
  const paths = [
    '/video/../api/status',
    '/video/demo/../../etc/passwd',
    '/video/demo/..%2f..%2fetc%2fpasswd',
    '/video/demo/%2e%2e',
    '/video/demo/..',
    '/video/demo/.',
    '/video/%2e%2e/playlist.m3u8',
    '/video/demo%2fplaylist.m3u8',
    '/video/demo%2f/playlist.m3u8',
    '/video/demo/%2fplaylist.m3u8',
    '/video/demo/playlist.m3u8%00.ts',
    '/video/demo%00/playlist.m3u8',
    '/video/demo/playlist.m3u8/',
    '/video/demo//playlist.m3u8',
    '/video//playlist.m3u8',
    '/video/demo/',
    '/video/demo',
    '/video/',
    '/video/demo/a\\b.ts',
    '/video/demo/%ff.ts',
    '/video/demo/__proto__',
    '/video/__proto__/playlist.m3u8',
    `/video/${'x'.repeat(129)}/playlist.m3u8`,
    `/video/${'x'.repeat(500)}/playlist.m3u8`,
    `/video/${'x'.repeat(5000)}/playlist.m3u8`,
    `/video/demo/${'x'.repeat(5000)}.ts`,
  ]
  for (const path of paths) {
    const reply = await call(app, 'GET', path)
    t.ok([400, 404].includes(reply.status), `${reply.status} ${path.slice(0, 60)}`)
    t.match(json(reply), { success: false, error: /./, code: /_/ })
  }
  t.notOk(
    app.service.lookUps.some((id) => /[^\w-]/.test(id)),
    'no odd id reached the service',
  )
  t.strictSame(app.log, [])
})

t.test('ignores query and unrelated headers', async (t) => {
  const app = await startApp(t, playing())
  const path = '/video/demo/playlist.m3u8'
  t.equal((await call(app, 'GET', `${path}?_=1&x=%zz`)).status, 200)
  for (const type of ['application/json', 'text/plain']) {
    const headers = { 'content-type': type }
    t.equal((await call(app, 'GET', path, { headers })).status, 200, type)
    t.equal((await call(app, 'GET', path, { headers, body: '{' })).status, 200, `${type}, a body`)
  }
})

t.test('answers a preflight of any origin (Fetch standard, CORS-preflight fetch)', async (t) => {
  const app = await startApp(t, playing())
  const reply = await call(app, 'OPTIONS', '/video/demo/a1-7.ts', {
    headers: {
      origin: 'https://example.com',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'range',
    },
  })
  t.equal(reply.status, 204)
  t.match(reply.headers, {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD',
    'access-control-allow-headers': /Range/,
  })
})

t.test(
  'a preflight allows any request header, Authorization and those of CMCD by name (Fetch standard, CORS-preflight fetch)',
  async (t) => {
    const app = await startApp(t, playing())
    const wanted = ['CMCD-Object', 'CMCD-Session', 'Authorization', 'Range', 'X-Anything']
    const reply = await call(app, 'OPTIONS', '/video/demo/playlist.m3u8', {
      headers: {
        origin: 'https://example.com',
        'access-control-request-method': 'GET',
        'access-control-request-headers': wanted.join(',').toLowerCase(),
      },
    })
    t.equal(reply.status, 204)
    const allowed = String(reply.headers['access-control-allow-headers']).split(', ')
    t.ok(allowed.includes('*'), 'any header')
    t.ok(allowed.includes('Authorization'), 'not covered by the wildcard')
    for (const name of ['CMCD-Object', 'CMCD-Request', 'CMCD-Session', 'CMCD-Status', 'Range']) {
      t.ok(allowed.includes(name), `${name}, for browsers without the wildcard`)
    }
  },
)

const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync, none: (bytes: Buffer) => bytes }

t.test(
  'compresses playlists for clients that accept a coding (RFC 8216bis 6.2.1, RFC 9110 section 12.5.3)',
  async (t) => {
    const app = await startApp(t, playing())
    const cases: [header: string | undefined, coding: keyof typeof DECODERS][] = [
      [undefined, 'none'],
      ['', 'none'],
      ['identity', 'none'],
      ['deflate, zstd', 'none'],
      ['br, deflate', 'br'],
      ['gzip', 'gzip'],
      ['GZIP', 'gzip'],
      ['x-gzip', 'gzip'],
      ['gzip, deflate', 'gzip'],
      ['gzip, deflate, br, zstd', 'br'],
      ['br;q=1.0, gzip;q=0.8, *;q=0.1', 'br'],
      ['br;q=0.8, gzip;q=1.0', 'gzip'],
      ['br;q=0, gzip', 'gzip'],
      ['br;q=0.5, gzip;q=0', 'br'],
      ['br;q=0.5, identity', 'none'],
      ['BR;q=0.001', 'br'],
      ['gzip;q=0', 'none'],
      ['gzip;q=0.000', 'none'],
      ['gzip;q=0, *', 'none'],
      ['*', 'gzip'],
      ['*;q=0', 'none'],
      ['*;q=0, gzip', 'gzip'],
      ['*;q=0, br', 'br'],
      ['gzip;q=0.5, identity', 'none'],
      ['gzip;q=0.5, identity;q=0.5', 'gzip'],
      ['gzip;q=0.001, identity;q=0', 'gzip'],
      ['gzip;q=0.5, *', 'none'],
      ['identity;q=0', 'none'],
      ['gzip;q=2', 'none'],
      ['gzip;q=', 'none'],
      ['gzip ; Q=0.9', 'gzip'],
      ['notgzip, gzip2, brr', 'none'],
    ]
    for (const [header, coding] of cases) {
      const headers = header === undefined ? {} : { 'accept-encoding': header }
      for (const name of ['playlist.m3u8', 'master.m3u8']) {
        const reply = await call(app, 'GET', `/video/demo/${name}`, { headers })
        const title = `${name}, Accept-Encoding: ${header}`
        t.equal(reply.status, 200, title)
        t.equal(reply.headers['content-encoding'] ?? 'none', coding, title)
        t.equal(reply.headers['vary'], 'Accept-Encoding', title)
        t.equal(reply.headers['content-length'], `${reply.body.length}`, title)
        t.ok(DECODERS[coding](reply.body).equals(PLAYLIST), title)
        const head = await call(app, 'HEAD', `/video/demo/${name}`, { headers })
        t.strictSame({ ...head.headers, date: '' }, { ...reply.headers, date: '' }, `HEAD ${title}`)
      }
    }
    const headers = { 'accept-encoding': 'gzip, br' }
    const segment = await call(app, 'GET', '/video/demo/a1-7.ts', { headers })
    t.notOk(segment.headers['content-encoding'], 'no segment is compressed')
    t.notOk(segment.headers['vary'])
  },
)

t.test(
  'each coding of a playlist has its own strong ETag (RFC 9110 sections 8.8.3.3 and 13.1.2)',
  async (t) => {
    const app = await startApp(t, playing())
    const path = '/video/demo/playlist.m3u8'
    const ask = (coding: string, known: string) =>
      call(app, 'GET', path, { headers: { 'accept-encoding': coding, 'if-none-match': known } })
    t.equal((await ask('gzip', '"x"')).headers['etag'], '"a1-7-gzip"')
    t.equal((await ask('br', '"x"')).headers['etag'], '"a1-7-br"')
    t.equal((await ask('identity', '"x"')).headers['etag'], '"a1-7"')
    for (const [coding, known] of [
      ['gzip', '"a1-7-gzip"'],
      ['gzip', 'W/"a1-7-gzip"'],
      ['br', '"a1-7-br"'],
      ['identity', '"a1-7"'],
    ] as const) {
      const reply = await ask(coding, known)
      t.equal(reply.status, 304, `${coding} ${known}`)
      t.match(reply.headers, { etag: known.replace('W/', ''), vary: 'Accept-Encoding' })
      t.notOk(reply.headers['content-encoding'])
    }
    t.equal((await ask('gzip', '"a1-7"')).status, 200, 'the other coding')
    t.equal((await ask('identity', '"a1-7-gzip"')).status, 200, 'the other coding')
    t.equal((await ask('br', '"a1-7-gzip"')).status, 200, 'the other coding')
  },
)

t.test('a version of a playlist is compressed once, for all its readers', async (t) => {
  const file = FILES['playlist.m3u8']!
  for (const coding of ['gzip', 'br'] as const) {
    const { chunks } = representationOf(file, coding)
    t.equal(representationOf(file, coding).chunks, chunks)
    t.not(representationOf({ ...file }, coding).chunks, chunks, 'another version')
    t.ok(chunks[0]!.buffer.byteLength <= Buffer.poolSize, 'zlib returns views of 16 KiB')
  }
})

t.test('a large chunk that versions of a playlist share is compressed once', async (t) => {
  const shared = Buffer.from('#EXTINF:2.00000,\n'.repeat(2000))
  const [first, second] = ['#EXTM3U\n#first\n', '#EXTM3U\n#second\n'].map((head, index) =>
    createStreamFile('media-playlist', {
      chunks: [Buffer.from(head), shared, Buffer.from('#EXT-X-ENDLIST\n')],
      version: `${index}`,
      targetDurationSec: 2,
    }),
  )
  const [one, other] = [representationOf(first!, 'gzip'), representationOf(second!, 'gzip')]
  const common = one.chunks.filter((chunk) => other.chunks.includes(chunk))
  t.ok(common.some(({ length }) => length > 100))
  for (const [file, { chunks }] of [
    [first!, one],
    [second!, other],
  ] as const) {
    t.ok(gunzipSync(Buffer.concat(chunks)).equals(Buffer.concat(file.chunks)))
  }
  t.equal(codingOf(first!, 'gzip, br'), 'gzip', 'the coding that is put together')
  t.equal(codingOf(first!, 'br'), undefined)
  t.equal(codingOf(FILES['playlist.m3u8']!, 'gzip, br'), 'br')
  t.equal(codingOf(FILES['a1-7.ts']!, 'gzip, br'), undefined)
})

t.test('chooseCoding accepts any header without throwing', async () => {
  const words = ['gzip', 'br', '*', 'identity', ';', 'q=', '0', '1', '.', ',', ' ', '=']
  const pieces = fc.array(fc.constantFrom(...words))
  const codings = new Set([undefined, 'gzip', 'br'])
  fc.assert(fc.property(pieces, (each) => codings.has(chooseCoding(each.join('')))))
})

t.test('chooseCoding reads headers of up to 1,000 characters', async (t) => {
  t.equal(chooseCoding('gzip'.padEnd(1000, ',')), 'gzip')
  t.equal(chooseCoding('gzip'.padEnd(1001, ',')), undefined)
})

t.test('answers other methods with 404', async (t) => {
  const app = await startApp(t, playing())
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const reply = await call(app, method, '/video/demo/playlist.m3u8', { body: '{}' })
    t.equal(reply.status, 404)
    t.match(json(reply), { code: 'ROUTE_NOT_FOUND' })
  }
})

t.test('sends full, partial, empty and refused replies on one connection', async (t) => {
  const app = await startApp(t, playing())
  const get = (path: string, more = '') =>
    `GET /video/demo/${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
  const answer = await speak(
    app,
    get('playlist.m3u8') +
      get('playlist.m3u8', 'If-None-Match: "a1-7"\r\n') +
      get('a1-7.ts', 'Range: bytes=0-9\r\n') +
      get('gone.ts') +
      get('playlist.m3u8').replace('GET', 'HEAD') +
      get('a1-7.ts', 'Connection: close\r\n'),
  )
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  t.strictSame(statuses, ['200', '304', '206', '404', '200', '200'])
})

t.test('survives a viewer that disconnects in the middle of a segment', async (t) => {
  const service = playing()
  const bytes = Buffer.alloc(32 << 20)
  const file = createStreamFile('segment', {
    chunks: [bytes],
    version: 'big',
    targetDurationSec: 5,
  })
  service.streams.get('demo')!.files.set('big.ts', file)
  const app = await startApp(t, service)
  await new Promise<void>((resolve) => {
    const socket = connect(app.port, '127.0.0.1', () => {
      socket.write('GET /video/demo/big.ts HTTP/1.1\r\nHost: x\r\n\r\n')
    })
    socket.once('data', () => socket.resetAndDestroy())
    socket.on('close', () => resolve())
  })
  t.equal((await call(app, 'GET', '/video/demo/playlist.m3u8')).status, 200)
  t.strictSame(app.log, [])
})

t.test('answers a source that throws with a logged 500 that reveals nothing', async (t) => {
  const service = playing()
  service.findStream = () => {
    throw new Error('secret detail')
  }
  const app = await startApp(t, service)
  const reply = await call(app, 'GET', '/video/demo/playlist.m3u8')
  t.equal(reply.status, 500)
  t.strictSame(json(reply), {
    success: false,
    error: 'internal error: the log of the service has its cause',
    code: 'INTERNAL',
  })
  t.equal(app.log.length, 1)
})

t.test('answers a file with invalid headers with a logged 500', async (t) => {
  const service = playing()
  const file: StreamFile = { ...FILES['playlist.m3u8']!, version: 'a\nb' }
  service.streams.get('demo')!.files.set('playlist.m3u8', file)
  const app = await startApp(t, service)
  const reply = await call(app, 'GET', '/video/demo/playlist.m3u8')
  t.equal(reply.status, 500)
  t.strictSame(json(reply), {
    success: false,
    error: 'internal error: the log of the service has its cause',
    code: 'INTERNAL',
  })
  t.equal(app.log.length, 1)
})

t.test('works in an application with hooks and CORS of its own', async (t) => {
  const app = Fastify()
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('access-control-allow-origin', 'https://example.com')
  })
  app.addHook('preHandler', async (request, reply) => {
    if (request.url.includes('secret')) await reply.code(401).send({ no: true })
  })
  await app.register(playback, { prefix: '/live', source: playing() })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const port = Number(new URL(app.listeningOrigin).port)
  const reply = await call({ port }, 'GET', '/live/demo/playlist.m3u8')
  t.equal(reply.status, 200)
  t.match(reply.headers, { etag: '"a1-7"', ...CORS })
  t.equal((await call({ port }, 'GET', '/live/demo/playlist.m3u8?secret')).status, 401)
  const absent = await call({ port }, 'GET', '/live/other/playlist.m3u8')
  t.match(json(absent), { success: false, code: 'STREAM_NOT_FOUND' })
})

t.test('serves open connections while the server closes', async (t) => {
  const app = await startApp(t, playing())
  const request = 'GET /video/demo/playlist.m3u8 HTTP/1.1\r\nHost: x\r\n\r\n'
  let answer = ''
  await new Promise<void>((resolve) => {
    // Half a request keeps the connection from being idle when the server begins to close.
    const socket = connect(app.port, '127.0.0.1', () =>
      socket.write(request + request.slice(0, 20)),
    )
    socket.once('data', () => {
      void app.close()
      socket.write(request.slice(20))
    })
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.on('close', () => resolve())
  })
  t.equal(answer.match(/HTTP\/1\.1 200 OK/g)?.length, 2)
  t.match(answer, /Connection: close/)
})

t.test('answers any path with JSON or a file, and never 500', async (t) => {
  const app = await startApp(t, playing())
  const part = fc.oneof(
    fc.constantFrom(
      'demo',
      'playlist.m3u8',
      'a1-7.ts',
      '..',
      '.',
      '%2e',
      '%2F',
      '%00',
      '%zz',
      '?',
      '',
    ),
    fc.webPath({ size: 'small' }),
    fc.string({ unit: fc.constantFrom('a', '.', '/', '%', '~', ';', ':', '*', "'") }),
  )
  const paths = fc.array(part, { maxLength: 5 }).map((parts) => `/video/${parts.join('/')}`)
  await fc.assert(
    fc.asyncProperty(paths, async (path) => {
      const reply = await call(app, 'GET', path)
      if (reply.status === 200) return true
      return [400, 404, 414].includes(reply.status) && json(reply)['success'] === false
    }),
    { numRuns: 200 },
  )
  t.strictSame(app.log, [])
})
