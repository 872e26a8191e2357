import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { flagWarnings, readSettings } from '../../src/config/environment.ts'
import { usableMemoryBytes } from '../../src/config/machine-memory.ts'
import { completeSettings, configWarnings } from '../../src/config/complete-settings.ts'
import { inOptionNames } from '../../src/config/option-names.ts'
import type { GivenSettings } from '../../src/config/schema.ts'
import { SETTINGS, writeSetting } from '../../src/config/setting-names.ts'
import {
  parseAddresses,
  parseFormats,
  parseRedisUrls,
  parseSecrets,
} from '../../src/config/setting-types.ts'
import { canReusePort } from '../../src/srt/io/socket.ts'
import { MAX_LATENCY_MS } from '../../src/srt/wire/limits.ts'
import { essentialSettings, GUIDE, settingsByGroup } from './settings-page.ts'

const SECRETS = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }

t.test('each setting is in one group of docs/settings.md', (t) => {
  const listed = Object.values(GUIDE).flatMap(Object.keys)
  t.strictSame(listed.toSorted(), SETTINGS.map(({ env }) => env).toSorted())
  t.end()
})

t.test('docs/settings.md and README.md hold the generated tables of settings', async (t) => {
  const pages = { 'docs/settings.md': settingsByGroup(), 'README.md': essentialSettings() }
  for (const [name, tables] of Object.entries(pages)) {
    const url = new URL(`../../${name}`, import.meta.url)
    const page = readFileSync(url, 'utf8')
    const place = /(?<=<!-- settings: [^>]* -->\n)[^]*?(?=<!-- settings end -->)/
    t.match(page, place, `${name} has their place`)
    if (process.env['UPDATE_DOCS'] === '1')
      writeFileSync(
        url,
        page.replace(place, () => tables),
      )
    else t.equal(place.exec(page)?.[0], tables, '`npm run docs` writes the tables')
  }
  const config = completeSettings(SECRETS)
  t.match(config, {
    http: { port: 8080 },
    srt: { port: 10_080, latencyMs: 120 },
  })
})

t.test('docs/api-reference.md names the longest latency that SRT_LATENCY_MS takes', async (t) => {
  const docs = readFileSync(new URL('../../docs/api-reference.md', import.meta.url), 'utf8')
  t.match(docs, new RegExp(`^\\| \`latency_ms\` .* at most ${MAX_LATENCY_MS} *\\|$`, 'm'))
})

t.test(
  'WATCH_FRAME_ANCESTORS takes sources of frame-ancestors, and nothing that ends these',
  async (t) => {
    const settle = (watchFrameAncestors: string) =>
      completeSettings({ ...SECRETS, watchFrameAncestors }).watchFrameAncestors
    const accepted = [
      ...['', 'none', "'none'", 'self https://a.example'],
      "'self' https://*.a.example:* http://localhost:8080",
    ]
    for (const sites of accepted) {
      t.equal(settle(sites), sites)
    }
    for (const sites of [
      'selfish',
      "'none' 'self'",
      'none self',
      "'self'; sandbox",
      "'self'\n",
      'https://a.example/x',
    ]) {
      t.throws(
        () => settle(sites),
        { code: 'CONFIG_INVALID', message: /WATCH_FRAME_ANCESTORS/ },
        sites,
      )
    }
  },
)

t.test('HLS_FORMATS names formats in any order', async (t) => {
  t.same(parseFormats(completeSettings(SECRETS).hls.formats), ['ts', 'cmaf'])
  t.same(parseFormats('cmaf, ts'), ['ts', 'cmaf'])
  t.same(parseFormats('cmaf'), ['cmaf'])
  for (const formats of ['cmaf,ts', 'ts', 'cmaf']) {
    t.equal(completeSettings({ ...SECRETS, hls: { formats } }).hls.formats, formats)
  }
  for (const formats of ['', 'fmp4', 'ts,', 'ts cmaf', 'TS']) {
    t.throws(
      () => completeSettings({ ...SECRETS, hls: { formats } }),
      { message: `HLS_FORMATS is "${formats}": expected ts, cmaf, or both with a comma between` },
      formats,
    )
  }
})

t.test('CACHE_MAX_MIB is a quarter of the memory unless set', async (t) => {
  t.equal(completeSettings(SECRETS, 2 * 1024 ** 3).cache.maxMib, 512)
  t.equal(
    completeSettings(SECRETS).cache.maxMib,
    completeSettings(SECRETS, usableMemoryBytes()).cache.maxMib,
    'of this machine by default',
  )
  t.equal(completeSettings({ ...SECRETS, cache: { maxMib: 100 } }).cache.maxMib, 100)
  t.match(settingsByGroup(), '| `CACHE_MAX_MIB` | a quarter of memory | a whole number from 16 to ')
})

