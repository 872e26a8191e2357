import t from 'tap'
import { Snapshots, type Listener, type View } from '../../../src/http/admin/snapshots.ts'
import type { ListRequest, StreamPage } from '../../../src/contract/streams.ts'

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
  const list = (request: ListRequest) => {
    requests.push(request)
    return { streams: [] }
  }
  const snapshots = new Snapshots({ list })
  return { snapshots, requests }
}

/** Sends all snapshots that are due. */
function tick(snapshots: Snapshots, timeMs: number): number {
  return [...snapshots.tick(timeMs)].length
}

function add(snapshots: Snapshots, listener: Listener, view: View = {}): void {
  for (const _ of snapshots.add(listener, view, 0)) continue
}

t.test('renders a snapshot once for all that look at the same page', async (t) => {
  const { snapshots, requests } = setUp()
  const listeners = Array.from({ length: 5 }, () => new MemoryListener())
  listeners.forEach((listener, index) => add(snapshots, listener, index < 3 ? {} : { after: 'm' }))
  requests.length = 0
  t.equal(tick(snapshots, 1000), 2, 'a turn of the event loop for each')
  t.strictSame(requests, [{ limit: 25 }, { after: 'm', limit: 25 }])
  for (const { texts } of listeners) {
    t.strictSame(texts, ['data: {"timeMs":0,"rows":[]}\n\n', 'data: {"timeMs":1000,"rows":[]}\n\n'])
  }
})

t.test('a listener that has not taken the previous snapshot skips the next ones', async (t) => {
  const { snapshots, requests } = setUp()
  const listener = new MemoryListener()
  add(snapshots, listener)
  listener.isBusy = true
  requests.length = 0
  for (let second = 1; second < 10; second++) tick(snapshots, second)
  t.equal(listener.texts.length, 1)
  t.equal(requests.length, 0, 'nothing is rendered for it')
  listener.isBusy = false
  tick(snapshots, 10)
  t.match(listener.texts[1], '"timeMs":10')
})

t.test('a listener that takes nothing for a minute is gone', async (t) => {
  const { snapshots } = setUp()
  const listener = new MemoryListener()
  add(snapshots, listener)
  listener.isBusy = true
  for (let second = 1; second <= 60; second++) tick(snapshots, second)
  t.equal(listener.ended, 0)
  tick(snapshots, 61)
  t.equal(listener.ended, 1)
  t.ok(snapshots.isEmpty)
})

t.test('a listener whose session is over gets no further snapshot', async (t) => {
  const { snapshots } = setUp()
  const listener = new MemoryListener()
  add(snapshots, listener)
  listener.allowed = false
  tick(snapshots, 1)
  t.equal(listener.texts.length, 1)
  t.equal(listener.ended, 1)
  t.ok(snapshots.isEmpty)
})

t.test('reads the streams of a snapshot a few at a time', async (t) => {
  const list = ({ after = '0', limit = 0 }: ListRequest) => {
    const next = String(Number(after) + limit)
    const ids = Array.from({ length: limit }, (_, index) => String(Number(after) + index))
    const masterUrl = 'http://host/video/a/b'
    const streams = ids.map((streamId) => ({ streamId, tracks: [], warnings: [], masterUrl }))
    return { streams: streams as unknown as StreamPage['streams'], next }
  }
  const snapshots = new Snapshots({ list })
  const listener = new MemoryListener()
  let turns = 0
  for (const _ of snapshots.add(listener, {}, 0)) turns++
  t.equal(turns, 1)
  t.equal(listener.texts.length, 1)
  for (let page = 0; page < 2; page++) t.match(listener.texts[0], `"id":"${25 * page}"`)
  t.match(listener.texts[0], '"next":"50","publicUrl":"http://host"')
})

t.test('has the nodes of a cluster, unless its registry is away', async (t) => {
  const nodes = [{ node: 'a', url: 'http://10.0.0.1:8080', role: 'ingest', live: true, streams: 2 }]
  const answers = [Promise.resolve(nodes), Promise.reject(new Error('away'))]
  const list = () => ({ streams: [] })
  const snapshots = new Snapshots({ list, nodes: () => answers.shift()! })
  for (const expected of [{ rows: [], nodes }, { rows: [] }]) {
    const listener = new MemoryListener()
    for (const turn of snapshots.add(listener, {}, 0)) await turn
    const [text = ''] = listener.texts
    t.strictSame(JSON.parse(text.replace('data: ', '')), { timeMs: 0, ...expected })
  }
})
