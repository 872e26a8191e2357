import t from 'tap'
import { parseRedisUrl } from '../../../src/cluster/registry/redis-url.ts'

t.test('a URL of one server has address, credentials, database and TLS', async (t) => {
  t.match(parseRedisUrl('redis://cache'), {
    tls: false,
    database: 0,
    addresses: [{ host: 'cache', port: 6379 }],
  })
  t.strictSame(parseRedisUrl('rediss://user:p%40ss@[::1]:6380/2'), {
    tls: true,
    username: 'user',
    password: 'p@ss',
    database: 2,
    addresses: [{ host: '::1', port: 6380 }],
    sentinel: {},
  })
  t.match(parseRedisUrl('redis://:secret@10.0.0.1'), { password: 'secret' })
})

t.test('a URL of Sentinels has their addresses and the name of the master', async (t) => {
  t.strictSame(parseRedisUrl('redis+sentinel://:secret@a:26380,b,10.0.0.3:1/main/3'), {
    tls: false,
    password: 'secret',
    database: 3,
    addresses: [
      { host: 'a', port: 26_380 },
      { host: 'b', port: 26_379 },
      { host: '10.0.0.3', port: 1 },
    ],
    masterName: 'main',
    sentinel: {},
  })
  t.match(parseRedisUrl('rediss+sentinel://a/main?sentinel_password=p%26%40'), {
    tls: true,
    sentinel: { password: 'p&@' },
  })
  const url = 'redis+sentinel://u:p@a/main/1?sentinel_username=watch&sentinel_password=secret'
  t.match(parseRedisUrl(url), {
    username: 'u',
    password: 'p',
    sentinel: { username: 'watch', password: 'secret' },
  })
})

t.test('a URL of another shape is refused without its password', async (t) => {
  const urls = [
    ...[
      '',
      'redis:',
      'redis://',
      'http://host',
      'redis://a,b',
      'redis://host/name',
      'redis://host/0/1',
    ],
    ...['redis://a?sentinel_password=secret', 'redis+sentinel://a/main?password=secret'],
    ...['redis+sentinel://a,b', 'redis+sentinel://a,b/', 'redis+sentinel://a,/main'],
    ...[
      'redis://host:0',
      'redis://host:65536',
      'redis://[1.2.3.4]',
      'redis://:secret@',
      'redis://:%zz@host',
    ],
  ]
  for (const url of urls) {
    t.throws(
      () => parseRedisUrl(url),
      { code: 'CONFIG_INVALID', message: /^REDIS_URL must be / },
      url,
    )
  }
})
