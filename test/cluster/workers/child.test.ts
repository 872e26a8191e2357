/**
 * Orders of the supervisor to a child process, and its answers.
 */
import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import t from 'tap'
import { completeSettings } from '../../../src/config/complete-settings.ts'
import { Child } from '../../../src/cluster/workers/child.ts'
import type { Order } from '../../../src/cluster/workers/messages.ts'

const configOf = (maxStreams: number) =>
  completeSettings({ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32), maxStreams })

const OLD = configOf(1001)
const NEW = configOf(1002)
const NEWEST = configOf(1003)

/** A child whose process is the test. */
function createChild() {
  const sent: Order[] = []
  const process = Object.assign(new EventEmitter(), {
    pid: 1,
    connected: true,
    send: (order: Order) => void sent.push(order),
  })
  const options = { name: 'worker-1', config: OLD, socketPath: '/nowhere', isSecondary: false }
  return { process, sent, child: new Child(process as unknown as ChildProcess, options) }
}

t.test('a process that is loading starts with the settings of the latest reload', async (t) => {
  const { process, sent, child } = createChild()
  await child.reload(NEW)
  t.strictSame(sent, [])
  process.emit('message', { type: 'loaded' })
  t.match(sent, [{ type: 'start', options: { config: NEW } }])
})

t.test('each reload gets its own answer', async (t) => {
  const { process, sent, child } = createChild()
  process.emit('message', { type: 'loaded' })
  const first = t.rejects(child.reload(NEW), { message: 'not allowed' })
  const second = child.reload(NEWEST)
  await new Promise(setImmediate)
  t.match(sent.slice(1), [{ type: 'reload', config: NEW }])
  process.emit('message', { type: 'refused', failure: { message: 'not allowed' } })
  await first
  await new Promise(setImmediate)
  t.match(sent.slice(2), [{ type: 'reload', config: NEWEST }])
  process.emit('message', { type: 'reloaded' })
  await second
})

t.test('a reload ends with the process', async (t) => {
  const { process, child } = createChild()
  process.emit('message', { type: 'loaded' })
  child.ready.catch(() => undefined)
  const reload = t.rejects(child.reload(NEW), { code: 'PROCESS_LOST' })
  process.emit('exit', null, 'SIGKILL')
  await reload
})
