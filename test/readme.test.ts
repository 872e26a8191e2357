/**
 * The programs of README.md and docs, as written. test/peers/package compiles the library example against the published
 * types; test/peers/e2e/readme.test.ts runs the commands.
 */
import { execFile as execFileCallback, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import stripTypes from 'ts-blank-space'
import { publishDemo } from './support/demo-encoder.ts'
import { freePort } from './support/free-port.ts'
import { start } from './support/process.ts'
import { startService } from './support/service.ts'
import { until } from './support/until.ts'

const execFile = promisify(execFileCallback)

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const LIBRARY = readFileSync(join(ROOT, 'docs/library.md'), 'utf8')

/** Inside the package, where its own name resolves to `dist` as it would for whoever installed it. */
const FOLDER = join(ROOT, '.tap', 'readme-example')

t.test('the library example of docs/library.md runs', async (t) => {
  const example = /```ts\n([\s\S]*?)```/.exec(LIBRARY)?.[1]
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
  publishDemo(t, srtUrl!.replace(/\/\/[^:]+/, '//127.0.0.1'), { mayFail: true })
  await until('a segment', () => /^cut \S+\.ts \d+$/m.test(program.output()))
  t.match(program.output(), /play http:\S+\/video\/demo\/master\.m3u8/)
  program.kill('SIGTERM')
  t.equal(await program.exit, 0)
  t.match(program.output(), /over demo shutdown/)
})

t.test('the application of docs/library.md serves a stream to viewers with a token', async (t) => {
  const example = programOf(LIBRARY, "'millrace/fastify'")
  t.ok(example, 'there is one')
  const folder = join(ROOT, '.tap', 'readme-application')
  mkdirSync(folder, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true }))
  const port = await freePort()
  const source = example!
    .replace(
      "http: { host: '127.0.0.1' }",
      "http: { host: '127.0.0.1', port: 0 }, srt: { port: 0 }",
    )
    .replace('port: 3000', `port: ${port}`)
  t.match(source, 'srt: { port: 0 }', 'the ports were found')
  writeFileSync(join(folder, 'application.mjs'), stripTypes(source))

  const env = {
    HMAC_SECRET: randomBytes(32).toString('hex'),
    JWT_SECRET: randomBytes(32).toString('hex'),
    PLAYBACK_SECRET: randomBytes(32).toString('hex'),
  }
  const program = start(t, process.execPath, ['application.mjs'], { cwd: folder, env })
  const [, srtUrl, path] = await until('the URLs', () =>
    /publish to (\S+)\nplay (\S+)/.exec(program.output()),
  )
  publishDemo(t, srtUrl!.replace(/\/\/[^:]+/, '//127.0.0.1'), { mayFail: true })
  const masterUrl = `http://127.0.0.1:${port}${path}`
  await until('a playlist', async () => (await fetch(masterUrl)).ok)
  t.equal((await fetch(masterUrl.replace('/t/', '/t/1'))).status, 403)
  program.kill('SIGTERM')
  const playlistUrl = masterUrl.replace('master.m3u8', 'playlist.m3u8')
  await until('the end of the playlist', async () =>
    (await (await fetch(playlistUrl)).text()).includes('#EXT-X-ENDLIST'),
  )
  t.equal(await program.exit, 0)
})

t.test(
  'the receiver of docs/api.md verifies webhooks with the key that webhook-secret prints',
  async (t) => {
    const page = readFileSync(join(ROOT, 'docs/api.md'), 'utf8')
    const receiver = programOf(page, "'standardwebhooks'")
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

t.test(
  'the client of docs/library.md starts a stream, lists streams and tells a refusal',
  async (t) => {
    const example = programOf(LIBRARY, "'millrace/client'")
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
  },
)

/** JavaScript or TypeScript of a page that imports a module. */
function programOf(page: string, module: string): string | undefined {
  return Array.from(page.matchAll(/```[jt]s\n([\s\S]*?)```/g), ([, source]) => source!).find(
    (source) => source.includes(module),
  )
}
