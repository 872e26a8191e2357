/**
 * Objects in a store that somebody else wrote, and what a failing store is called.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { S3Store, type StoredObject } from '../../src/archive/s3-store.ts'
import { StoreError } from '../../src/archive/store-error.ts'
import { makeCertificate } from '../support/certificate.ts'
import { createRandom } from '../support/random.ts'
import { startS3Server } from '../support/s3-server.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

type StoreOptions = ConstructorParameters<typeof S3Store>[0]

const CREDENTIALS = {
  accessKeyId: 'ACCESSKEY',
  secretAccessKey: 'secret-that-nobody-may-read',
  sessionToken: 'session-token-that-nobody-may-read',
}

function openStore(t: Test, options: Partial<StoreOptions>): S3Store {
  const store = new S3Store({
    url: 's3://archive/live',
    endpoint: '',
    region: 'us-east-1',
    readCredentials: () => CREDENTIALS,
    ...options,
  })
  t.teardown(() => store.close())
  return store
}

function objectOf(key: string, ...chunks: (Buffer | string)[]): StoredObject {
  return {
    key,
    chunks: chunks.map((chunk) => Buffer.from(chunk)),
    contentType: 'video/mp4',
    cacheControl: 'public, max-age=31536000, immutable',
  }
}

async function textOf(store: S3Store, key: string): Promise<string | undefined> {
  return (await store.get(key, { maxBytes: 100 }))?.bytes.toString()
}

async function listen(t: Test, server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A store on a server of this test. */
async function openOwnStore(t: Test, handle: RequestListener, options: Partial<StoreOptions> = {}) {
  const server = createServer(handle)
  t.teardown(() => server.closeAllConnections())
  const host = await listen(t, server)
  return { store: openStore(t, { endpoint: `http://${host}`, ...options }), host }
}

/** @returns the error, after a look for what it may not say */
async function failureOf(t: Test, promise: Promise<unknown>): Promise<StoreError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof StoreError)) throw new Error(`no StoreError: ${String(error)}`)
  t.notMatch(error.message, /nobody-may-read|[0-9a-f]{64}|ACCESSKEY/)
  t.ok(error.message.length <= 160, `${error.message.length} characters: ${error.message}`)
  return error
}

