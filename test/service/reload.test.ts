/**
 * SIGHUP to a real process, which reads files of secrets, of the log level and of TLS again.
 */
import { randomBytes, X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import t, { type Test } from 'tap'
import type { EndpointName } from '../../src/client/index.ts'
import { signPlaybackToken } from '../../src/index.ts'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { callStream, openSession } from '../http/http2-client.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { start } from '../support/process.ts'
import { callApi, startService, tryApi } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const CLIP = fileURLToPath(new URL('../../fixtures/demo.mpegts', import.meta.url))

const createSecret = () => randomBytes(32).toString('hex')

const createSecrets = () => ({
  hmac: createSecret(),
  jwt: createSecret(),
  admin: createSecret(),
  metrics: createSecret(),
  playback: createSecret(),
})

/** Starts the service with its secrets and log level in files. */
async function serve(t: Test, env: Record<string, string> = {}) {
  const folder = t.testdir()
  const write = (name: string, text: string) => writeFileSync(join(folder, name), `${text}\n`)
  const secrets = createSecrets()
  for (const [name, secret] of Object.entries(secrets)) write(name, secret)
  write('level', 'info')
  const program = start(t, process.execPath, [CLI, 'serve'], {
    env: {
      HMAC_SECRET_FILE: join(folder, 'hmac'),
      JWT_SECRET_FILE: join(folder, 'jwt'),
      ADMIN_PASSWORD_FILE: join(folder, 'admin'),
      METRICS_TOKEN_FILE: join(folder, 'metrics'),
      PLAYBACK_SECRET_FILE: join(folder, 'playback'),
      LOG_LEVEL_FILE: join(folder, 'level'),
      ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: '0', SRT_HOST: '127.0.0.1', SRT_PORT: '0' },
      PUBLIC_HOST: '127.0.0.1',
      ...env,
    },
  })
  const [, url = ''] = await until('listening', () => /"http":"([^"]+)"/.exec(program.output()))
  const count = (text: string) => program.output().split(text).length - 1
  /** @param line  part of the log line that tells the result */
  const reload = async (line = '"settings reloaded"') => {
    const before = count(line)
    program.kill('SIGHUP')
    await until(line, () => count(line) > before)
  }
  const api = (name: EndpointName, secret: string, body: object = {}) =>
    callApi(url, name, { stream_id: 'studio', ...body }, secret)
  /** HTTP status of a call with this secret. */
  const apiStatus = async (secret: string) =>
    (await tryApi(url, 'status', { stream_id: 'studio' }, secret)).status
  return { program, url, secrets, write, reload, api, apiStatus, count }
}

/** @returns whether an encoder with this key is admitted */
async function isAdmitted(url: string): Promise<boolean> {
  const stop = new AbortController()
  const onEvent = () => stop.abort()
  return publish({ file: CLIP, url, signal: stop.signal, onEvent }).then(
    () => true,
    () => false,
  )
}

