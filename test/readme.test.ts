/**
 * The README's library example, as written: it compiles against the published types, and runs.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { publish } from '../src/publisher/publisher.ts'
import { start } from './support/process.ts'
import { until } from './support/until.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Inside the package, where its own name resolves to `dist` as it would for whoever installed it. */
const FOLDER = join(ROOT, '.tap', 'readme-example')

t.test('the example of the README compiles and runs', async (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1]
  t.ok(example, 'there is one')
  mkdirSync(FOLDER, { recursive: true })
  t.teardown(() => rmSync(FOLDER, { recursive: true }))
  // Ports that are free on this machine; all else is to the letter.
  const source = example!.replace('port: 10080', 'port: 0').replace('port: 8080', 'port: 0')
  t.not(source, example, 'the ports were found')
  writeFileSync(join(FOLDER, 'example.ts'), source)
  const compilerOptions = { module: 'nodenext', target: 'es2023', strict: true, types: ['node'] }
  const config = { compilerOptions, files: ['example.ts'] }
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify(config))
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', FOLDER], { stdio: 'pipe' })

  const env = {
    HMAC_SECRET: randomBytes(32).toString('hex'),
    JWT_SECRET: randomBytes(32).toString('hex'),
  }
  const program = start(t, process.execPath, ['example.js'], { cwd: FOLDER, env })
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
  t.match(program.output(), /play http:\S+\/video\/demo\/playlist\.m3u8/)
  program.kill('SIGTERM')
  t.equal(await program.exit, 0)
  stop.abort()
  await encoder.catch(() => undefined)
  t.match(program.output(), /over demo shutdown/)
})
