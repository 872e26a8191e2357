import t from 'tap'
import { Turns } from '../../src/srt/turns.ts'

const neverAborted = () => new AbortController().signal

/** Tasks that run until the test ends them. */
function create(maxRunning: number) {
  const turns = new Turns(maxRunning)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string, signal = neverAborted()) =>
    turns.run(() => {
      begun.push(name)
      return new Promise<void>((resolve) => ends.set(name, resolve))
    }, signal)
  return { turns, begun, run, end: (name: string) => ends.get(name)!() }
}

t.test('tasks begin in order, as many at a time as may', async (t) => {
  const { begun, run, end } = create(2)
  const tasks = ['a', 'b', 'c', 'd'].map((name) => run(name))
  t.strictSame(begun, ['a', 'b'])
  end('b')
  await tasks[1]
  t.strictSame(begun, ['a', 'b', 'c'])
  end('a')
  end('c')
  await Promise.all([tasks[0], tasks[2]])
  t.strictSame(begun, ['a', 'b', 'c', 'd'])
  const last = run('e')
  t.equal(begun.at(-1), 'e', 'the other place is free again')
  end('d')
  end('e')
  await Promise.all([tasks[3], last])
})

t.test('what waits is bounded, and an aborted task waits no more', async (t) => {
  const { turns, begun, run, end } = create(1)
  const first = run('first')
  const controller = new AbortController()
  const aborted = t.rejects(run('aborted', controller.signal), { message: 'gone' })
  const others = Array.from({ length: 255 }, () => turns.run(async () => 'done', neverAborted()))
  await t.rejects(run('too many'), { message: /256 tasks wait/ })
  controller.abort(new Error('gone'))
  await aborted
  await t.rejects(run('aborted before', controller.signal), { message: 'gone' })
  const last = run('last')
  end('first')
  await first
  t.equal((await Promise.all(others)).length, 255)
  end('last')
  await last
  t.strictSame(begun, ['first', 'last'])
})

t.test('a task that fails gives its place back', async (t) => {
  const turns = new Turns(1)
  t.ok(turns.isIdle)
  const failed = turns.run(() => Promise.reject(new Error('no')), neverAborted())
  const next = turns.run(async () => 'next', neverAborted())
  t.notOk(turns.isIdle)
  await t.rejects(failed, { message: 'no' })
  t.equal(await next, 'next')
  t.ok(turns.isIdle)
})
