import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import t from 'tap'
import { startTimeLimit, TimeoutError, withTimeout } from '../../src/timing/time-limit.ts'

t.test('settles as the promise does, within the time limit', async (t) => {
  t.equal(await withTimeout(immediate('done'), 10_000), 'done')
  const failure = new Error('refused')
  await t.rejects(withTimeout(Promise.reject(failure), 10_000), failure)
})

t.test('rejects after the time limit, whatever becomes of the promise', async (t) => {
  let fail: (error: Error) => void = () => undefined
  const late = new Promise((_, reject) => (fail = reject))
  const limited = withTimeout(late, 1)
  await t.rejects(limited, new TimeoutError('no reply in 1 ms'))
  fail(new Error('late'))
  // A rejection that nobody handles would end the process before.
  await immediate()
})

t.test('takes a reply that has arrived, however late the event loop is', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [[near]] = (await Promise.all([once(server, 'connection'), once(far, 'connect')])) as [
    [Socket],
    unknown,
  ]
  t.teardown(() => near.destroy())
  // The next to be called are the timers, before sockets are read.
  await immediate()
  const reply = withTimeout(once(near, 'data'), 1)
  far.end('reply')
  const lateMs = performance.now() + 3
  while (performance.now() < lateMs);
  t.strictSame(await reply, [Buffer.from('reply')])
})

t.test('a request is aborted after its time limit', async (t) => {
  const { signal } = startTimeLimit(1)
  await once(signal, 'abort')
  t.same(signal.reason, new TimeoutError('no reply in 1 ms'))
})

t.test('leaves no timer behind', async (t) => {
  const timersOf = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timersOf()
  await withTimeout(Promise.resolve(), 10_000)
  startTimeLimit(10_000).cancel()
  t.equal(timersOf(), before)
})
