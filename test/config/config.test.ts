import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { flagWarnings, parseFlags, readOptions } from '../../src/config/environment.ts'
import { usableMemoryBytes } from '../../src/config/machine-memory.ts'
import { completeOptions, configWarnings } from '../../src/config/options.ts'
import type { Options } from '../../src/config/schema.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { writeSetting } from '../../src/config/setting-path.ts'
import {
  parseAddresses,
  parseFormats,
  parseRedisUrls,
  parseSecrets,
} from '../../src/config/setting-types.ts'
import { settingsTable } from '../../src/config/settings-table.ts'
import { MAX_LATENCY_MS } from '../../src/srt/wire/limits.ts'

const SECRETS = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }

t.test('README.md holds the generated table of settings, with their defaults', async (t) => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  t.ok(readme.includes(settingsTable()), `README.md must hold this table:\n${settingsTable()}`)
  const config = completeOptions(SECRETS)
  t.match(config, {
    http: { port: 8080 },
    srt: { port: 10_080, latencyMs: 120 },
  })
})

t.test('docs/api.md names the longest latency that SRT_LATENCY_MS takes', async (t) => {
  const docs = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  t.match(docs, new RegExp(`^\\| \`latency_ms\` .* at most ${MAX_LATENCY_MS} *\\|$`, 'm'))
})

t.test('HLS_FORMATS names formats in any order', async (t) => {
  t.same(parseFormats(completeOptions(SECRETS).hls.formats), ['ts', 'cmaf'])
  t.same(parseFormats('cmaf, ts'), ['ts', 'cmaf'])
  t.same(parseFormats('cmaf'), ['cmaf'])
  for (const formats of ['cmaf,ts', 'ts', 'cmaf']) {
    t.equal(completeOptions({ ...SECRETS, hls: { formats } }).hls.formats, formats)
  }
  for (const formats of ['', 'fmp4', 'ts,', 'ts cmaf', 'TS']) {
    t.throws(
      () => completeOptions({ ...SECRETS, hls: { formats } }),
      { message: `HLS_FORMATS is "${formats}": expected ts, cmaf, or both with a comma between` },
      formats,
    )
  }
})

t.test('CACHE_MAX_MIB is a quarter of the memory unless set', async (t) => {
  t.equal(completeOptions(SECRETS, 2 * 1024 ** 3).cache.maxMib, 512)
  t.equal(
    completeOptions(SECRETS).cache.maxMib,
    completeOptions(SECRETS, usableMemoryBytes()).cache.maxMib,
    'of this machine by default',
  )
  t.equal(completeOptions({ ...SECRETS, cache: { maxMib: 100 } }).cache.maxMib, 100)
  t.match(settingsTable(), '| `CACHE_MAX_MIB` | a quarter of memory | a whole number from 16 to ')
})

t.test('a setting is named in the environment and as a flag after its path', async (t) => {
  const names = new Set(SETTINGS.map(({ env, flag }) => `${env} ${flag}`))
  t.ok(names.has('HLS_MAX_SEGMENT_SEC hls-max-segment-sec'))
  t.ok(names.has('RECONNECT_GRACE_SEC reconnect-grace-sec'))
  t.ok(names.has('PUBLIC_URL public-url'))
})

t.test('a flag overrides the environment, and an empty variable counts as not set', async (t) => {
  const { values } = parseFlags(['--srt-port', '7000', '--hls-segment-sec=1.5'])
  const env = { SRT_PORT: '6000', HTTP_PORT: '', HMAC_SECRET: SECRETS.hmacSecret, JWT_SECRET: 'x' }
  const config = completeOptions(readOptions(env, values) as Options)
  t.match(config, {
    srt: { port: 7000 },
    http: { port: 8080 },
    hls: { segmentSec: 1.5 },
    jwtSecret: 'x',
  })
})

