import * as fc from 'fast-check'
import t from 'tap'
import { parseSrtUrl } from '../../../src/srt/io/srt-url.ts'

const KEY = 'mode=publish,rid=demo,token=eyJhbGciOiJIUzI1NiJ9.e30.a-b_c'

t.test('reads the URL as the API and the webhooks give it', async (t) => {
  t.same(parseSrtUrl(`srt://stream.example.com:10080?streamid=${KEY}`), {
    host: 'stream.example.com',
    port: 10_080,
    streamId: KEY,
  })
})

t.test('reads the latency in milliseconds, before or after the stream key', async (t) => {
  t.equal(parseSrtUrl(`srt://a:1?latency=400&streamid=${KEY}`).latencyMs, 400)
  t.equal(parseSrtUrl(`srt://a:1?streamid=${KEY}&latency=0`).latencyMs, 0)
  t.equal(parseSrtUrl(`srt://a:1?streamid=${KEY}&mode=caller`).streamId, KEY)
})

t.test('reads passphrase and key length under the names of libsrt', async (t) => {
  t.match(parseSrtUrl(`srt://a:1?streamid=${KEY}&passphrase=0123456789&pbkeylen=32`), {
    streamId: KEY,
    passphrase: '0123456789',
    keyLengthBytes: 32,
  })
  const { passphrase, keyLengthBytes } = parseSrtUrl('srt://a:1?passphrase=a%26b+%C3%A9 7890')
  t.equal(passphrase, 'a&b+é 7890')
  t.equal(keyLengthBytes, undefined, 'the caller has a default')
})

t.test('reads a stream key with or without percent-encoding', async (t) => {
  const read = (text: string) => parseSrtUrl(`srt://a:1?streamid=${text}`).streamId
  t.equal(read(encodeURIComponent(KEY)), KEY)
  t.equal(read('#!::r=live/a,m=publish'), '#!::r=live/a,m=publish')
  t.equal(read('a+b=c==,d?e'), 'a+b=c==,d?e')
  t.equal(parseSrtUrl('srt://a:1').streamId, '')
  fc.assert(
    fc.property(fc.string({ maxLength: 100, unit: 'grapheme-composite' }), (text) => {
      fc.pre(Buffer.byteLength(text) <= 512)
      return read(encodeURIComponent(text)) === text
    }),
  )
})

t.test('reads IPv4 and IPv6 addresses', async (t) => {
  t.match(parseSrtUrl('srt://127.0.0.1:9000'), { host: '127.0.0.1', port: 9000 })
  t.match(parseSrtUrl('srt://[::1]:9000/?streamid=x'), { host: '::1', port: 9000 })
})

t.test('normalizes hosts, so that no other form of an address passes for a name', async (t) => {
  const hostOf = (host: string) => parseSrtUrl(`srt://${host}:9000`).host
  for (const host of ['127.1', '0x7f.0.0.1', '2130706433', '0177.0.0.1'])
    t.equal(hostOf(host), '127.0.0.1', host)
  t.equal(hostOf('[0:0:0:0:0:ffff:7f00:1]'), '::ffff:7f00:1')
  t.equal(hostOf('Camera.Example.ORG.'), 'camera.example.org')
  t.equal(hostOf('kamera.exämple'), 'kamera.xn--exmple-cua')
  t.equal(parseSrtUrl('srt://a:80').port, 80, 'no port is a default')
})

t.test('an error has the reason and the expected form, never the stream key', async (t) => {
  const wrong: Record<string, RegExp> = {
    '': /srt:\/\//,
    'http://a:1?streamid=SECRET': /does not begin with srt/,
    'srt://a?streamid=SECRET': /port is missing/,
    'srt://a:0?streamid=SECRET': /port is missing/,
    'srt://a:70000?streamid=SECRET': /srt:\/\/host:port/,
    'srt://:1?streamid=SECRET': /srt:\/\/host:port/,
    'srt://a b:1?streamid=SECRET': /srt:\/\/host:port/,
    'srt://1.2.3.400:1?streamid=SECRET': /no name and no address/,
    'srt://a:1/live?streamid=SECRET': /user name, a path/,
    'srt://SECRET@a:1': /user name, a path/,
    'srt://:SECRET@a:1': /user name, a path/,
    'srt://a:1#!::r=SECRET': /a fragment/,
    'srt://a:1?streamid=SECRET%zz': /streamid has a percent sign/,
    'srt://a:1?streamid=SECRET&streamid=SECRET': /streamid is repeated/,
    'srt://a:1?streamid=SECRET&pkt_size=1316': /streamid, latency, passphrase, pbkeylen, mode/,
    'srt://a:1?streamid=SECRET&mode=listener': /mode is not caller/,
    'srt://a:1?streamid=SECRET&latency=2s': /not a whole number of milliseconds/,
    'srt://a:1?streamid=SECRET&latency=65536': /up to 65535/,
    'srt://a:1?passphrase=SECRET': /passphrase has 6 bytes, SRT allows 10 to 80/,
    [`srt://a:1?passphrase=${'SECRET'.repeat(14)}`]: /passphrase has 84 bytes/,
    'srt://a:1?streamid=SECRET&passphrase=': /passphrase has 0 bytes/,
    'srt://a:1?passphrase=SECRETSECRET&pbkeylen=20': /pbkeylen is not 16, 24 or 32/,
    'srt://a:1?passphrase=SECRETSECRET&pbkeylen=': /pbkeylen is not 16, 24 or 32/,
    'srt://a:1?streamid=SECRET&pbkeylen=16': /pbkeylen is set without a passphrase/,
    [`srt://a:1?streamid=${'SECRET'.repeat(100)}`]: /600 bytes, SRT carries at most 512/,
  }
  for (const [url, message] of Object.entries(wrong)) {
    t.throws(() => parseSrtUrl(url), { name: 'RangeError', message })
    try {
      parseSrtUrl(url)
    } catch (error) {
      t.notMatch((error as Error).message, /SECRET/)
      t.ok((error as Error).message.length <= 160)
    }
  }
})
