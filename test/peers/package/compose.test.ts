/**
 * deploy/compose.yaml starts from nothing but two secrets: no certificate, no other file of the host.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { start } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const COMPOSE = fileURLToPath(new URL('../../../deploy/compose.yaml', import.meta.url))
const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url))

t.test('deploy/compose.yaml serves with the secrets that keygen makes alone', async (t) => {
  const compose = readFileSync(COMPOSE, 'utf8')
  const files = Array.from(compose.matchAll(/\.\/(\S+)/g), ([, file]) => file!)
  t.strictSame(files, ['hmac', 'jwt'])
  const folder = mkdtempSync(join(tmpdir(), 'compose-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const file of files)
    writeFileSync(join(folder, file), execFileSync(process.execPath, [CLI, 'keygen']))

  const [, block = ''] = /^    environment:\n((?: {6}.*\n)+)/m.exec(compose) ?? []
  const given = Array.from(block.matchAll(/^ *(\w+): (.+)$/gm), ([, name, value]) => [
    name!,
    value!.replace('/run/secrets', folder),
  ])
  t.equal(given.length, 2)
  const ports = { HTTP_HOST: '127.0.0.1', HTTP_PORT: '0', SRT_HOST: '127.0.0.1', SRT_PORT: '0' }
  const env = { ...ports, ...(Object.fromEntries(given) as Record<string, string>) }
  const program = start(t, process.execPath, [CLI, 'serve'], { env })
  const [, origin] = await until('a URL', () => /"http":"(http:[^"]+)"/.exec(program.output()))
  const { port } = new URL(origin!)
  t.equal((await fetch(`http://127.0.0.1:${port}/health/ready`)).status, 200)
})