t.test('rejects a bad value with its setting, the value and the allowed values', async (t) => {
  const refused = (env: Record<string, string>) => () =>
    completeOptions({ ...SECRETS, ...readOptions(env, {}) })
  t.throws(refused({ HTTP_PORT: 'eighty' }), {
    code: 'CONFIG_INVALID',
    message: 'HTTP_PORT is "eighty": expected a whole number from 0 to 65535',
  })
  t.throws(refused({ SRT_PORT: '70000' }), {
    message: /^SRT_PORT is 70000: expected a whole number/,
  })
  t.throws(refused({ SRT_LATENCY_MS: '12.5' }), { message: /^SRT_LATENCY_MS is 12.5/ })
  t.throws(refused({ LOG_LEVEL: 'loud' }), {
    message: /^LOG_LEVEL is "loud": expected one of fatal, error/,
  })
  t.throws(refused({ PUBLIC_URL: 'example.org' }), { message: /^PUBLIC_URL is "example.org"/ })
  t.throws(refused({ HLS_SEGMENT_SEC: '12', HLS_MAX_SEGMENT_SEC: '8' }), {
    message: 'HLS_MAX_SEGMENT_SEC is 8: expected at least HLS_SEGMENT_SEC, 12',
  })
})

t.test('accepts first, all or a program number as TS_PROGRAM', async (t) => {
  const given = (program: string) =>
    completeOptions({ ...SECRETS, ...readOptions({ TS_PROGRAM: program }, {}) }).ts.program
  for (const text of ['first', 'all', '1', '007', '65535']) t.equal(given(text), text)
  t.equal(given(''), 'first', 'empty is not set')
  for (const text of ['0', '65536', '-1', '1.5', 'First', 'one', '100000']) {
    const message = `TS_PROGRAM is "${text}": expected first, all, or a program number from 1 to 65535`
    t.throws(() => given(text), { code: 'CONFIG_INVALID', message })
  }
})

t.test('accepts one or more addresses, or a single wildcard, as SRT_HOST', async (t) => {
  const given = (host: string) => () => completeOptions({ ...SECRETS, srt: { host } }).srt.host
  const lists: [string, string[]][] = [
    ['0.0.0.0', ['0.0.0.0']],
    ['::', ['::']],
    ['10.0.0.5,192.168.1.5', ['10.0.0.5', '192.168.1.5']],
    ['10.0.0.5, fd00::5,10.0.0.5', ['10.0.0.5', 'fd00::5']],
    ['fe80::1%eth0', ['fe80::1%eth0']],
  ]
  for (const [text, addresses] of lists) {
    t.strictSame(parseAddresses(given(text)()), addresses)
  }
  const refused = ['', 'localhost', '10.0.0', '10.0.0.5,', '10.0.0.5;10.0.0.6', '[::1]']
  for (const text of [...refused, '0.0.0.0,10.0.0.5', 'fd00::5,::', '0.0.0.0,::']) {
    t.throws(given(text), {
      code: 'CONFIG_INVALID',
      message: `SRT_HOST is "${text}": expected IP addresses separated by commas, or 0.0.0.0 or :: alone`,
    })
  }
})

t.test(
  'rejects a missing secret with advice to make one, and a bad secret without printing it',
  async (t) => {
    const without = (key: 'hmacSecret' | 'jwtSecret') => () =>
      completeOptions({ ...SECRETS, [key]: undefined })
    t.throws(without('hmacSecret'), { message: /^HMAC_SECRET is not set: .*millrace keygen/ })
    t.throws(without('jwtSecret'), { message: /^JWT_SECRET is not set: .*millrace keygen/ })
    t.throws(() => completeOptions({ ...SECRETS, hmacSecret: '' }), {
      message: /^HMAC_SECRET is empty/,
    })
    const notText = { ...SECRETS, hmacSecret: 4711 } as unknown as Options
    t.throws(() => completeOptions(notText), { message: /^HMAC_SECRET is not text/ })
    t.throws(() => completeOptions(notText), { message: /^((?!4711).)*$/ })
    const passphrase = (text: string) => () =>
      completeOptions({ ...SECRETS, srt: { passphrase: text } })
    t.throws(passphrase('tooshort'), {
      code: 'CONFIG_INVALID',
      message: 'SRT_PASSPHRASE has 8 bytes: expected 10 to 80 bytes',
    })
    t.throws(passphrase('é'.repeat(41)), { message: /^SRT_PASSPHRASE has 82 bytes/ })
    for (const good of ['', '0123456789', 'é'.repeat(40)]) {
      t.equal(passphrase(good)().srt.passphrase, good)
    }
  },
)

