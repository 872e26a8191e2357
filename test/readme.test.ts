/**
 * The README's programs, as written. test/peers/package compiles the library example against the published types.
 */
import { execFile as execFileCallback, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import stripTypes from 'ts-blank-space'
import { publish } from '../src/publisher/publisher.ts'
import { freePort } from './support/free-port.ts'
import { start } from './support/process.ts'
import { startService } from './support/service.ts'
import { until } from './support/until.ts'

const execFile = promisify(execFileCallback)

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Inside the package, where its own name resolves to `dist` as it would for whoever installed it. */
const FOLDER = join(ROOT, '.tap', 'readme-example')

t.test('the library example of README.md runs', async (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1]
  t.ok(example, 'there is one')
  mkdirSync(FOLDER, { recursive: true })
  t.teardown(() => rmSync(FOLDER, { recursive: true }))
  // Ports that are free on this machine; all else is to the letter.
  const source = example!.replace('port: 10080', 'port: 0').replace('port: 8080', 'port: 0')
  t.not(source, example, 'the ports were found')
  writeFileSync(join(FOLDER, 'example.mjs'), stripTypes(source))

  const env = {
    HMAC_SECRET: randomBytes(32).toString('hex'),
    JWT_SECRET: randomBytes(32).toString('hex'),
  }
  const program = start(t, process.execPath, ['example.mjs'], { cwd: FOLDER, env })
  const [, srtUrl] = await until('the SRT URL', () => /publish to (\S+)/.exec(program.output()))
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const encoder = publish({
    file: join(ROOT, 'fixtures/demo.mpegts'),
    url: srtUrl!.replace(/\/\/[^:]+/, '//127.0.0.1'),
    loop: true,
    signal: stop.signal,
  })
  await until('a segment', () => /^cut \S+\.ts \d+$/m.test(program.output()))
  t.match(program.output(), /play http:\S+\/video\/demo\/master\.m3u8/)
  program.kill('SIGTERM')
  t.equal(await program.exit, 0)
  stop.abort()
  await encoder.catch(() => undefined)
  t.match(program.output(), /over demo shutdown/)
})

t.test(
  'the receiver of README.md verifies webhooks with the key that webhook-secret prints',
  async (t) => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
    const receiver = /```js\n([\s\S]*?)```/.exec(readme)?.[1]
    t.ok(receiver, 'there is one')
    const port = await freePort()
    const folder = join(ROOT, '.tap', 'readme-receiver')
    mkdirSync(folder, { recursive: true })
    t.teardown(() => rmSync(folder, { recursive: true }))
    writeFileSync(
      join(folder, 'receiver.mjs'),
      receiver!.replace('listen(9000)', `listen(${port})`),
    )

    const { server, hmacSecret, jwtSecret } = await startService(t)
    const env = { HMAC_SECRET: hmacSecret, JWT_SECRET: jwtSecret }
    const cli = join(ROOT, 'dist/cli.js')
    const secret = execFileSync(process.execPath, [cli, 'webhook-secret'], {
      env,
      encoding: 'utf8',
    })
    const program = start(t, process.execPath, ['receiver.mjs'], {
      cwd: folder,
      env: { WEBHOOK_SECRET: secret.trim() },
    })
    const url = `http://127.0.0.1:${port}/hook`
    const forged = await until('the receiver listens', () =>
      fetch(url, {
        method: 'POST',
        headers: {
          'webhook-id': 'x',
          'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
          'webhook-signature': `v1,${randomBytes(32).toString('base64')}`,
        },
        body: '{"type":"forged"}',
      }).catch(() => undefined),
    )
    t.equal(forged.status, 403)
    await server.startStream({ streamId: 'studio', webhookUrls: [url] })
    await until('stream.ready', () => program.output().includes("type: 'stream.ready'"))
    t.notMatch(program.output(), /forged/)
  },
)

t.test('the client of README.md starts a stream, lists streams and tells a refusal', async (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const example = [...readme.matchAll(/```js\n([\s\S]*?)```/g)]
    .map(([, source]) => source!)
    .find((source) => source.includes("'millrace/client'"))
  t.ok(example, 'there is one')
  const { url, hmacSecret } = await startService(t)
  const folder = join(ROOT, '.tap', 'readme-client')
  mkdirSync(folder, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'client.mjs'), example!.replace('http://127.0.0.1:8080', url))
  const env = { HMAC_SECRET: hmacSecret }
  const output = execFile(process.execPath, ['client.mjs'], { cwd: folder, env })
  t.match(
    (await output).stdout,
    /^publish to srt:\S+\n1 without an encoder so far\nSTREAM_NOT_FOUND\n$/,
  )
})
