import t from 'tap'
import { Snapshots, type Listener } from '../../../src/http/admin/snapshots.ts'
import type { ListRequest } from '../../../src/contract/streams.ts'

class MemoryListener implements Listener {
  isBusy = false
  allowed = true
  ended = 0
  readonly texts: string[] = []
  readonly isAllowed = () => this.allowed

  send(text: string): void {
    this.texts.push(text)
  }

  end(): void {
    this.ended++
  }
}

function setUp() {
  const requests: ListRequest[] = []
  const snapshots = new Snapshots((request) => {
    requests.push(request)
    return { streams: [] }
  })
  return { snapshots, requests }
}

t.test('renders a snapshot once for all that look at the same page', async (t) => {
  const { snapshots, requests } = setUp()
  const listeners = Array.from({ length: 5 }, () => new MemoryListener())
  listeners.forEach((listener, index) =>
    snapshots.add(listener, index < 3 ? {} : { after: 'm' }, 0),
  )
  requests.length = 0
  snapshots.tick(1000)
  t.strictSame(requests, [{ limit: 50 }, { after: 'm', limit: 50 }])
  for (const { texts } of listeners) {
    t.strictSame(texts, ['data: {"timeMs":0,"rows":[]}\n\n', 'data: {"timeMs":1000,"rows":[]}\n\n'])
  }
})

t.test('a listener that has not taken the previous snapshot skips the next ones', async (t) => {
  const { snapshots, requests } = setUp()
  const listener = new MemoryListener()
  snapshots.add(listener, {}, 0)
  listener.isBusy = true
  requests.length = 0
  for (let tick = 1; tick < 10; tick++) snapshots.tick(tick)
  t.equal(listener.texts.length, 1)
  t.equal(requests.length, 0, 'nothing is rendered for it')
  listener.isBusy = false
  snapshots.tick(10)
  t.match(listener.texts[1], '"timeMs":10')
})

t.test('a listener that takes nothing for a minute is gone', async (t) => {
  const { snapshots } = setUp()
  const listener = new MemoryListener()
  snapshots.add(listener, {}, 0)
  listener.isBusy = true
  for (let tick = 1; tick <= 60; tick++) snapshots.tick(tick)
  t.equal(listener.ended, 0)
  snapshots.tick(61)
  t.equal(listener.ended, 1)
  t.ok(snapshots.isEmpty)
})

t.test('a listener whose session is over gets no further snapshot', async (t) => {
  const { snapshots } = setUp()
  const listener = new MemoryListener()
  snapshots.add(listener, {}, 0)
  listener.allowed = false
  snapshots.tick(1)
  t.equal(listener.texts.length, 1)
  t.equal(listener.ended, 1)
  t.ok(snapshots.isEmpty)
})