t.test('a setting is named in the environment and as a flag after its path', async (t) => {
  const names = new Set(SETTINGS.map(({ env, flag }) => `${env} ${flag}`))
  t.ok(names.has('HLS_MAX_SEGMENT_SEC hls-max-segment-sec'))
  t.ok(names.has('RECONNECT_GRACE_SEC reconnect-grace-sec'))
  t.ok(names.has('PUBLIC_URL public-url'))
  t.ok(names.has('ARCHIVE archive'), 'unless the schema says otherwise')
  t.ok(names.has('AWS_ACCESS_KEY_ID aws-access-key-id'))
})

t.test('a flag overrides the environment, and an empty variable counts as not set', async (t) => {
  const flags = { 'srt-port': '7000', 'hls-segment-sec': '1.5' }
  const env = {
    ...{ SRT_PORT: '6000', HTTP_PORT: '' },
    ...{ HMAC_SECRET: SECRETS.hmacSecret, JWT_SECRET: SECRETS.jwtSecret },
  }
  const config = completeSettings(readSettings(env, flags) as GivenSettings)
  t.match(config, {
    srt: { port: 7000 },
    http: { port: 8080 },
    hls: { segmentSec: 1.5 },
    jwtSecret: SECRETS.jwtSecret,
  })
})

t.test('the program refuses a secret under 32 characters, of which a library warns', async (t) => {
  for (const name of ['HMAC_SECRET', 'JWT_SECRET', 'CLUSTER_SECRET']) {
    const error = t.throws(() => readSettings({ [name]: 'tiny-s3cret' }, {}), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`^${name} has 11 bytes: expected at least 32 characters without a comma`),
    }) as Error
    t.notMatch(error.message, /tiny/)
  }
  const flags = { 'hmac-secret-file': '/run/hmac' }
  t.throws(() => readSettings({}, flags, () => 'tiny\n'), { message: /^HMAC_SECRET has 4 bytes/ })
  t.match(completeSettings({ ...SECRETS, hmacSecret: 'tiny' }), { hmacSecret: 'tiny' })
})

t.test('names all wrong settings at once, and all broken rules, without a secret', async (t) => {
  const env = {
    ...{ HTTP_PORT: 'eighty', SRT_PORT: '70000', HMAC_SECRET: 'tiny-s3cret' },
    ...{ WEBHOOK_SECRET: 'my s3cret', JWT_SECRET_FILE: '/run/none' },
  }
  const unreadable = new Map<string, string>()
  const options = readSettings(env, {}, undefined, ({ env: name }, { message }) =>
    unreadable.set(name, message),
  ) as GivenSettings
  const values = t.throws(() => completeSettings(options, undefined, unreadable), {
    code: 'CONFIG_INVALID',
  }) as Error
  t.strictSame(
    values.message.split('\n').map((line) => line.trim().split(':')[0]),
    [
      'several settings are wrong',
      'HMAC_SECRET has 11 bytes',
      'JWT_SECRET_FILE is /run/none',
      'HTTP_PORT is "eighty"',
      'SRT_PORT is 70000',
      'WEBHOOK_SECRET has 9 bytes',
    ],
  )
  t.notMatch(values.message, /s3cret/)
  const broken = { ...SECRETS, tls: { cert: '/c.pem' }, http: { port: 0, workers: 2 } }
  t.throws(() => completeSettings({ ...broken, jwtSecret: SECRETS.hmacSecret }), {
    message:
      /^several settings are wrong:\n {2}HMAC_SECRET and JWT_SECRET .*\n {2}TLS_KEY .*\n {2}HTTP_PORT is 0/,
  })
})

t.test('rejects a bad value with its setting, the value and the allowed values', async (t) => {
  const refused = (env: Record<string, string>) => () =>
    completeSettings({ ...SECRETS, ...readSettings(env, {}) })
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
  t.throws(refused({ EDGE_OF: 'https://op:s3cret@origin' }), {
    message:
      'EDGE_OF is "https://…@origin": expected unix:/path, or an http or https URL without credentials',
  })
  t.throws(refused({ HLS_SEGMENT_SEC: '12', HLS_MAX_SEGMENT_SEC: '8' }), {
    message: 'HLS_MAX_SEGMENT_SEC is 8: expected at least HLS_SEGMENT_SEC, 12',
  })
})