t.test('accepts two values of a secret, new and old, during a rotation', async (t) => {
  const given = (hmacSecret: string, jwtSecret = SECRETS.jwtSecret) =>
    completeOptions({ hmacSecret, jwtSecret }).hmacSecret
  const [fresh, old] = ['n'.repeat(32), 'o'.repeat(32)]
  const pairs: [string, string[]][] = [
    ['one', ['one']],
    [' one ', [' one ']],
    [`${fresh},${old}`, [fresh, old]],
    [`${fresh}, ${old}`, [fresh, old]],
  ]
  for (const [text, secrets] of pairs) t.strictSame(parseSecrets(given(text)), secrets)
  // A secret from before the rotation existed may hold a comma; it is not to become two short ones.
  const notTwo = [`${fresh},`, `,${old}`, `${fresh},old`, 'x'.repeat(20) + ',' + 'y'.repeat(20)]
  for (const text of ['', ',', ...notTwo, [fresh, old, fresh].join()]) {
    const error = t.throws(() => given(text), {
      message:
        /^HMAC_SECRET .*: expected at least 32 characters without a comma, or two such values/,
    })
    t.ok((error as Error).message.length <= 160)
  }
})

t.test('rejects equal secrets in any encoding, also as half of a pair', async (t) => {
  const [same, other, fresh] = ['s'.repeat(32), 'o'.repeat(32), 'n'.repeat(32)]
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const random = randomBytes(32).toString('base64')
  const equal: [string, Options][] = [
    ['HMAC_SECRET and JWT_SECRET', { hmacSecret: same, jwtSecret: same }],
    ['HMAC_SECRET and JWT_SECRET', { hmacSecret: `${fresh},${same}`, jwtSecret: same }],
    [
      'HMAC_SECRET and JWT_SECRET',
      { hmacSecret: `${fresh},${same}`, jwtSecret: `${other},${same}` },
    ],
    [
      'HMAC_SECRET and WEBHOOK_SECRET',
      { hmacSecret: random, jwtSecret: other, webhook: { secret: `whsec_${random}` } },
    ],
    [
      'HMAC_SECRET and WEBHOOK_SECRET',
      { hmacSecret: same, jwtSecret: other, webhook: { secret: `whsec_${base64(same)}` } },
    ],
    [
      'JWT_SECRET and WEBHOOK_SECRET',
      { hmacSecret: other, jwtSecret: random, webhook: { secret: random } },
    ],
    [
      'JWT_SECRET and WEBHOOK_SECRET',
      {
        hmacSecret: other,
        jwtSecret: `${fresh},${random}`,
        webhook: { secret: `${base64(other + same)}, whsec_${random}` },
      },
    ],
    [
      'HMAC_SECRET and SRT_PASSPHRASE',
      { hmacSecret: same, jwtSecret: other, srt: { passphrase: same } },
    ],
    [
      'JWT_SECRET and SRT_PASSPHRASE',
      {
        hmacSecret: same,
        jwtSecret: `${fresh},${other}`,
        srt: { passphrase: `${fresh},${other}` },
      },
    ],
    [
      'HMAC_SECRET and ADMIN_PASSWORD',
      { hmacSecret: same, jwtSecret: other, admin: { password: base64(same) } },
    ],
  ]
  for (const [names, options] of equal) {
    const error = t.throws(() => completeOptions(options), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`^${names} are the same: expected different secrets`),
    })
    t.ok((error as Error).message.length <= 160)
  }
  const webhook = { secret: `whsec_${random}` }
  t.match(completeOptions({ hmacSecret: same, jwtSecret: other, webhook }).webhook, webhook)
})

t.test('rejects a METRICS_TOKEN that no Authorization header can hold', async (t) => {
  const given = (token: string) => () => completeOptions({ ...SECRETS, metrics: { token } })
  const [fresh, old] = ['n'.repeat(32), 'o'.repeat(32)]
  for (const token of ['', fresh, `${fresh}, ${old}`]) t.equal(given(token)().metrics.token, token)
  for (const token of [`${fresh} ${old}`, `${fresh}\n`, `${fresh}é`, `${fresh},${old}\t!`]) {
    const error = t.throws(given(token), {
      code: 'CONFIG_INVALID',
      message: /^METRICS_TOKEN has \d+ bytes: expected at least 32 printable ASCII characters /,
    })
    t.ok((error as Error).message.length <= 160)
  }
})

