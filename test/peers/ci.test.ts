/**
 * Verdicts of `.ci/tests` on files that fail once, fail twice, crash or hang, and on files and commands without a test.
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
const TAP = 'env -i PATH="$PATH" npx tap --disable-coverage --allow-empty-coverage'

const FILES = {
  green: "t.ok(true, 'holds')",
  red: "t.ok(false, 'never holds')",
  unsteady1: `
    const again = existsSync('first')
    t.ok(again, 'holds the second time')
    process.on('exit', () => writeFileSync(again ? 'second' : 'first', ''))`,
  unsteady2: "t.ok(existsSync('second'), 'holds when the second time of the other is over')",
  crashing: "t.ok(true, 'holds'); process.kill(process.pid, 'SIGKILL')",
  exiting: "t.ok(true, 'holds'); t.teardown(() => process.exit(3))",
  hanging: "t.test('hangs', () => new Promise((resolve) => setTimeout(resolve, 1e9)))",
  skipped: "t.ok(false, 'is skipped', { skip: true })",
  empty: '',
}

const UNSTEADY = 'unsteady1.test.js unsteady2.test.js'
const UNSTEADY_LIST =
  'Unsteady (failed, then passed alone):\nunsteady1.test.js\nunsteady2.test.js\n'

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

t.test('a file that passes alone is listed with what failed, and fails nothing', async (t) => {
  const { exit, output, lists } = await gate(t, `${TAP} --jobs=3 green.test.js ${UNSTEADY}`)
  t.equal(exit, 0)
  t.match(output, /\nnot ok \d+ - unsteady1.test.js > holds the second time\n  ---\n/)
  t.strictSame(lists, [UNSTEADY_LIST])
})

t.test('a file that fails twice, crashes or hangs, or has no test, fails the run', async (t) => {
  const untested = [`${TAP} skipped.test.js`, `${TAP} missing.test.js`, 'false', 'true']
  const late = `${TAP} green.test.js; exit 3 #`
  const { exit, output, lists } = await gate(
    t,
    `${TAP} red.test.js ${UNSTEADY} crashing.test.js exiting.test.js empty.test.js`,
    // On a busy machine the time is over before the file has begun: a test of another file is one that was run.
    `${TAP} green.test.js; ${TAP} --timeout=1 hanging.test.js`,
    ...untested,
    late,
  )
  t.equal(exit, 1)
  t.match(output, /\nnot ok \d+ - crashing.test.js .*\n  exitCode: null\n  signal: SIGKILL\n/)
  t.strictSame(lists, [
    UNSTEADY_LIST,
    [
      'Failed:',
      'no test was run: empty.test.js',
      ...untested.map((command) => `no test was run: ${command}`),
      `exit code 3, with no file that is red: ${late}`,
      ...['crashing', 'exiting', 'red', 'hanging'].map((name) => `${name}.test.js`),
      '',
    ].join('\n'),
  ])
})
