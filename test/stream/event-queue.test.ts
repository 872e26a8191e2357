import t from 'tap'
import { EventQueue } from '../../src/stream/event-queue.ts'

t.test('emits events after the command, in order, and returns its result', async (t) => {
  const queue = new EventQueue()
  const log: string[] = []
  const result = queue.run(() => {
    queue.push(() => log.push('first'))
    queue.push(() => log.push('second'))
    log.push('command')
    return 7
  })
  t.equal(result, 7)
  t.strictSame(log, ['command', 'first', 'second'])
})

t.test('emits the events of a nested command with those of the outer one', async (t) => {
  const queue = new EventQueue()
  const log: string[] = []
  queue.run(() => {
    queue.run(() => queue.push(() => log.push('inner')))
    log.push('outer')
  })
  t.strictSame(log, ['outer', 'inner'])
})

t.test('runs the command of a listener at once, and emits its events last', async (t) => {
  const queue = new EventQueue()
  const log: string[] = []
  queue.run(() => {
    queue.push(() => {
      queue.run(() => {
        log.push('command of a listener')
        queue.push(() => log.push('its event'))
      })
    })
    queue.push(() => log.push('second'))
  })
  t.strictSame(log, ['command of a listener', 'second', 'its event'])
})

t.test('emits the events from before a command threw, and throws', async (t) => {
  const queue = new EventQueue()
  const log: string[] = []
  const command = () => {
    queue.push(() => log.push('before'))
    throw new Error('broken command')
  }
  t.throws(() => queue.run(command), /broken command/)
  t.strictSame(log, ['before'])
})

t.test(
  'throws the exception of a listener, and emits the rest with the next command',
  async (t) => {
    const queue = new EventQueue()
    const log: string[] = []
    const command = () => {
      queue.push(() => {
        throw new Error('broken listener')
      })
      queue.push(() => log.push('rest'))
    }
    t.throws(() => queue.run(command), /broken listener/)
    t.strictSame(log, [])
    queue.run(() => queue.push(() => log.push('next')))
    t.strictSame(log, ['rest', 'next'])
  },
)

t.test('reports the exception of a listener, and emits the rest', async (t) => {
  const errors: unknown[] = []
  const queue = new EventQueue((error) => errors.push(error))
  const log: string[] = []
  const result = queue.run(() => {
    queue.push(() => {
      throw new Error('broken listener')
    })
    queue.push(() => log.push('rest'))
    return 7
  })
  t.equal(result, 7)
  t.strictSame(log, ['rest'])
  t.match(errors, [{ message: 'broken listener' }])
})
