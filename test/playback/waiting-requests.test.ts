import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { WaitingRequests } from '../../src/playback/waiting-requests.ts'
import { until } from '../support/until.ts'

/** Requests that wait for one file, which comes when the test says so. */
class Crowd {
  readonly waiting = new WaitingRequests()
  /** Readers of the file that are not forgotten. */
  readonly readers = new Set<() => void>()
  readonly answers: string[] = []

  /** @returns emitter of `close`, when the client leaves */
  ask({
    maxMs = 60_000,
    source = undefined as string | undefined,
    answer = (end: string) => void this.answers.push(end),
  } = {}) {
    const client = new EventEmitter()
    const exchange = {
      ...{ source, hasLeft: false },
      onceLeft: (act: () => void) => void client.once('close', act),
      fail: (error: unknown) => void this.answers.push((error as Error).message),
    }
    this.waiting.wait(exchange, {
      maxMs,
      begin: (onOver) => {
        this.readers.add(onOver)
        return () => this.readers.delete(onOver)
      },
      answer,
    })
    return client
  }

  come(): void {
    for (const onOver of this.readers) onOver()
  }
}

t.test('answers in a later turn, and forgets the reader', async (t) => {
  const crowd = new Crowd()
  crowd.ask()
  await nextTurn()
  t.strictSame(crowd.answers, [])
  crowd.come()
  t.strictSame(crowd.answers, [], 'not during the change')
  await nextTurn()
  t.strictSame(crowd.answers, ['over'])
  t.equal(crowd.readers.size, 0)
})

t.test('forgets a client that leaves while it waits, or before its turn', async (t) => {
  const crowd = new Crowd()
  const [first, second] = [crowd.ask(), crowd.ask()]
  first.emit('close')
  t.equal(crowd.readers.size, 1)
  crowd.come()
  second.emit('close')
  t.equal(crowd.readers.size, 0)
  await nextTurn()
  crowd.waiting.close()
  t.strictSame(crowd.answers, [])
})

t.test('answers late when the time is over, once', async (t) => {
  const crowd = new Crowd()
  const startMs = performance.now()
  crowd.ask({ maxMs: 50 })
  crowd.ask()
  await until('an answer', () => crowd.answers.length > 0, { everyMs: 5 })
  t.ok(performance.now() - startMs >= 49)
  t.strictSame(crowd.answers, ['late'])
  t.equal(crowd.readers.size, 1)
  crowd.come()
  await nextTurn()
  t.strictSame(crowd.answers, ['late', 'over'])
})

t.test('close answers all that wait, once, also those whose turn is still to come', async (t) => {
  const crowd = new Crowd()
  crowd.ask()
  crowd.come()
  crowd.ask()
  crowd.waiting.close()
  t.strictSame(crowd.answers, ['over', 'closing'])
  t.equal(crowd.readers.size, 0)
  await nextTurn()
  t.equal(crowd.answers.length, 2)
})

t.test('a place is free again when its request has ended', async (t) => {
  const crowd = new Crowd()
  const [source, other] = ['192.0.2.1', '192.0.2.2']
  const asked = Array.from({ length: 2500 }, () => crowd.ask({ source }))
  asked[0]!.emit('close')
  crowd.ask({ source })
  t.strictSame(crowd.answers, [])
  crowd.ask({ source })
  t.strictSame(crowd.answers, ['refused'])
  crowd.ask({ source: other })
  t.equal(crowd.readers.size, 2501)
  crowd.waiting.close()
})

t.test(
  'gives one source a quarter of the places, whatever the number of its connections',
  async (t) => {
    const crowd = new Crowd()
    for (let asked = 0; asked < 2501; asked++) crowd.ask({ source: '192.0.2.1' })
    t.strictSame(crowd.answers, ['refused'])
    crowd.ask({ source: '192.0.2.2' })
    crowd.ask()
    t.equal(crowd.readers.size, 2502)
    t.equal(crowd.answers.length, 1)
    crowd.waiting.close()
  },
)

t.test('sends an error that is thrown while it answers', async (t) => {
  const crowd = new Crowd()
  crowd.ask({
    answer: () => {
      throw new Error('the store fails')
    },
  })
  crowd.come()
  await nextTurn()
  t.strictSame(crowd.answers, ['the store fails'])
})
