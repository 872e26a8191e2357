/**
 * The package as `npm publish` would send it: what it contains, what linters of packages say about it, and what a user
 * gets who installs it in an empty folder.
 */
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { start } from '../support/process.ts'
import { until } from '../support/until.ts'
import { PROGRAMS } from './package/programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BIN = join(ROOT, 'node_modules/.bin')

interface Manifest {
  readonly exports: Readonly<Record<string, string>>
  readonly version: string
}

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest

const folder = mkdtempSync(join(tmpdir(), 'millrace-package-'))
t.teardown(() => rmSync(folder, { recursive: true }))

/** Packs `dist` as it is: other tests use it at the same time, so no script may build it again. */
function pack(): { tarball: string; files: string[] } {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const output = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' })
  const [packed] = JSON.parse(output) as { filename: string; files: { path: string }[] }[]
  return { tarball: join(folder, packed!.filename), files: packed!.files.map(({ path }) => path) }
}

const { tarball, files } = pack()

t.test(
  'the package contains modules, types, pages, scripts of the registry, the demo, docs, deploy and the license',
  async (t) => {
    const expected = ['LICENSE', 'README.md', 'fixtures/demo.mpegts', 'package.json']
    const pages = [
      ...['dashboard/admin.css', 'dashboard/index.html', 'dashboard/stream.css'],
      ...['player/index.html', 'player/player.css'],
    ].map((name) => `dist/web/${name}`)
    const scripts = readdirSync(join(ROOT, 'src/cluster/registry/scripts')).map(
      (name) => `dist/cluster/registry/scripts/${name}`,
    )
    // Secrets may be in deploy/ as well: docs/production.md makes them there for Docker.
    const deployed = [
      ...['alerts.yaml', 'grafana/millrace.json'],
      ...['millrace.service', 'millrace@.conf', 'nginx.conf'],
    ].map((name) => `deploy/${name}`)
    const isDocumentation = (path: string) => path.startsWith('docs/')
    const isModule = (path: string) => /^dist\/[a-z0-9/-]+\.(js|d\.ts)$/.test(path)
    t.strictSame(
      files.filter((path) => !isModule(path) && !isDocumentation(path)).toSorted(),
      [...expected, ...pages, ...scripts, ...deployed].toSorted(),
    )
    t.ok(files.includes('docs/settings.md'))
    const untyped = files.filter(
      (path) => path.endsWith('.js') && !files.includes(path.replace(/js$/, 'd.ts')),
    )
    t.strictSame(untyped, [], 'each module has types')
    const mapped = files.filter((path) => /^\/\/# sourceMappingURL/m.test(read(path)))
    t.strictSame(mapped, [], 'no module names a source map, since sources are not in the package')
  },
)

t.test('publint and arethetypeswrong find nothing', async (t) => {
  const run = promisify(execFile)
  const found = (error: { stdout?: string }) => error
  const [lint, types] = await Promise.all([
    run(join(BIN, 'publint'), ['run', tarball, '--strict']).catch(found),
    run(join(BIN, 'attw'), [tarball, '--profile', 'esm-only', '--no-emoji']).catch(found),
  ])
  t.match(lint.stdout, /All good!/)
  t.notOk(types instanceof Error, 'arethetypeswrong finds nothing', { found: types.stdout })
})

t.test('the package works where it was installed into an empty folder', async (t) => {
  const home = join(folder, 'user')
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts']
  execFileSync('npm', ['install', ...flags, tarball], { cwd: home, stdio: 'pipe' })

  await t.test('npx millrace --version prints the version', async (t) => {
    const output = execFileSync('npx', ['millrace', '--version'], { cwd: home, encoding: 'utf8' })
    t.equal(output.trim(), manifest.version)
  })

  await t.test('npx millrace demo serves a playlist and its media', async (t) => {
    const args = ['millrace', 'demo', '--http-port', '0']
    const env = { ADMIN_PASSWORD: 'the password of the dashboard' }
    const demo = start(t, 'npx', args, { cwd: home, env })
    const [, origin] = await until('a URL', () => /(http:\S+)\/watch\//.exec(demo.output()))
    const base = `${origin}/video/demo/`
    const playlist = await until('a playlist', async () => {
      const reply = await fetch(`${base}playlist.m3u8`)
      return reply.ok && reply.text()
    })
    const uri = /^[^#].*\.ts$/m.exec(playlist)?.[0]
    t.ok(uri, 'it lists a segment')
    const segment = Buffer.from(await (await fetch(`${base}${uri}`)).arrayBuffer())
    t.equal(segment[0], 0x47, 'which begins with a sync byte')
    t.equal(segment.length % 188, 0)
    t.equal((await fetch(`${origin}/watch/demo`)).status, 200)
    t.equal((await fetch(`${origin}/watch/assets/player.js`)).status, 200)
    t.equal((await fetch(`${origin}/admin/assets/main.js`)).status, 200)
    demo.kill('SIGINT')
    await demo.exit
  })

  await t.test(
    'the examples of docs/library.md and a TypeScript program for each export compile, and run',
    async (t) => {
      t.strictSame(
        Object.keys(PROGRAMS),
        Object.keys(manifest.exports),
        'each export has a program',
      )
      const names = Object.values(PROGRAMS).map((source, index) => {
        writeFileSync(join(home, `program-${index}.ts`), source)
        return `program-${index}`
      })
      const page = read('docs/library.md')
      const examples = Array.from(page.matchAll(/```ts\n([\s\S]*?)```/g), ([, source], index) => {
        writeFileSync(join(home, `library-${index}.ts`), source!)
        return `library-${index}`
      })
      t.equal(examples.length, 3)
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2023',
        strict: true,
        exactOptionalPropertyTypes: true,
        resolveJsonModule: true,
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
      }
      const config = { compilerOptions, files: [...names, ...examples].map((name) => `${name}.ts`) }
      writeFileSync(join(home, 'tsconfig.json'), JSON.stringify(config))
      execFileSync(join(BIN, 'tsc'), ['-p', home], { stdio: 'pipe' })
      const exits = names.map(async (name) => {
        const program = start(t, process.execPath, [`${name}.js`], { cwd: home })
        return [await program.exit, program.output()]
      })
      const seen = await Promise.all(exits)
      t.strictSame(
        seen,
        names.map(() => [0, 'ok\n']),
      )
    },
  )
})

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
