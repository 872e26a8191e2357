import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Slates } from '../../src/service/slates.ts'
import { readFixture } from '../mpegts/demux.ts'

const DEMO = readFixture('demo')
const MIB = 1024 * 1024

function folderOf(t: Test, files: Readonly<Record<string, Buffer | string>>): string {
  return t.testdir(Object.fromEntries(Object.entries(files)))
}

t.test('a slate is loaded once, and shared', async (t) => {
  const folder = folderOf(t, { 'a.ts': DEMO })
  const slates = new Slates(folder)
  await Promise.all([slates.load('a.ts'), slates.load('a.ts')])
  const bytes = slates.get('a.ts')
  t.ok(bytes !== undefined && bytes.length > 0.9 * DEMO.length)
  writeFileSync(join(folder, 'a.ts'), 'another file')
  await slates.load('a.ts')
  t.equal(slates.get('a.ts'), bytes, 'the file is not read again')
})

t.test('a name or a file that is no slate is refused with what is wrong', async (t) => {
  const folder = folderOf(t, {
    'text.ts': 'no transport stream'.repeat(100),
    'empty.ts': '',
    '.hidden.ts': DEMO,
    'large.ts': '',
  })
  mkdirSync(join(folder, 'folder.ts'))
  truncateSync(join(folder, 'large.ts'), 32 * MIB + 1)
  const slates = new Slates(folder)
  const refused = (name: string, message: RegExp, of = slates) =>
    t.rejects(of.load(name), { name: 'MillraceError', code: 'BODY_INVALID', message }, name)
  await refused('a.ts', /^slate must be absent: SLATE_DIR is not set$/, new Slates(''))
  for (const name of [
    '',
    '.',
    '..',
    '.hidden.ts',
    '../a.ts',
    'a/b.ts',
    '/etc/hosts',
    'a\\b',
    'a\0',
  ])
    await refused(name, /^slate must be the name of a file in SLATE_DIR$/)
  await refused('absent.ts', /^slate is "absent.ts": no such file in SLATE_DIR$/)
  await refused('folder.ts', /it is no file$/)
  await refused('large.ts', /it has more than 32 MiB$/)
  for (const name of ['text.ts', 'empty.ts'])
    await refused(name, /it is no MPEG transport stream; make one: ffmpeg -i FILE .*-bf 0/)
  t.equal(slates.get('text.ts'), undefined)
})

t.test('all slates together are bounded, and a refused one takes no room', async (t) => {
  const folder = folderOf(t, { 'a.ts': DEMO })
  for (const name of ['1.ts', '2.ts', '3.ts', '4.ts', '5.ts']) {
    writeFileSync(join(folder, name), '')
    truncateSync(join(folder, name), 30 * MIB)
  }
  const slates = new Slates(folder)
  const loads = ['1.ts', '2.ts', '3.ts', '4.ts', '5.ts'].map((name) => slates.load(name))
  const errors = (await Promise.allSettled(loads)).map(
    (settled) => settled.status === 'rejected' && (settled.reason as Error).message,
  )
  const isBound = (message: unknown) => String(message).includes('128 MiB together')
  t.equal(errors.filter(isBound).length, 1, 'one of five, each 30 MiB')
  t.ok(
    errors.every((message) => message !== false),
    'they are no slates',
  )
  await slates.load('a.ts')
  t.ok(slates.get('a.ts'))
})

t.test('a slate that is not loaded is loaded by the first who wants it', async (t) => {
  const folder = folderOf(t, {})
  let nowUs = 0
  const failures: string[] = []
  const slates = new Slates(folder, {
    clock: { nowUs: () => nowUs },
    onFailed: (message) => failures.push(message),
  })
  const until = async (isReached: () => boolean) => {
    while (!isReached()) await turn()
  }
  t.equal(slates.get('a.ts'), undefined)
  await until(() => failures.length > 0)
  t.same(failures, ['slate is "a.ts": no such file in SLATE_DIR'])
  symlinkSync(new URL('../../fixtures/demo.mpegts', import.meta.url), join(folder, 'a.ts'))
  nowUs = 9_999_999
  t.equal(slates.get('a.ts'), undefined)
  await turn()
  t.equal(slates.get('a.ts'), undefined, 'no attempt within 10 s')
  nowUs = 10_000_000
  await until(() => slates.get('a.ts') !== undefined)
  t.equal(failures.length, 1)
})

t.test('a folder that cannot be read is refused at the start', async (t) => {
  const folder = folderOf(t, { 'a.ts': DEMO })
  for (const path of [join(folder, 'absent'), join(folder, 'a.ts')]) {
    t.throws(() => new Slates(path), {
      name: 'MillraceError',
      code: 'CONFIG_INVALID',
      message:
        /^SLATE_DIR is ".*: expected a folder that the service can read \((ENOENT|ENOTDIR)\)$/,
    })
  }
})