t.test('on a server that verifies signatures', async (t) => {
  const { endpoint, url, credentials } = await startS3Server(t)
  const server = { endpoint, url, readCredentials: () => credentials }
  const store = openStore(t, server)

  t.test('a segment of 40 chunks comes back byte for byte, also without a signature', async (t) => {
    const random = createRandom(1)
    const chunks = Array.from({ length: 40 }, () => random.bytes(32 * 1024))
    await store.put(objectOf('studio/1/v0-1.m4s', ...chunks))
    const bytes = Buffer.concat(chunks)
    const md5 = createHash('md5').update(bytes).digest('hex')
    t.same(await store.head('studio/1/v0-1.m4s'), { sizeBytes: bytes.length, md5, etag: md5 })
    const stored = await store.get('studio/1/v0-1.m4s', { maxBytes: bytes.length })
    t.ok(bytes.equals(stored!.bytes))
    t.equal(stored!.etag, md5)
    const response = await fetch(`${endpoint}/archive/live/studio/1/v0-1.m4s`)
    t.ok(bytes.equals(Buffer.from(await response.arrayBuffer())))
    t.equal(response.headers.get('content-type'), 'video/mp4')
    t.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  })

  t.test('an empty object, and one that is replaced', async (t) => {
    await store.put(objectOf('replaced'))
    t.match(await store.head('replaced'), { sizeBytes: 0 })
    await store.put(objectOf('replaced', 'new'))
    t.equal(await textOf(store, 'replaced'), 'new')
  })

  t.test('keys and prefixes may have any characters', async (t) => {
    const keys = ['a b', 'a+b', 'a%20b', 'a%2Bb', "!'()*", '&=?#:;@$,', 'Straße/日本 語', '~-_.']
    for (const prefix of ['', '/', '/a b+c', '/ä/b/']) {
      const store = openStore(t, { ...server, url: `s3://archive${prefix}` })
      for (const key of keys) await store.put(objectOf(key, key))
      for (const key of keys) {
        t.equal(await textOf(store, key), key)
        const path = `${prefix.replace(/\/$/, '')}/${key}`.split('/').map(encodeURIComponent)
        t.equal(await (await fetch(`${endpoint}/archive${path.join('/')}`)).text(), key)
      }
    }
  })

  t.test('there is no object, or a larger one than allowed', async (t) => {
    t.equal(await store.get('nothing', { maxBytes: 1 }), undefined)
    t.equal(await store.head('nothing'), undefined)
    await store.put(objectOf('large', Buffer.alloc(300_000)))
    const error = await failureOf(t, store.get('large', { maxBytes: 299_999 }))
    t.match(error, { code: 'TOO_LARGE', message: 'The object has more than 299999 bytes' })
  })

  t.test('an object that may only be created is never overwritten', async (t) => {
    const createOnly = true
    await store.put(objectOf('once', 'first'), { createOnly })
    await store.put(objectOf('once', 'fi', 'rst'), { createOnly })
    for (const other of ['other', 'longer']) {
      const error = await failureOf(t, store.put(objectOf('once', other), { createOnly }))
      t.equal(error.code, 'CONFLICT')
    }
    t.equal(await textOf(store, 'once'), 'first')
  })

  t.test('an object is overwritten in the version that is known', async (t) => {
    const first = await store.put(objectOf('versions', 'first'))
    const second = await store.put(objectOf('versions', 'second'), { replaces: first })
    t.not(second, first)
    t.match(await store.head('versions'), { etag: second })
    const stale = store.put(objectOf('versions', 'stale'), { replaces: first })
    t.equal((await failureOf(t, stale)).code, 'CONFLICT')
    const repeated = await store.put(objectOf('versions', 'second'), { replaces: first })
    t.equal(repeated, second, 'the response to it may have been lost')
    t.equal(await textOf(store, 'versions'), 'second')
    const none = store.put(objectOf('no version', 'bytes'), { replaces: first })
    t.equal((await failureOf(t, none)).code, 'CONFLICT')
  })

  t.test('a session token is covered by the signature', async (t) => {
    const withToken = { ...credentials, sessionToken: 'token' }
    const store = openStore(t, { ...server, readCredentials: () => withToken })
    await store.put(objectOf('token', 'bytes'))
    t.match(await store.head('token'), { sizeBytes: 5 })
  })

  t.test('wrong credentials, a wrong clock and a missing bucket are refused', async (t) => {
    const { secretAccessKey } = CREDENTIALS
    const cases: [Partial<StoreOptions>, string, RegExp][] = [
      [
        { readCredentials: () => ({ ...credentials, secretAccessKey }) },
        'CREDENTIALS',
        /403 SignatureDoesNotMatch.*AWS_SECRET_ACCESS_KEY/,
      ],
      [{ readCredentials: () => CREDENTIALS }, 'CREDENTIALS', /403 InvalidAccessKeyId/],
      [{ now: () => new Date(Date.now() - 1_000_000) }, 'CLOCK', /clock.*RequestTimeTooSkewed/],
      [{ url: 's3://nowhere/live' }, 'NO_BUCKET', /404 NoSuchBucket.*ARCHIVE_URL/],
    ]
    for (const [options, code, message] of cases) {
      const store = openStore(t, { ...server, ...options })
      t.match(await failureOf(t, store.put(objectOf('key', 'bytes'))), { code, message })
      t.match(await failureOf(t, store.get('key', { maxBytes: 9 })), { code, message })
    }
    t.equal(await store.head('key'), undefined)
  })
})

t.test('a server that ignores If-Match overwrites any version', async (t) => {
  const { endpoint, url, credentials } = await startS3Server(t, { compares: false })
  const store = openStore(t, { endpoint, url, readCredentials: () => credentials })
  const first = await store.put(objectOf('versions', 'first'))
  for (const text of ['second', 'third'])
    await store.put(objectOf('versions', text), { replaces: first })
  t.equal(await textOf(store, 'versions'), 'third')
})

t.test('a request has the hash of its bytes, and everything but its type is signed', async (t) => {
  const { store, host } = await openOwnStore(t, async (request, response) => {
    const bytes = await buffer(request)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    t.equal(`${request.method} ${request.url}`, 'PUT /base/archive/live/key')
    t.match(request.headers, {
      host,
      'content-length': '10',
      'content-type': 'video/mp4',
      'x-amz-content-sha256': sha256,
      'x-amz-date': '20260102T030405Z',
      'x-amz-security-token': CREDENTIALS.sessionToken,
      authorization:
        /Credential=ACCESSKEY\/20260102\/eu-west-1\/s3\/aws4_request, SignedHeaders=cache-control;host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-security-token, /,
    })
    response.setHeader('etag', createHash('md5').update(bytes).digest('hex')).end()
  })
  const now = () => new Date('2026-01-02T03:04:05.678Z')
  const signing = openStore(t, { endpoint: `http://${host}/base/`, region: 'eu-west-1', now })
  await signing.put(objectOf('key', 'some ', 'bytes'), { createOnly: true })
  await store.close()
})