t.test('rejects DEFAULT_WEBHOOK_URLS that webhooks may not be sent to', async (t) => {
  const given = (defaultWebhookUrls: string, allow = '') =>
    completeOptions({ ...SECRETS, defaultWebhookUrls, webhook: { allow } }).defaultWebhookUrls
  const url = 'https://hooks.example.org/in'
  for (const allow of ['', '.example.org']) t.equal(given(url, allow), url)
  const forbidden: [string, string, string?][] = [
    ['http://169.254.169.254/in', '169.254.169.254'],
    [`${url},http://[fe80::1]/in`, 'fe80::1'],
    [url, 'hooks.example.org', '.example.net'],
  ]
  for (const [text, host, allow] of forbidden) {
    t.throws(() => given(text, allow), {
      code: 'CONFIG_INVALID',
      message: `DEFAULT_WEBHOOK_URLS leads to ${host}: expected no link-local, metadata or multicast address, and none beyond WEBHOOK_ALLOW`,
    })
  }
})

t.test('accepts base64 as WEBHOOK_SECRET, and names and addresses as WEBHOOK_ALLOW', async (t) => {
  const given = (env: Record<string, string>) => () =>
    completeOptions({ ...SECRETS, ...readOptions(env, {}) }).webhook
  const secret = Buffer.alloc(32, 1).toString('base64')
  const allow = '10.0.0.0/8, .example.org'
  t.strictSame(given({})(), { secret: '', allow: '' })
  const env = { WEBHOOK_SECRET: `whsec_${secret},${secret}`, WEBHOOK_ALLOW: allow }
  t.strictSame(given(env)(), { secret: env.WEBHOOK_SECRET, allow })
  t.throws(given({ WEBHOOK_SECRET: 'my favorite secret' }), {
    code: 'CONFIG_INVALID',
    message: /^WEBHOOK_SECRET has 18 bytes: expected base64 of 24 to 64 bytes/,
  })
  t.throws(given({ WEBHOOK_ALLOW: '10.0.0.0/33' }), {
    code: 'CONFIG_INVALID',
    message: /^WEBHOOK_ALLOW is "10\.0\.0\.0\/33": expected comma-separated host names/,
  })
})

t.test('quotes at most 40 characters of a value, so that no message exceeds 160', async (t) => {
  const messages = SETTINGS.map(({ env, path }) => {
    const options: Record<string, unknown> = { ...SECRETS }
    writeSetting(options, path, ['x'.repeat(5000)])
    const error = t.throws(() => completeOptions(options as unknown as Options), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`^${env} is (not text|\\["x{38}…): expected `),
    })
    return (error as Error).message
  })
  t.equal(messages.length, SETTINGS.length)
  for (const message of messages) t.ok(message.length <= 160, message)
})

t.test('warns of a secret under 32 characters', async (t) => {
  t.strictSame(configWarnings(completeOptions(SECRETS)), [])
  const [warning] = configWarnings(completeOptions({ ...SECRETS, jwtSecret: 'short' }))
  t.match(warning, /^JWT_SECRET has fewer than 32 characters/)
  t.notMatch(warning, /short/)
})

t.test('warns of a CLUSTER_SECRET under 32 characters, and accepts none and a pair', async (t) => {
  const given = (clusterSecret: string) => completeOptions({ ...SECRETS, clusterSecret })
  const [warning, ...others] = configWarnings(given('short'))
  t.match(warning, /^CLUSTER_SECRET has fewer than 32 characters\. .* passes for a node\./)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
  const pair = `${'n'.repeat(32)},${'o'.repeat(32)}`
  for (const text of ['', pair]) t.strictSame(configWarnings(given(text)), [])
  t.throws(() => given('one,two'), { code: 'CONFIG_INVALID', message: /^CLUSTER_SECRET has 7/ })
  t.throws(() => given(SECRETS.jwtSecret), {
    message: /^JWT_SECRET and CLUSTER_SECRET are the same/,
  })
})

