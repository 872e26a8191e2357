/**
 * What `.ci/tests` makes of files that fail once, twice, by a crash or by hanging, and of commands that run no test.
 *
 * @module
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { start } from '../support/process.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
// Without what the tap of this test tells its children.
const TAP = 'env -i PATH="$PATH" npx tap --disable-coverage --allow-empty-coverage --reporter=tap'

const FILES = {
  green: "t.ok(true, 'holds')",
  red: "t.ok(false, 'never holds')",
  unsteady: "t.ok(existsSync('ran'), 'holds from the second time on'); writeFileSync('ran', '')",
  crashing: "t.ok(true, 'holds'); process.kill(process.pid, 'SIGKILL')",
  hanging: "t.test('hangs', () => new Promise((resolve) => setTimeout(resolve, 1e9)))",
  skipped: "t.ok(false, 'is skipped', { skip: true })",
  empty: '',
}

async function gate(t: Test, ...commands: string[]) {
  const cwd = mkdtempSync(join(tmpdir(), 'millrace-ci-'))
  t.teardown(() => rmSync(cwd, { recursive: true }))
  symlinkSync(join(ROOT, 'node_modules'), join(cwd, 'node_modules'))
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }')
  const imports = "import { existsSync, writeFileSync } from 'node:fs'\nimport t from 'tap'\n"
  for (const [name, code] of Object.entries(FILES)) {
    writeFileSync(join(cwd, `${name}.test.js`), imports + code)
  }
  const program = start(t, join(ROOT, '.ci/tests'), commands, { cwd })
  const exit = await program.exit
  const output = program.output()
  return { exit, output, lists: output.split(/\n(?=Unsteady|Failed)/).slice(1) }
}

t.test('a file that is green alone is listed with what failed, and fails nothing', async (t) => {
  const { exit, output, lists } = await gate(t, `${TAP} green.test.js unsteady.test.js`)
  t.equal(exit, 0)
  t.match(output, /\nnot ok \d+ - unsteady.test.js > holds from the second time on\n  ---\n/)
  t.strictSame(lists, ['Unsteady (red, then green alone):\nunsteady.test.js\n'])
})

t.test('a file that fails twice, crashes or hangs, and a run without a test, fail', async (t) => {
  const untested = [
    `${TAP} empty.test.js`,
    `${TAP} skipped.test.js`,
    `${TAP} missing.test.js`,
    'false',
    'true',
  ]
  const late = `${TAP} green.test.js; exit 3 #`
  const { exit, output, lists } = await gate(
    t,
    `${TAP} red.test.js unsteady.test.js crashing.test.js`,
    // On a busy machine the time is over before the file has begun: a test of another file is one that was run.
    `${TAP} green.test.js; ${TAP} --timeout=1 hanging.test.js`,
    ...untested,
    late,
  )
  t.equal(exit, 1)
  t.match(output, /\nnot ok \d+ - crashing.test.js .*\n  exitCode: null\n  signal: SIGKILL\n/)
  const withoutTest = untested.map((command) => `no test was run: ${command}\n`).join('')
  t.strictSame(lists, [
    'Unsteady (red, then green alone):\nunsteady.test.js\n',
    `Failed:\n${withoutTest}exit code 3, with no file that is red: ${late}\n` +
      'crashing.test.js\nred.test.js\nhanging.test.js\n',
  ])
})