t.test('SIGHUP replaces a secret by a pair, and the pair by the new one', async (t) => {
  const { url, secrets: old, write, reload, api, apiStatus } = await serve(t)
  const hooks = await startWebhookReceiver(t)
  const fresh = createSecrets()
  const statusOf = async (path: string, headers = {}) =>
    (await fetch(url + path, { headers })).status
  /** Status codes of requests with the secrets of `from`. */
  const accepted = async (from: typeof old) => {
    const expiresAt = new Date(Date.now() + 60_000)
    const token = signPlaybackToken({ streamId: 'studio', secret: from.playback, expiresAt })
    return {
      api: await apiStatus(from.hmac),
      metrics: await statusOf('/metrics', { authorization: `Bearer ${from.metrics}` }),
      playback: await statusOf(`/t/${token}/video/studio`),
    }
  }
  /** Whether webhooks have the signature of each secret. */
  const webhookSigners = async (hmacSecret: string) => {
    await api('start-stream', hmacSecret, { webhook_urls: [hooks.url] })
    const { headers, bytes } = await hooks.next()
    return [old, fresh].map(({ hmac }) => {
      try {
        new Webhook(hmac, { format: 'raw' }).verify(bytes, headers as Record<string, string>)
        return true
      } catch {
        return false
      }
    })
  }
  const all = { api: 200, metrics: 200, playback: 204 }
  const none = { api: 403, metrics: 401, playback: 403 }

  const first = await api('start-stream', old.hmac)
  const oldKey = String(first.body.data['srt_url'])
  const encoder = publishDemo(t, oldKey)
  await until('an encoder', async () => {
    return (await api('status', old.hmac)).body.data['status'] === 'STREAMING'
  })
  t.strictSame([await accepted(old), await accepted(fresh)], [all, none])
  t.strictSame(await webhookSigners(old.hmac), [true, false])

  for (const name of ['hmac', 'jwt', 'metrics', 'playback'] as const) {
    write(name, `${fresh[name]},${old[name]}`)
  }
  await reload()
  t.strictSame([await accepted(old), await accepted(fresh)], [all, all])
  t.strictSame(await webhookSigners(old.hmac), [true, true])

  for (const [name, secret] of Object.entries(fresh)) write(name, secret)
  await reload()
  t.strictSame([await accepted(old), await accepted(fresh)], [none, all])
  t.strictSame(await webhookSigners(fresh.hmac), [false, true])

  t.match(
    (await api('status', fresh.hmac)).body.data,
    { status: 'STREAMING', totals: { publishers: 1 } },
    'the connected encoder stays',
  )
  encoder.stop()
  await encoder.end
  t.equal(await isAdmitted(oldKey), false, 'a key that the old secret signed')
  const again = await api('start-stream', fresh.hmac)
  t.equal(await isAdmitted(String(again.body.data['srt_url'])), true)
})

t.test('SIGHUP replaces the password of the dashboard, and ends its sessions', async (t) => {
  const { url, secrets, write, reload } = await serve(t)
  const logIn = async (text: string) => {
    const headers = { origin: url, 'content-type': 'application/json' }
    const body = JSON.stringify({ password: text })
    const reply = await fetch(`${url}/admin/login`, { method: 'POST', headers, body })
    return reply.headers.get('set-cookie')?.split(';')[0]
  }
  const isOpen = async (cookie: string) => {
    const reply = await fetch(`${url}/admin/session`, { headers: { cookie } })
    return ((await reply.json()) as { data: { open: boolean } }).data.open
  }
  const session = (await logIn(secrets.admin))!
  t.equal(await isOpen(session), true)
  const password = createSecret()
  write('admin', password)
  await reload()
  t.equal(await isOpen(session), false)
  t.equal(await logIn(secrets.admin), undefined)
  t.equal(await isOpen((await logIn(password))!), true)
})

t.test('SIGHUP changes the log level, also for streams that run', async (t) => {
  const { program, url, secrets, write, reload, api, count } = await serve(t)
  await api('start-stream', secrets.hmac)
  await until('a line at info', () => count('"stream started"') === 1)
  await until('a line of the call', () => count('"API call"') === 1)
  // No line tells of a reload to `warn`; a token that is replaced with it does.
  const token = createSecret()
  write('metrics', token)
  write('level', 'warn')
  program.kill('SIGHUP')
  await until('the reload', async () => {
    const headers = { authorization: `Bearer ${token}` }
    return (await fetch(`${url}/metrics`, { headers })).status === 200
  })
  await api('stop-stream', secrets.hmac)
  await api('start-stream', secrets.hmac)
  write('level', 'info')
  // Its line is behind all that were written before.
  await reload()
  t.equal(count('"API call"'), 1)
  t.equal(count('"stream stopped"'), 0)
  t.equal(count('"stream started"'), 1)
  await api('stop-stream', secrets.hmac)
  await until('a line of the stream that ran', () => count('"stream stopped"') === 1)
})