t.test('accepts http and https URLs as NODE_URL, and three values of ROLE', async (t) => {
  const given = (env: Record<string, string>) => () =>
    completeOptions({ ...SECRETS, ...readOptions(env, {}) })
  t.match(given({})(), { nodeUrl: '', role: 'all' })
  t.match(given({ NODE_URL: 'http://10.0.0.5:8080', ROLE: 'edge' })(), { role: 'edge' })
  for (const text of ['10.0.0.5:8080', 'ftp://a', 'http://', 'http://[']) {
    t.throws(given({ NODE_URL: text }), { message: /^NODE_URL is ".*: expected an http or https/ })
  }
  t.throws(given({ ROLE: 'origin' }), { message: /^ROLE is "origin": expected / })
})

t.test('accepts URLs of Redis and of Sentinels as REDIS_URL, with CLUSTER_SECRET', async (t) => {
  const clusterSecret = 'c'.repeat(32)
  const given = (redisUrl: string) => () => completeOptions({ ...SECRETS, redisUrl, clusterSecret })
  for (const url of ['redis://r', 'rediss://u:p@r:7000/1', 'redis+sentinel://a,b/main']) {
    t.match(given(url)(), { redisUrl: url })
  }
  t.throws(given('http://redis'), { message: /^REDIS_URL has 12 bytes: expected a redis:/ })
  t.throws(() => completeOptions({ ...SECRETS, redisUrl: 'redis://r' }), {
    message: /CLUSTER_SECRET is not: expected/,
  })
})

t.test('a backup needs a cluster, and takes URLs of several servers and Sentinels', async (t) => {
  const given = (options: object) => () =>
    completeOptions({ ...SECRETS, clusterSecret: 'c'.repeat(32), ...options })
  const redisUrl = 'redis://r'
  t.match(given({ redisUrl, clusterBackup: true })(), { redisBackupUrls: '' })
  const redisBackupUrls = 'redis://a, redis+sentinel://b,c/main,rediss://u:p@d/1'
  t.match(given({ redisUrl, clusterBackup: true, redisBackupUrls })(), { redisBackupUrls })
  t.strictSame(parseRedisUrls(redisBackupUrls), [
    ...['redis://a', 'redis+sentinel://b,c/main', 'rediss://u:p@d/1'],
  ])
  t.throws(given({ clusterBackup: true }), {
    message: /^CLUSTER_BACKUP is set and REDIS_URL is not/,
  })
  t.throws(given({ redisUrl, redisBackupUrls: 'redis://a,http://b' }), {
    message: /^REDIS_BACKUP_URLS has 18 bytes: expected redis:/,
  })
})

t.test('warns of an ADMIN_PASSWORD under 16 characters', async (t) => {
  const given = (password: string) =>
    configWarnings(completeOptions({ ...SECRETS, admin: { password } }))
  t.strictSame(given('a long passphrase'), [])
  const [warning, ...others] = given('short')
  t.match(warning, /^ADMIN_PASSWORD has fewer than 16 characters\..* Set a longer one/)
  t.notMatch(warning, /short/)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
})

t.test('refuses HTTP_WORKERS without a port that they can share', async (t) => {
  const given = (http: Options['http']) => completeOptions({ ...SECRETS, http: { ...http } })
  t.throws(() => given({ workers: 2, port: 0 }), {
    code: 'CONFIG_INVALID',
    message: 'HTTP_PORT is 0, HTTP_WORKERS is 2: expected a port that all workers share',
  })
  t.match(given({ workers: 2 }), { http: { workers: 2, port: 8080 } })
  t.match(given({ port: 0 }), { http: { workers: 0 } })
})

t.test('warns of an API_HOST that the API does not use', async (t) => {
  const given = (options: Partial<Options>) =>
    configWarnings(completeOptions({ ...SECRETS, apiHost: '10.0.0.5', ...options }))
  const [warning, ...others] = given({ metrics: { port: 9090 } })
  t.match(warning, /^API_HOST is set, API_PORT is not\..* Set API_PORT /)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
  t.strictSame(given({ metrics: { port: 9090 }, apiPort: 8081 }), [])
  t.strictSame(given({ apiPort: 8081 }), [])
})

t.test('warns of a METRICS_PORT that anyone may read', async (t) => {
  const given = (options: Partial<Options>, token = '') =>
    configWarnings(completeOptions({ ...SECRETS, ...options, metrics: { port: 9090, token } }))
  const [warning, ...others] = given({})
  t.match(warning, /^METRICS_PORT is open .* Set METRICS_TOKEN, API_FROM or API_HOST\.$/)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
  t.strictSame(given({}, 't'.repeat(32)), [])
  t.strictSame(given({ apiFrom: '10.0.0.0/8' }), [])
  t.strictSame(given({ apiHost: '10.0.0.5', apiPort: 8081 }), [])
  for (const host of ['127.0.0.1', '::1', 'localhost']) t.strictSame(given({ http: { host } }), [])
})

t.test('rejects an unknown flag by its name', async (t) => {
  t.throws(() => parseFlags(['--http-prot', '80']), { message: /--http-prot/ })
})

t.test('TLS_CERT and TLS_KEY are set together or not at all', async (t) => {
  t.strictSame(completeOptions(SECRETS).tls, { cert: '', key: '' })
  const tls = { cert: '/cert.pem', key: '/key.pem' }
  t.strictSame(completeOptions({ ...SECRETS, tls }).tls, tls)
  t.throws(() => completeOptions({ ...SECRETS, tls: { cert: '/cert.pem' } }), {
    code: 'CONFIG_INVALID',
    message: 'TLS_KEY is not set, TLS_CERT is: expected both or none',
  })
  t.throws(() => completeOptions({ ...SECRETS, tls: { key: '/key.pem' } }), {
    message: 'TLS_CERT is not set, TLS_KEY is: expected both or none',
  })
})

t.test('reads a secret from its file, without the newlines at its end', async (t) => {
  const files: Record<string, string> = {
    '/run/hmac': `${'f'.repeat(32)}\n`,
    '/run/jwt': ` ${'j'.repeat(32)}\r\n`,
    '/run/two': 'x\n\n',
  }
  const read = (path: string) => files[path]!
  const { values } = parseFlags(['--jwt-secret-file', '/run/jwt'])
  const options = readOptions({ HMAC_SECRET_FILE: '/run/hmac', JWT_SECRET: '' }, values, read)
  t.same(options, { hmacSecret: 'f'.repeat(32), jwtSecret: ` ${'j'.repeat(32)}` })
  t.same(readOptions({ METRICS_TOKEN_FILE: '/run/two' }, {}, read), { metrics: { token: 'x' } })
})

t.test('each secret setting and the log level may be in a file, and no other', async (t) => {
  t.same(
    SETTINGS.filter(({ hasFile }) => hasFile).map(({ env }) => env),
    [
      ...['HMAC_SECRET', 'JWT_SECRET', 'SRT_PASSPHRASE', 'PLAYBACK_SECRET', 'ADMIN_PASSWORD'],
      ...[
        'REDIS_URL',
        'REDIS_BACKUP_URLS',
        'CLUSTER_SECRET',
        'WEBHOOK_SECRET',
        'METRICS_TOKEN',
        'LOG_LEVEL',
      ],
    ],
  )
  for (const { env, path, hasFile } of SETTINGS) {
    const options = readOptions({ [`${env}_FILE`]: '/run/it' }, {}, () => 'text')
    const expected = {}
    if (hasFile) writeSetting(expected, path, 'text')
    t.same(options, expected, env)
  }
  t.throws(() => parseFlags(['--http-port-file', 'x']), { message: /--http-port-file/ })
})

t.test('rejects a secret that is given twice, and a file without a value', async (t) => {
  const refused = (env: Record<string, string>, read?: (path: string) => string) => () =>
    readOptions(env, {}, read)
  t.throws(refused({ JWT_SECRET: 'a', JWT_SECRET_FILE: '/run/jwt' }), {
    code: 'CONFIG_INVALID',
    message: 'JWT_SECRET and JWT_SECRET_FILE are both set: expected one of them',
  })
  t.throws(
    refused({ SRT_PASSPHRASE_FILE: '/run/empty' }, () => '\n'),
    { message: 'SRT_PASSPHRASE_FILE is /run/empty: expected a file with a value, but it is empty' },
  )
  for (const text of ['one\ntwo\n', '\none', 'one\0']) {
    t.throws(
      refused({ HMAC_SECRET_FILE: '/run/lines' }, () => text),
      { message: 'HMAC_SECRET_FILE is /run/lines: expected one line without control characters' },
    )
  }
  t.throws(refused({ HMAC_SECRET_FILE: '/run/none' }), {
    message: 'HMAC_SECRET_FILE is /run/none: expected a file that this process can read (ENOENT)',
  })
})

t.test('a secret given as a flag has a warning that names the variables instead', async (t) => {
  const { values } = parseFlags([
    '--srt-port',
    '1',
    '--jwt-secret',
    's3cret',
    '--hmac-secret-file=/f',
  ])
  const warnings = flagWarnings(values)
  t.equal(warnings.length, 1)
  t.match(warnings[0], /^--jwt-secret is a secret\. .* Set JWT_SECRET .* or JWT_SECRET_FILE\.$/)
  t.notMatch(warnings[0], 's3cret')
  for (const { flag } of SETTINGS)
    t.ok(flagWarnings({ [flag]: 'x' }).every((it) => it.length <= 160))
})