t.test('a store that knows no If-None-Match is asked without it from then on', async (t) => {
  const asked: (string | undefined)[] = []
  const { store } = await openOwnStore(t, async (request, response) => {
    const md5 = createHash('md5').update(await buffer(request))
    asked.push(request.headers['if-none-match'])
    if (request.headers['if-none-match'] !== undefined) response.writeHead(501).end()
    else response.setHeader('etag', md5.digest('hex')).end()
  })
  for (const key of ['a', 'b']) await store.put(objectOf(key, 'bytes'), { createOnly: true })
  t.same(asked, ['*', undefined, undefined])
})

t.test('a store that knows no If-Match, or not its own ETags, is asked without it', async (t) => {
  const stores: [string, (match: string | undefined) => number, (string | undefined)[]][] = [
    ['none', (match) => (match === undefined ? 200 : 501), ['"v"', undefined, undefined]],
    ['ignored', () => 200, ['"v"', '"v"']],
    ['no quotes', (match) => (match === 'v' ? 200 : 412), ['"v"', 'v', 'v']],
    ['refused', (match) => (match === undefined ? 200 : 412), ['"v"', 'v', undefined, undefined]],
  ]
  for (const [name, statusOf, expected] of stores) {
    const asked: (string | undefined)[] = []
    const serve: RequestListener = (request, response) => {
      request.resume()
      const match = request.headers['if-match']
      if (request.method === 'PUT') asked.push(match)
      const status = request.method === 'PUT' ? statusOf(match) : 200
      response.writeHead(status, { etag: '"v"', 'content-length': status === 200 ? 5 : 0 })
      response.end(request.method === 'PUT' && status === 200 ? 'bytes' : '')
    }
    const { store } = await openOwnStore(t, serve)
    const put = (key: string) => store.put(objectOf(key, 'bytes'), { replaces: 'v' })
    for (const key of ['a', 'b']) t.equal(await put(key), 'v', name)
    t.same(asked, expected, name)
    const { store: busy } = await openOwnStore(t, serve)
    asked.length = 0
    const puts = ['a', 'b'].map((key) => busy.put(objectOf(key, 'bytes'), { replaces: 'v' }))
    t.same(await Promise.all(puts), ['v', 'v'], `${name}, at once`)
    t.equal(asked.at(-1), expected.at(-1), `${name}, at once`)
  }
})

t.test(
  'a version that another request replaces meanwhile is a conflict, and asked for again',
  async (t) => {
    const asked: (string | undefined)[] = []
    const { store } = await openOwnStore(t, (request, response) => {
      request.resume()
      if (request.method === 'PUT') asked.push(request.headers['if-match'])
      response.writeHead(request.method === 'PUT' ? 409 : 200, { etag: '"v"', 'content-length': 1 })
      response.end('x')
    })
    for (const key of ['a', 'b']) {
      const put = store.put(objectOf(key, 'bytes'), { replaces: 'v' })
      t.equal((await failureOf(t, put)).code, 'CONFLICT')
    }
    t.same(asked, ['"v"', '"v"'])
  },
)

t.test('bytes are confirmed by a HEAD where the ETag is no MD5', async (t) => {
  const other = '0123456789abcdef0123456789abcdef'
  const kms = { etag: `"${other}"`, 'x-amz-server-side-encryption': 'aws:kms' }
  const customer = { etag: other, 'x-amz-server-side-encryption-customer-algorithm': 'AES256' }
  for (const headers of [{}, { etag: `"${other}-1"` }, kms, customer]) {
    let sizeBytes: number | undefined
    const { store } = await openOwnStore(t, (request, response) => {
      request.resume()
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      if (request.method === 'HEAD' && sizeBytes !== undefined) {
        response.setHeader('content-length', sizeBytes)
      }
      response.writeHead(request.method === 'HEAD' && sizeBytes === undefined ? 404 : 200).end()
    })
    const put = () => store.put(objectOf('key', 'bytes'))
    t.match(await failureOf(t, put()), { code: 'NOT_STORED' }, 'there is none')
    sizeBytes = 4
    t.match(await failureOf(t, put()), { code: 'NOT_STORED' }, 'it is too short')
    sizeBytes = 5
    await put()
  }
})

