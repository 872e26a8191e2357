import * as fc from 'fast-check'
import t from 'tap'
import type { QueuedEvent } from '../../src/webhook/event.ts'
import {
  MAX_EVENTS_PER_URL,
  MAX_QUEUED_BYTES,
  MAX_URLS,
  UrlQueues,
  type UrlQueue,
} from '../../src/webhook/url-queues.ts'

function start() {
  const started: UrlQueue[] = []
  const dropped: string[] = []
  const queues = new UrlQueues({
    onQueue: (queue) => started.push(queue),
    onDrop: ({ url }, events) => events.forEach(({ id }) => dropped.push(`${url} ${id}`)),
  })
  return { queues, started, dropped }
}

function event(
  id: string | number,
  sizeBytes = 100,
  type: QueuedEvent['type'] = 'stream.live',
): QueuedEvent {
  const body = Buffer.alloc(sizeBytes)
  return { type, streamId: 'studio', id: String(id), body, createdUs: 0 }
}

t.test('keeps 256 events of a URL, and drops the oldest behind the first', async (t) => {
  const { queues, started, dropped } = start()
  for (let id = 0; id < MAX_EVENTS_PER_URL + 3; id++) queues.push('a', event(id))
  t.equal(started.length, 1)
  t.strictSame(dropped, ['a 1', 'a 2', 'a 3'])
  t.equal(started[0]!.events[0]!.id, '0')
  t.equal(queues.events, MAX_EVENTS_PER_URL)
})

t.test('drops numbers of viewers before other events', async (t) => {
  const { queues, started, dropped } = start()
  const viewers = (id: number) => event(id, 100, 'stream.viewers')
  queues.push('a', viewers(0))
  for (let id = 1; id < MAX_EVENTS_PER_URL; id++)
    queues.push('a', id % 100 ? event(id) : viewers(id))
  for (let id = 300; id < 304; id++) queues.push('a', viewers(id))
  for (let id = 400; id < 405; id++) queues.push('a', event(id))
  const gone = [100, 200, 300, 301, 302, 303, 1, 2, 3]
  t.strictSame(
    dropped,
    gone.map((id) => `a ${id}`),
  )
  t.equal(started[0]!.events[0]!.id, '0', 'the one that is being delivered stays')
})

t.test('discards the URL with the oldest delivery at the limit of URLs', async (t) => {
  const { queues, started, dropped } = start()
  for (let url = 0; url < MAX_URLS; url++) queues.push(String(url), event(url))
  const [first, second] = started
  const attempt = new AbortController()
  second!.attempt = attempt
  queues.recordAttempt(first!, { isDelivered: true })
  queues.push('new', event('x'))
  t.strictSame(dropped, ['1 1'])
  t.ok(second!.isDiscarded)
  t.ok(attempt.signal.aborted)
  t.equal(queues.events, MAX_URLS)
})

t.test('keeps 32 MiB in total, and the only event of a URL', async (t) => {
  const { queues, dropped } = start()
  const large = MAX_QUEUED_BYTES / 8
  queues.push('healthy', event('h'))
  for (let id = 0; id < 12; id++) queues.push('a', event(id, large))
  t.ok(dropped.length >= 4 && dropped.every((it) => it.startsWith('a ')), dropped.join())
  t.notMatch(dropped, ['a 0'])
})

t.test('keeps a URL proven while its last event was delivered', async (t) => {
  const { queues, started } = start()
  const standing = (isDelivered: boolean) => {
    queues.push('a', event('x'))
    const queue = started.at(-1)!
    const before = queue.standing
    queues.recordAttempt(queue, { isDelivered })
    queues.shift(queue)
    return before
  }
  t.strictSame([true, true, false, true].map(standing), ['new', 'proven', 'proven', 'new'])
})

t.test('counts exactly the waiting events in any sequence', async () => {
  const step = fc.record({
    url: fc.constantFrom('a', 'b', 'c'),
    act: fc.constantFrom('push', 'push', 'shift', 'discard', 'delivered', 'failed'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { queues } = start()
      for (const { url, act } of steps) {
        const queue = [...queues].find((it) => it.url === url)
        if (act === 'push') queues.push(url, event('x'))
        else if (queue === undefined) continue
        else if (act === 'shift') queues.shift(queue)
        else if (act === 'discard') queues.discard(queue)
        else queues.recordAttempt(queue, { isDelivered: act === 'delivered' })
        const waiting = [...queues].map(({ events }) => events.length)
        if (waiting.includes(0)) return false
        if (queues.events !== waiting.reduce((sum, length) => sum + length, 0)) return false
      }
      for (const queue of queues) queues.discard(queue)
      return queues.events === 0 && [...queues].length === 0
    }),
  )
})