t.test('accepts first, all or a program number as TS_PROGRAM', async (t) => {
  const given = (program: string) =>
    completeSettings({ ...SECRETS, ...readSettings({ TS_PROGRAM: program }, {}) }).ts.program
  for (const text of ['first', 'all', '1', '007', '65535']) t.equal(given(text), text)
  t.equal(given(''), 'first', 'empty is not set')
  for (const text of ['0', '65536', '-1', '1.5', 'First', 'one', '100000']) {
    const message = `TS_PROGRAM is "${text}": expected first, all, or a program number from 1 to 65535`
    t.throws(() => given(text), { code: 'CONFIG_INVALID', message })
  }
})

t.test('accepts one or more addresses, or a single wildcard, as SRT_HOST', async (t) => {
  const given = (host: string) => () => completeSettings({ ...SECRETS, srt: { host } }).srt.host
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
      completeSettings({ ...SECRETS, [key]: undefined })
    t.throws(without('hmacSecret'), { message: /^HMAC_SECRET is not set: .*millrace keygen/ })
    t.throws(without('jwtSecret'), { message: /^JWT_SECRET is not set: .*millrace keygen/ })
    t.throws(() => completeSettings({ ...SECRETS, hmacSecret: '' }), {
      message: /^HMAC_SECRET is empty/,
    })
    const notText = { ...SECRETS, hmacSecret: 4711 } as unknown as GivenSettings
    t.throws(() => completeSettings(notText), { message: /^HMAC_SECRET is not text/ })
    t.throws(() => completeSettings(notText), { message: /^((?!4711).)*$/ })
    const passphrase = (text: string) => () =>
      completeSettings({ ...SECRETS, srt: { passphrase: text } })
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
    completeSettings({ hmacSecret, jwtSecret }).hmacSecret
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
  const equal: [string, GivenSettings][] = [
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
    const error = t.throws(() => completeSettings(options), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`^${names} are the same: expected different secrets`),
    })
    t.ok((error as Error).message.length <= 160)
  }
  const webhook = { secret: `whsec_${random}` }
  t.match(completeSettings({ hmacSecret: same, jwtSecret: other, webhook }).webhook, webhook)
})

t.test('rejects a METRICS_TOKEN that no Authorization header can hold', async (t) => {
  const given = (token: string) => () => completeSettings({ ...SECRETS, metrics: { token } })
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

t.test('accepts an archive in a bucket, with the credentials that all S3 tools take', async (t) => {
  const given = (env: Record<string, string>) => () =>
    completeSettings({ ...SECRETS, ...readSettings(env, {}) }).archive
  const key = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 's3cret/+=' }
  t.match(given({})(), { mode: 'auto', url: '', endpoint: '', region: 'us-east-1', maxMib: 256 })
  t.match(given(key)(), { url: '', accessKeyId: 'AKIA' }, 'other programs may need them')
  for (const url of ['s3://archive', 's3://a.b-c/', 's3://archive/live/2026', 's3://archive/ä b+/'])
    t.match(given({ ...key, ARCHIVE_URL: url })(), { url, secretAccessKey: 's3cret/+=' })
  t.equal(given({ ARCHIVE_URL: 's3://archive', ARCHIVE: 'off' })().mode, 'off')
  const wrong = ['archive', 'https://archive/live', 's3://', 's3:///live', 's3://ab', 's3://a_b/..']
  for (const url of [
    ...wrong,
    's3://archive/./live',
    's3://archive//live',
    's3://archive/live//',
  ]) {
    const message = `ARCHIVE_URL is "${url}": expected \`s3://bucket\` or \`s3://bucket/prefix\``
    t.throws(given({ ...key, ARCHIVE_URL: url }), { code: 'CONFIG_INVALID', message })
  }
  const alone = 'is set and ARCHIVE_URL is not: expected the bucket of the archive'
  const url = { ARCHIVE_URL: 's3://archive' }
  const refused: [Record<string, string>, string][] = [
    [{ ARCHIVE: 'all' }, `ARCHIVE ${alone}`],
    [{ ARCHIVE: 'request' }, `ARCHIVE ${alone}`],
    [{ ARCHIVE_ENDPOINT: 'http://127.0.0.1:9000' }, `ARCHIVE_ENDPOINT ${alone}`],
    [{ ARCHIVE_PUBLIC_URL: 'https://cdn.example.org' }, `ARCHIVE_PUBLIC_URL ${alone}`],
    [{ HLS_DVR_SEC: '3600' }, `HLS_DVR_SEC ${alone}`],
    [{ ...url, HLS_DVR_SEC: '3600', ARCHIVE: 'off' }, 'HLS_DVR_SEC is set and ARCHIVE is off'],
    [{ ...url, AWS_SECRET_ACCESS_KEY: 's3cret' }, 'ARCHIVE_URL is set and AWS_ACCESS_KEY_ID is'],
    [{ ...url, AWS_ACCESS_KEY_ID: 'AKIA' }, 'ARCHIVE_URL is set and AWS_SECRET_ACCESS_KEY is'],
    [{ AWS_SECRET_ACCESS_KEY: 's3cret key' }, 'AWS_SECRET_ACCESS_KEY has 10 bytes: expected '],
    [{ AWS_SECRET_ACCESS_KEY: SECRETS.jwtSecret }, 'JWT_SECRET and AWS_SECRET_ACCESS_KEY are'],
    [{ ARCHIVE_REGION: 'eu west' }, 'ARCHIVE_REGION is "eu west": expected letters'],
  ]
  for (const [env, message] of refused) {
    const error = t.throws(given(env), { code: 'CONFIG_INVALID' }) as Error
    t.ok(error.message.startsWith(message), error.message)
    t.notMatch(error.message, 's3cret')
    t.ok(error.message.length <= 160)
  }
})

t.test('rejects DEFAULT_WEBHOOK_URLS that webhooks may not be sent to', async (t) => {
  const given = (defaultWebhookUrls: string, allow = '') =>
    completeSettings({ ...SECRETS, defaultWebhookUrls, webhook: { allow } }).defaultWebhookUrls
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
    completeSettings({ ...SECRETS, ...readSettings(env, {}) }).webhook
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
    const error = t.throws(() => completeSettings(options as unknown as GivenSettings), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`^${env} is (not text|\\["x{38}…): expected `),
    })
    return (error as Error).message
  })
  t.equal(messages.length, SETTINGS.length)
  for (const message of messages) t.ok(message.length <= 160, message)
})