const ELSEWHERE = 'http://elsewhere.example/?X-Amz-Signature=1'

const REFUSALS: [
  status: number,
  s3Code: string,
  headers: Record<string, string>,
  code: string,
  message: RegExp,
][] = [
  [500, 'InternalError', {}, 'SERVER_ERROR', /The store has failed \(500 InternalError\)/],
  [502, '', {}, 'SERVER_ERROR', /\(502\)/],
  [503, 'SlowDown', { 'retry-after': '7' }, 'SLOW_DOWN', /asks to slow down \(503 SlowDown\)/],
  [429, '', {}, 'SLOW_DOWN', /\(429\)/],
  [504, '', {}, 'TIMEOUT', /\(504\)/],
  [400, 'RequestTimeout', {}, 'TIMEOUT', /\(400 RequestTimeout\)/],
  [400, 'ExpiredToken', {}, 'CREDENTIALS', /AWS_SESSION_TOKEN/],
  [401, 'Unauthorized', {}, 'CREDENTIALS', /AWS_ACCESS_KEY_ID/],
  [403, 'AccessDenied', {}, 'REFUSED', /s3:PutObject/],
  [403, 'QuotaExceeded', {}, 'FULL', /full \(403 QuotaExceeded\)/],
  [507, 'XMinioStorageFull', {}, 'FULL', /full/],
  [400, 'XAmzContentSHA256Mismatch', {}, 'NOT_STORED', /other bytes/],
  [405, 'MethodNotAllowed', {}, 'REFUSED', /\(405 MethodNotAllowed\): in words … of a store$/],
  [301, 'PermanentRedirect', { 'x-amz-bucket-region': 'eu-west-1' }, 'REDIRECT', /eu-west-1/],
  [400, 'AuthorizationHeaderMalformed', {}, 'REDIRECT', /region eu-central-1.*ARCHIVE_REGION/],
  [307, 'TemporaryRedirect', { location: ELSEWHERE }, 'REDIRECT', /to elsewhere\.example \(307/],
]

t.test('refusals say what an operator has to do', async (t) => {
  for (const [status, s3Code, headers, code, message] of REFUSALS) {
    const { store } = await openOwnStore(t, (request, response) => {
      request.resume()
      const region =
        s3Code === 'AuthorizationHeaderMalformed' ? '<Region>eu-central-1</Region>' : ''
      const said = `in words ${request.headers.authorization!.split('Signature=')[1]} of a store`
      const error = `<Error><Code>${s3Code}</Code><Message>${said}</Message>${region}</Error>`
      response.writeHead(status, headers).end(error)
    })
    t.match(await failureOf(t, store.put(objectOf('key', 'bytes'))), { code, message })
    t.match(await failureOf(t, store.get('key', { maxBytes: 9 })), { code, message })
    // Responses to HEAD have no body.
    await failureOf(t, store.head('key'))
  }
})

t.test('other bytes than were sent are not confirmed', async (t) => {
  const { store } = await openOwnStore(t, (request, response) => {
    request.resume()
    response.setHeader('etag', '"0123456789abcdef0123456789abcdef"').end()
  })
  const error = await failureOf(t, store.put(objectOf('key', 'bytes')))
  t.match(error, { code: 'NOT_STORED', message: /confirmed other bytes/ })
})

t.test('the body of a refusal may be endless', async (t) => {
  const closed: Promise<unknown>[] = []
  let writtenBytes = 0
  const { store } = await openOwnStore(t, (request, response) => {
    request.resume()
    closed.push(once(response, 'close'))
    response.writeHead(500)
    const write = () => {
      writtenBytes += 4096
      return response.write(Buffer.alloc(4096, 'x'))
    }
    response.on('drain', () => {
      while (write());
    })
    while (write());
  })
  t.equal((await failureOf(t, store.put(objectOf('key', 'bytes')))).code, 'SERVER_ERROR')
  t.equal((await failureOf(t, store.get('key', { maxBytes: 9 }))).code, 'SERVER_ERROR')
  t.equal((await Promise.all(closed)).length, 2)
  t.ok(writtenBytes < 32 * 1024 * 1024, `${writtenBytes} bytes, most of them in buffers of sockets`)
})

t.test('a connection may end within a body', async (t) => {
  const { store, host } = await openOwnStore(t, (request, response) => {
    if (request.method === 'PUT') request.once('data', () => request.destroy())
    else response.writeHead(200, { 'content-length': 9 }).write('bytes', () => request.destroy())
  })
  const message = new RegExp(`No connection to ${host} \\(\\w+\\)`)
  const put = store.put(objectOf('key', Buffer.alloc(1_000_000), Buffer.alloc(1_000_000)))
  t.match(await failureOf(t, put), { code: 'UNREACHABLE', message })
  t.match(await failureOf(t, store.get('key', { maxBytes: 9 })), { code: 'UNREACHABLE', message })
})

t.test('there may be no server', async (t) => {
  const server = createServer()
  const host = await listen(t, server)
  await new Promise((resolve) => void server.close(resolve))
  const store = openStore(t, { endpoint: `http://${host}` })
  const error = await failureOf(t, store.head('key'))
  t.match(error, { code: 'UNREACHABLE', message: `No connection to ${host} (ECONNREFUSED)` })
})

t.test('a store may be silent, within a response too', async (t) => {
  const { store } = await openOwnStore(
    t,
    (request, response) => {
      if (request.method === 'GET') response.writeHead(200, { 'content-length': 9 }).write('bytes')
    },
    { timeLimits: { pauseMs: 50 } },
  )
  const put = await failureOf(t, store.put(objectOf('key', 'bytes')))
  t.match(put, { code: 'TIMEOUT', message: /in time \(UND_ERR_HEADERS_TIMEOUT\)/ })
  const get = await failureOf(t, store.get('key', { maxBytes: 9 }))
  t.match(get, { code: 'TIMEOUT', message: /in time \(UND_ERR_(BODY|HEADERS)_TIMEOUT\)/ })
})

t.test('a response that trickles ends at the limit of a request', async (t) => {
  const { store } = await openOwnStore(
    t,
    (_request, response) => {
      const timer = setInterval(() => response.write('x'), 10)
      response.on('close', () => clearInterval(timer))
    },
    { timeLimits: { requestMs: 300 } },
  )
  const error = await failureOf(t, store.get('key', { maxBytes: 1_000_000 }))
  t.match(error, { code: 'TIMEOUT', message: /TimeoutError/ })
})

t.test('no timer is left of a request that is over', async (t) => {
  const { store } = await openOwnStore(t, (request, response) => {
    request.resume()
    if (request.url!.endsWith('lost')) request.socket.destroy()
    else response.writeHead(request.url!.endsWith('refused') ? 403 : 200, { etag: '"v"' }).end()
  })
  const countTimers = () =>
    process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
  const timers = countTimers()
  for (const key of ['there', 'refused', 'lost']) {
    await Promise.allSettled([
      store.put(objectOf(key, 'bytes'), { replaces: 'v' }),
      store.get(key, { maxBytes: 0 }),
      store.head(key),
    ])
    t.ok(countTimers() <= timers, key)
  }
})

t.test('garbage collection does not undo the limit of a request', async (t) => {
  const { store } = await openOwnStore(
    t,
    (_, response) => response.writeHead(200, { 'content-length': 9 }).write('bytes'),
    { timeLimits: { requestMs: 300 } },
  )
  const { signal } = new AbortController()
  const collecting = setInterval(collectGarbage, 20)
  t.teardown(() => clearInterval(collecting))
  const error = await failureOf(t, store.put(objectOf('key', 'bytes'), { signal }))
  t.match(error, { code: 'TIMEOUT', message: /TimeoutError/ })
})

t.test('a store needs a certificate that this machine knows', async (t) => {
  const tls = await listen(t, createTlsServer(makeCertificate()))
  const unknown = await failureOf(t, openStore(t, { endpoint: `https://${tls}` }).head('key'))
  t.match(unknown, { code: 'TLS', message: /DEPTH_ZERO_SELF_SIGNED_CERT/ })
  const plain = await listen(t, createServer())
  const none = await failureOf(t, openStore(t, { endpoint: `https://${plain}` }).head('key'))
  t.match(none, { code: 'TLS', message: /\((EPROTO|ERR_SSL_\w+)\)/ })
})
