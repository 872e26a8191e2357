import { createHmac, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url))
const SECRETS = { HMAC_SECRET: 'h'.repeat(32), JWT_SECRET: 'j'.repeat(32) }

function millrace(args: readonly string[], env: Record<string, string> = {}, input = '') {
  const { HMAC_SECRET: _, JWT_SECRET: __, ...clean } = process.env
  const result = spawnSync(process.execPath, [CLI, ...args], {
    env: { ...clean, ...env },
    encoding: 'utf8',
    input,
    timeout: 60_000,
  })
  return { exit: result.status, out: result.stdout, err: result.stderr }
}

t.test('keygen prints 32 random bytes in hexadecimal', async (t) => {
  const [first, second] = [millrace(['keygen']), millrace(['keygen'])]
  t.match(first, { exit: 0, out: /^[0-9a-f]{64}\n$/ })
  t.not(first.out, second.out)
})

t.test(
  'sign prints the LT-SIGNATURE of the exact bytes of an argument or of standard input',
  async (t) => {
    const body = '{"stream_id": "studio"}\n'
    const signature = createHmac('sha256', SECRETS.HMAC_SECRET).update(body).digest('hex')
    t.equal(millrace(['sign', body], SECRETS).out, `${signature}\n`)
    t.equal(millrace(['sign'], SECRETS, body).out, `${signature}\n`)
    t.match(millrace(['sign', body]), { exit: 2, err: /HMAC_SECRET is not set/ })
  },
)

t.test('webhook-secret prints the key of webhooks as whsec_ and base64', async (t) => {
  const printed = (env: Record<string, string>) => millrace(['webhook-secret'], env)
  const ofHmac = `whsec_${Buffer.from(SECRETS.HMAC_SECRET).toString('base64')}\n`
  t.equal(
    printed({ ...SECRETS, HMAC_SECRET: `${SECRETS.HMAC_SECRET},${'o'.repeat(32)}` }).out,
    ofHmac,
  )
  const own = randomBytes(24).toString('base64')
  t.equal(printed({ ...SECRETS, WEBHOOK_SECRET: own }).out, `whsec_${own}\n`)
  t.match(printed({ ...SECRETS, WEBHOOK_SECRET: 'hush hush' }), {
    exit: 2,
    err: /WEBHOOK_SECRET has 9 bytes: expected base64 of 24 to 64 bytes/,
  })
})

t.test('sign takes the secret from HMAC_SECRET_FILE, and warns of one in a flag', async (t) => {
  const file = join(t.testdir({ hmac: `${SECRETS.HMAC_SECRET}\n` }), 'hmac')
  const signature = createHmac('sha256', SECRETS.HMAC_SECRET).update('{}').digest('hex')
  t.match(millrace(['sign', '{}'], { HMAC_SECRET_FILE: file }), {
    exit: 0,
    out: `${signature}\n`,
    err: '',
  })
  const flagged = millrace(['sign', '{}', '--hmac-secret', SECRETS.HMAC_SECRET])
  t.match(flagged, { exit: 0, out: `${signature}\n`, err: /^--hmac-secret is a secret\./ })
  t.notOk(flagged.err.includes(SECRETS.HMAC_SECRET))
})

t.test('serve exits 2 with advice for a missing secret or a bad setting', async (t) => {
  t.match(millrace(['serve']), { exit: 2, err: /HMAC_SECRET is not set: .*millrace keygen/ })
  t.match(millrace(['serve', '--srt-latency', '5'], SECRETS), { exit: 2, err: /--srt-latency/ })
  t.match(millrace(['edge']), { exit: 2, err: /EDGE_OF is not set/ })
  t.match(millrace(['sevre']), {
    exit: 2,
    err: /^millrace: unknown command 'sevre'\n\(Did you mean serve\?\)$/m,
  })
})

t.test('serve exits 1 with one line, the setting to change, for a port in use', async (t) => {
  const tcp = createServer()
  tcp.listen(0, '127.0.0.1')
  const udp = createSocket('udp4')
  udp.bind(0, '127.0.0.1')
  await Promise.all([once(tcp, 'listening'), once(udp, 'listening')])
  t.teardown(() => (tcp.close(), udp.close()))
  const env = {
    ...SECRETS,
    HTTP_HOST: '127.0.0.1',
    SRT_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    SRT_PORT: '0',
  }
  const httpPort = String((tcp.address() as AddressInfo).port)
  const srtPort = String(udp.address().port)
  t.match(millrace(['serve'], { ...env, HTTP_PORT: httpPort }), {
    exit: 1,
    err: new RegExp(`^millrace: .*${httpPort}.*HTTP_PORT.*\n$`),
  })
  t.match(millrace(['serve'], { ...env, SRT_PORT: srtPort }), {
    exit: 1,
    err: new RegExp(`^millrace: .*${srtPort}.*SRT_PORT.*\n$`),
  })
})

t.test('publish exits with the reason for a bad file or URL', async (t) => {
  t.match(millrace(['publish', 'clip.mpegts']), { exit: 2, err: /missing required argument 'url'/ })
  t.match(millrace(['publish', '/nowhere.mpegts', 'srt://127.0.0.1:1']), {
    exit: /[12]/,
    err: /nowhere/,
  })
})

t.test('--help and --version print to standard output', async (t) => {
  t.match(millrace(['--help']), { exit: 0, out: /Usage: millrace [\s\S]*\n {2}serve /, err: '' })
  t.match(millrace(['--version']), { exit: 0, out: /^\d+\.\d+\.\d+\n$/ })
  t.match(millrace([]), { exit: 2, out: '', err: /Usage: millrace / })
})

t.test('sign-playback prints a playlist URL with a token', async (t) => {
  const env = { PLAYBACK_SECRET: 'p'.repeat(32), PUBLIC_URL: 'https://live.example.org/' }
  const signedSec = Math.floor(Date.now() / 1000)
  const { exit, out } = millrace(['sign-playback', 'studio', '--ttl', '60'], env)
  t.equal(exit, 0)
  const [, expires, signature] =
    /^https:\/\/live\.example\.org\/t\/(\d+)\.([\w-]+)\/video\/studio\/master\.m3u8\n$/.exec(out) ??
    []
  const hmac = createHmac('sha256', env.PLAYBACK_SECRET).update(`playback:studio:${expires}`)
  t.equal(signature, hmac.digest('base64url'))
  const leftSec = Number(expires) - 60
  t.ok(leftSec >= signedSec && leftSec <= Math.ceil(Date.now() / 1000))
  t.match(millrace(['sign-playback', 'studio', '--address', '::1'], env), { out: /\d\.ip\./ })
  t.match(millrace(['sign-playback', 'studio']), { exit: 2, err: /PLAYBACK_SECRET is not set/ })
})