t.test(
  'SIGHUP with a value that is not allowed changes nothing, and the log says why',
  async (t) => {
    const { program, secrets, write, reload, api, apiStatus, count } = await serve(t)
    const fresh = createSecret()
    const refusal = '"The settings cannot be reloaded: '
    write('jwt', fresh)
    write('hmac', 'short,secret')
    await reload(refusal)
    t.equal(count(`${refusal}HMAC_SECRET has 12 bytes: expected at least 32 characters`), 1)
    write('hmac', '')
    await reload(refusal)
    t.equal(count(/* of a file */ 'expected a file with a value, but it is empty'), 1)
    write('hmac', fresh)
    await reload(refusal)
    t.equal(count(`${refusal}HMAC_SECRET and JWT_SECRET are the same`), 1)
    t.equal(count('. The old ones stay in use."'), 3)

    const { body, status } = await api('start-stream', secrets.hmac)
    t.equal(status, 200, 'the old secret')
    t.equal(await apiStatus(fresh), 403, 'the new one')
    write('hmac', secrets.hmac)
    write('jwt', secrets.jwt)
    await reload()
    t.equal(await isAdmitted(String(body.data['srt_url'])), true, 'signed with the old JWT_SECRET')
    t.notMatch(program.output(), new RegExp(`${fresh}|${secrets.hmac}|short,secret`))
  },
)

t.test(
  'SIGHUP serves a new certificate to new connections at once, and old ones live on',
  async (t) => {
    const [first, second, third] = [makeCertificate(), makeCertificate(), makeCertificate()]
    const paths = writeCertificate(t, first)
    const { url, secrets, write, reload, count } = await serve(t, {
      TLS_CERT: paths.cert,
      TLS_KEY: paths.key,
    })
    const port = Number(new URL(url).port)
    const served = async () => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
      await once(socket, 'secureConnect')
      const { fingerprint256 } = socket.getPeerCertificate()
      socket.destroy()
      return fingerprint256
    }
    const fingerprintOf = ({ cert }: { cert: string }) => new X509Certificate(cert).fingerprint256
    const session = await openSession(t, { url })
    t.equal(await served(), fingerprintOf(first))

    writeFileSync(paths.cert, second.cert)
    writeFileSync(paths.key, second.key)
    await reload()
    t.equal(await served(), fingerprintOf(second))
    t.equal(count('"new TLS certificate in use"'), 1)
    t.equal((await callStream(session, 'GET', '/health/live')).status, 200, 'an old connection')

    writeFileSync(paths.cert, third.cert)
    const metrics = createSecret()
    write('metrics', metrics)
    await reload('"The settings cannot be reloaded: TLS_KEY')
    t.equal(await served(), fingerprintOf(second), 'a certificate without its key is not used')
    const scrape = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` }
      return (await callStream(session, 'GET', '/metrics', { headers })).status
    }
    t.strictSame([await scrape(metrics), await scrape(secrets.metrics)], [401, 200], 'nor a secret')
    writeFileSync(paths.key, third.key)
    await reload()
    t.equal(await served(), fingerprintOf(third))
    t.strictSame([await scrape(metrics), await scrape(secrets.metrics)], [200, 401])
  },
)

t.test('server.reload neither sets nor removes an optional secret', async (t) => {
  const { server, hmacSecret, jwtSecret } = await startService(t, {
    playbackSecret: createSecret(),
  })
  const options = { hmacSecret, jwtSecret }
  t.throws(() => server.reload(options), {
    code: 'CONFIG_INVALID',
    message:
      'playbackSecret was set at the start: expected the same, since only a restart can remove it',
  })
  const playbackSecret = createSecret()
  t.throws(
    () => server.reload({ ...options, playbackSecret, metrics: { token: createSecret() } }),
    {
      message: /^metrics\.token was not set at the start/,
    },
  )
  server.reload({ ...options, playbackSecret })
})

t.test('a secret given as a flag logs a warning', async (t) => {
  const passphrase = 'correct horse'
  const program = start(t, process.execPath, [CLI, 'serve', '--srt-passphrase', passphrase], {
    env: {
      HMAC_SECRET: createSecret(),
      JWT_SECRET: createSecret(),
      ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: '0', SRT_HOST: '127.0.0.1', SRT_PORT: '0' },
    },
  })
  await until('listening', () => program.output().includes('"listening"'))
  t.match(program.output(), /"level":40,.*--srt-passphrase is a secret\./)
  t.notOk(program.output().includes(passphrase))
})