t.test('warns of a secret under 32 characters', async (t) => {
  t.strictSame(configWarnings(completeSettings(SECRETS)), [])
  const [warning] = configWarnings(completeSettings({ ...SECRETS, jwtSecret: 'short' }))
  t.match(warning, /^JWT_SECRET has fewer than 32 characters/)
  t.notMatch(warning, /short/)
})

t.test('warns of a CLUSTER_SECRET under 32 characters, and accepts none and a pair', async (t) => {
  const given = (clusterSecret: string) => completeSettings({ ...SECRETS, clusterSecret })
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
    completeSettings({ ...SECRETS, ...readSettings(env, {}) })
  t.match(given({})(), { nodeUrl: '', role: 'all' })
  t.match(given({ NODE_URL: 'http://10.0.0.5:8080', ROLE: 'edge' })(), { role: 'edge' })
  for (const text of ['10.0.0.5:8080', 'ftp://a', 'http://', 'http://[']) {
    t.throws(given({ NODE_URL: text }), { message: /^NODE_URL is ".*: expected an http or https/ })
  }
  t.throws(given({ ROLE: 'origin' }), { message: /^ROLE is "origin": expected / })
})

t.test('accepts URLs of Redis and of Sentinels as REDIS_URL, with CLUSTER_SECRET', async (t) => {
  const clusterSecret = 'c'.repeat(32)
  const given = (redisUrl: string) => () =>
    completeSettings({ ...SECRETS, redisUrl, clusterSecret })
  for (const url of ['redis://r', 'rediss://u:p@r:7000/1', 'redis+sentinel://a,b/main']) {
    t.match(given(url)(), { redisUrl: url })
  }
  t.throws(given('http://redis'), { message: /^REDIS_URL has 12 bytes: expected a redis:/ })
  t.throws(() => completeSettings({ ...SECRETS, redisUrl: 'redis://r' }), {
    message: /CLUSTER_SECRET is not: expected/,
  })
})

t.test('a backup needs a cluster, and takes URLs of several servers and Sentinels', async (t) => {
  const given = (options: object) => () =>
    completeSettings({ ...SECRETS, clusterSecret: 'c'.repeat(32), ...options })
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
    configWarnings(completeSettings({ ...SECRETS, admin: { password } }))
  t.strictSame(given('a long passphrase'), [])
  const [warning, ...others] = given('short')
  t.match(warning, /^ADMIN_PASSWORD has fewer than 16 characters\..* Set a longer one/)
  t.notMatch(warning, /short/)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
})

t.test('refuses HTTP_WORKERS without a port that they can share', async (t) => {
  const given = (http: GivenSettings['http']) => completeSettings({ ...SECRETS, http: { ...http } })
  t.throws(() => given({ workers: 2, port: 0 }), {
    code: 'CONFIG_INVALID',
    message: 'HTTP_PORT is 0, HTTP_WORKERS is 2: expected a port that all workers share',
  })
  t.match(given({ workers: 2 }), { http: { workers: 2, port: 8080 } })
  t.match(given({ port: 0 }), { http: { workers: 0 } })
})

t.test('SRT_REUSE_PORT needs a cluster, and a Node.js that has it', async (t) => {
  const given = (options: Partial<GivenSettings>) => () =>
    completeSettings({ ...SECRETS, srt: { reusePort: true }, ...options })
  const cluster = { redisUrl: 'redis://127.0.0.1', clusterSecret: 'c'.repeat(32) }
  if (canReusePort(process.versions.node)) {
    t.throws(given({}), { message: /^SRT_REUSE_PORT is true and REDIS_URL is not set/ })
    t.match(given(cluster)(), { srt: { reusePort: true } })
  } else {
    const { node } = process.versions
    const message = `SRT_REUSE_PORT is true and this is Node.js ${node}: expected 22.12 or newer`
    t.throws(given(cluster), { code: 'CONFIG_INVALID', message })
  }
})

t.test('INGEST_WORKERS needs ports to share, one machine, and a Node.js that has it', async (t) => {
  const given = (options: Partial<GivenSettings>) => () =>
    completeSettings({ ...SECRETS, ingest: { workers: 2 }, ...options })
  const cluster = { redisUrl: 'redis://127.0.0.1', clusterSecret: 'c'.repeat(32) }
  t.throws(given(cluster), { message: /INGEST_WORKERS is 2 and REDIS_URL is set: expected/ })
  t.throws(given({ srt: { port: 0 } }), { message: /INGEST_WORKERS is 2 and SRT_PORT is 0/ })
  t.throws(given({ http: { port: 0 } }), { message: /INGEST_WORKERS is 2 and HTTP_PORT is 0/ })
  t.throws(given({ srt: { streamPorts: '20000-20256' } }), { message: /at most 256 ports/ })
  if (canReusePort(process.versions.node)) {
    t.match(given({})(), { ingest: { workers: 2 } })
  } else {
    const { node } = process.versions
    const message = `INGEST_WORKERS is 2 and this is Node.js ${node}: expected 22.12 or newer`
    t.throws(given({}), { code: 'CONFIG_INVALID', message })
  }
})

t.test('a node of a cluster listens on all of SRT_STREAM_PORTS, for streams alone', async (t) => {
  const cluster = { redisUrl: 'redis://127.0.0.1', clusterSecret: 'c'.repeat(32) }
  const given =
    (streamPorts: string, options: Partial<GivenSettings> = cluster) =>
    () =>
      completeSettings({ ...SECRETS, ...options, srt: { streamPorts }, srtla: { port: 5000 } })
  t.match(given('20000-20255')(), { srt: { streamPorts: '20000-20255' } })
  t.throws(given('20000-20256'), {
    code: 'CONFIG_INVALID',
    message: /^SRT_STREAM_PORTS is 20000-20256: expected at most 256 ports in a cluster/,
  })
  t.throws(given('10080-10090'), { message: /and SRT_PORT is 10080: expected ports without it/ })
  t.throws(given('4990-5000'), { message: /and SRTLA_PORT is 5000: expected ports without it/ })
  t.match(given('1-65535', {})(), { srt: { streamPorts: '1-65535' } }, 'in one process')
  t.match(
    given('1-65535', { ...cluster, role: 'edge' })(),
    { role: 'edge' },
    'edges take no encoders',
  )
})

t.test('warns of an API_HOST that the API does not use', async (t) => {
  const given = (options: Partial<GivenSettings>) =>
    configWarnings(completeSettings({ ...SECRETS, apiHost: '10.0.0.5', ...options }))
  const [warning, ...others] = given({ metrics: { port: 9090 } })
  t.match(warning, /^API_HOST is set, API_PORT is not\..* Set API_PORT /)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
  t.strictSame(given({ metrics: { port: 9090 }, apiPort: 8081 }), [])
  t.strictSame(given({ apiPort: 8081 }), [])
})

t.test('warns of a METRICS_PORT that anyone may read', async (t) => {
  const given = (options: Partial<GivenSettings>, token = '') =>
    configWarnings(completeSettings({ ...SECRETS, ...options, metrics: { port: 9090, token } }))
  const [warning, ...others] = given({})
  t.match(warning, /^METRICS_PORT is open .* Set METRICS_TOKEN, API_FROM or API_HOST\.$/)
  t.ok(warning!.length <= 160)
  t.strictSame(others, [])
  t.strictSame(given({}, 't'.repeat(32)), [])
  t.strictSame(given({ apiFrom: '10.0.0.0/8' }), [])
  t.strictSame(given({ apiHost: '10.0.0.5', apiPort: 8081 }), [])
  for (const host of ['127.0.0.1', '::1', 'localhost']) t.strictSame(given({ http: { host } }), [])
})

t.test('TLS_CERT and TLS_KEY are set together or not at all', async (t) => {
  t.strictSame(completeSettings(SECRETS).tls, { cert: '', key: '' })
  const tls = { cert: '/cert.pem', key: '/key.pem' }
  t.strictSame(completeSettings({ ...SECRETS, tls }).tls, tls)
  t.throws(() => completeSettings({ ...SECRETS, tls: { cert: '/cert.pem' } }), {
    code: 'CONFIG_INVALID',
    message: 'TLS_KEY is not set, TLS_CERT is: expected both or none',
  })
  t.throws(() => completeSettings({ ...SECRETS, tls: { key: '/key.pem' } }), {
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
  const flags = { 'jwt-secret-file': '/run/jwt' }
  const options = readSettings({ HMAC_SECRET_FILE: '/run/hmac', JWT_SECRET: '' }, flags, read)
  t.same(options, { hmacSecret: 'f'.repeat(32), jwtSecret: ` ${'j'.repeat(32)}` })
  t.same(readSettings({ METRICS_TOKEN_FILE: '/run/two' }, {}, read), { metrics: { token: 'x' } })
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
        'AWS_ACCESS_KEY_ID',
        'AWS_SECRET_ACCESS_KEY',
        'AWS_SESSION_TOKEN',
        'METRICS_TOKEN',
        'LOG_LEVEL',
      ],
    ],
  )
  const text = 't'.repeat(32)
  for (const { env, path, hasFile } of SETTINGS) {
    const options = readSettings({ [`${env}_FILE`]: '/run/it' }, {}, () => text)
    const expected = {}
    if (hasFile) writeSetting(expected, path, text)
    t.same(options, expected, env)
  }
})

t.test('rejects a secret that is given twice, and a file without a value', async (t) => {
  const refused = (env: Record<string, string>, read?: (path: string) => string) => () =>
    readSettings(env, {}, read)
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
  const flags = { 'srt-port': '1', 'jwt-secret': 's3cret', 'hmac-secret-file': '/f' }
  const warnings = flagWarnings(flags)
  t.equal(warnings.length, 1)
  t.match(warnings[0], /^--jwt-secret is a secret\. .* Set JWT_SECRET .* or JWT_SECRET_FILE\.$/)
  t.notMatch(warnings[0], 's3cret')
  for (const { flag } of SETTINGS)
    t.ok(flagWarnings({ [flag]: 'x' }).every((it) => it.length <= 160))
})

t.test('messages can name the option of each setting', async (t) => {
  for (const { env, path } of SETTINGS)
    t.equal(inOptionNames(`${env} is 1, ${env}S is not`), `${path.join('.')} is 1, ${env}S is not`)
})

t.test('an option that does not exist is refused by its name', async (t) => {
  const options = { ...SECRETS, playback: { secret: 'x' }, http: { prot: 1, host: undefined } }
  t.throws(() => completeSettings(options), {
    code: 'CONFIG_INVALID',
    message:
      /several settings are wrong:\n {2}unknown option playback: .*\n {2}unknown option http\.prot: /,
  })
  t.ok(completeSettings({ ...SECRETS, logger: undefined } as GivenSettings))
})

t.test('a value in place of a group of options is refused, and not shown', async (t) => {
  const options = { ...SECRETS, http: true, admin: 's3cret', srt: undefined, hls: null }
  t.throws(() => completeSettings(options as unknown as GivenSettings), {
    code: 'CONFIG_INVALID',
    message: [
      'several settings are wrong:',
      'http must be an object or false',
      'admin must be an object',
    ].join('\n  '),
  })
})
