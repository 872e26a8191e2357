import t from 'tap'
import { Snapshots, type SnapshotListener, type ListenerView } from '../../src/admin/snapshots.ts'
import type { ListRequest } from '../../src/api/requests.ts'
import type { StreamPage } from '../../src/api/records.ts'
import type { Snapshot } from '../../src/web/dashboard/wire.ts'

/** A process that does nothing. */
const IDLE = { cpuSec: 0, sentBytes: 0, residentBytes: 0, uptimeSec: 0 }

class MemoryListener implements SnapshotListener {
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
  const snapshots = new Snapshots({ list }, () => IDLE)
  return { snapshots, requests }
}

/** Sends all snapshots that are due. */
function tick(snapshots: Snapshots, timeMs: number): number {
  return [...snapshots.tick(timeMs)].length
}

function add(snapshots: Snapshots, listener: SnapshotListener, view: ListenerView = {}): void {
  for (const _ of snapshots.add(listener, view, 0)) continue
}

function parse(text = ''): Snapshot {
  return JSON.parse(text.replace('data: ', '')) as Snapshot
}

t.test('reads the streams once for all, and renders once for all with the same view', async (t) => {
  const { snapshots, requests } = setUp()
  const listeners = Array.from({ length: 5 }, () => new MemoryListener())
  listeners.forEach((listener, index) =>
    add(snapshots, listener, index < 3 ? {} : { search: 'm', page: 2 }),
  )
  t.strictSame(requests, [{ limit: 50 }], 'no listener after the first one reads them')
  requests.length = 0
  t.equal(tick(snapshots, 1000), 5, 'a turn of the event loop for each')
  t.strictSame(requests, [{ limit: 50 }])
  for (const { texts } of listeners) {
    t.strictSame(
      texts.map((text) => parse(text)).map(({ timeMs, rows }) => ({ timeMs, rows })),
      [
        { timeMs: 0, rows: [] },
        { timeMs: 1000, rows: [] },
      ],
    )
  }
  t.equal(listeners[0]!.texts[1], listeners[2]!.texts[1])
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

/** A service with streams `0000`, `0001` and so on. */
function manyStreams(number: number, more: (index: number) => object = () => ({})) {
  const requests: ListRequest[] = []
  const list = (request: ListRequest) => {
    requests.push(request)
    const { after, limit = 0 } = request
    const first = after === undefined ? 0 : Number(after) + 1
    const streams = Array.from({ length: Math.min(limit, number - first) }, (_, index) => ({
      streamId: String(first + index).padStart(4, '0'),
      status: 'READY',
      live: false,
      viewers: 0,
      tracks: [],
      sources: [],
      readers: [],
      pushes: [],
      options: {},
      totals: { sourceChanges: 0 },
      warnings: [],
      masterUrl: 'http://host/video/a/b',
      ...more(first + index),
    })) as unknown as StreamPage['streams']
    const isLast = first + limit >= number
    return { streams, ...(!isLast && { next: streams.at(-1)!.streamId }) }
  }
  return { list, requests }
}

t.test('reads all streams a few at a time, and sends a page of them', async (t) => {
  const { list, requests } = manyStreams(1000)
  const snapshots = new Snapshots({ list }, () => IDLE)
  const listener = new MemoryListener()
  let turns = 0
  for (const _ of snapshots.add(listener, { page: 3, stream: '0999' }, 0)) turns++
  t.equal(turns, 19, 'all of them at first')
  const snapshot = parse(listener.texts[0])
  t.match(snapshot, { first: 150, matches: 1000, publicUrl: 'http://host' })
  t.equal(snapshot.isCut, undefined)
  t.equal(snapshot.selected?.id, '0999')
  t.same(
    snapshot.rows.map(({ id }) => Number(id)),
    Array.from({ length: 50 }, (_, index) => 150 + index),
  )
  t.equal(requests.length, 20)
  for (let second = 1; second <= 5; second++) tick(snapshots, second * 1000)
  t.equal(requests.length, 20 + 8 + 8 + 4 + 8 + 8, 'later 400 streams a second')
  t.equal(parse(listener.texts.at(-1)).matches, 1000, 'a list half read is not shown')
})

t.test('of 10,000 streams the first 5000 are read, at a slow pace', async (t) => {
  const { list, requests } = manyStreams(10_000)
  const snapshots = new Snapshots({ list }, () => IDLE)
  const listener = new MemoryListener()
  add(snapshots, listener)
  t.match(parse(listener.texts[0]), { isCut: true, matches: 1000 })
  for (let second = 1; second <= 100; second++) tick(snapshots, second * 1000)
  t.match(parse(listener.texts.at(-1)), { isCut: true, matches: 5000 })
  const before = requests.length
  tick(snapshots, 101_000)
  t.equal(requests.length - before, 2)
})

t.test(
  'live streams come first, interrupted ones next, and sorting takes their place',
  async (t) => {
    const states = ['STOPPED', 'READY', 'STREAMING', 'INTERRUPTED', 'STREAMING', 'INTERRUPTED']
    const { list } = manyStreams(6, (index) => ({
      status: states[index],
      live: index === 4,
      viewers: index === 3 ? 7 : index,
      ...([2, 4].includes(index) && {
        publisher: { remote: `192.0.2.${index}:9000`, bitrateBps: 1000 - index, rttMs: index },
      }),
      warnings: index === 2 ? [{ code: 'A', message: 'a' }] : [],
    }))
    const snapshots = new Snapshots({ list }, () => IDLE)
    const look = (view: ListenerView) => {
      const listener = new MemoryListener()
      add(snapshots, listener, view)
      const { rows, counts, totals } = parse(listener.texts[0])
      return { ids: rows.map(({ id }) => Number(id)), counts, totals }
    }
    const counts = {
      all: 6,
      LIVE: 1,
      INTERRUPTED: 2,
      STREAMING: 1,
      READY: 1,
      STOPPED: 1,
      WARNED: 1,
    }
    const totals = { live: 1, viewers: 19, inBps: 1994, warned: 1 }
    t.strictSame(look({}), { ids: [4, 3, 5, 2, 1, 0], counts, totals })
    t.same(look({ isDescending: true }).ids, [0, 1, 2, 3, 5, 4])
    t.same(look({ sort: 'id' }).ids, [0, 1, 2, 3, 4, 5])
    t.same(look({ sort: 'viewers', isDescending: true }).ids, [3, 5, 4, 2, 1, 0])
    t.same(look({ sort: 'bitrate' }).ids, [4, 2, 3, 5, 1, 0], 'those without a bitrate at the end')
    t.same(look({ sort: 'bitrate', isDescending: true }).ids, [2, 4, 3, 5, 1, 0])
    t.same(look({ filter: 'INTERRUPTED' }), { ids: [3, 5], counts, totals })
    t.same(look({ filter: 'WARNED' }).ids, [2])
    t.match(look({ search: '192.0.2' }), { ids: [4, 2], counts: { all: 2, READY: 0 }, totals })
    t.same(look({ search: '0003' }).ids, [3])
    t.same(look({ filter: 'LIVE', search: '0003' }), {
      ids: [],
      counts: { all: 1, LIVE: 0, INTERRUPTED: 1, STREAMING: 0, READY: 0, STOPPED: 0, WARNED: 0 },
      totals,
    })
    t.same(look({ page: 9 }).ids, [4, 3, 5, 2, 1, 0], 'the last page instead of one beyond it')
  },
)

t.test('a row has the sources of a stream with more than a main encoder', async (t) => {
  const connection = (figure: number) => ({ remote: `192.0.2.${figure}:9000`, bitrateBps: figure })
  const main = { source: 'main', ready: true, connection: connection(1) }
  const backup = { source: 'backup', ready: false, connection: connection(2) }
  const records = [
    { sources: [main], publisher: main.connection, onAir: 'main' },
    { sources: [main, backup], publisher: main.connection, onAir: 'main' },
    { sources: [backup], publisher: backup.connection, onAir: 'backup' },
    { onAir: 'slate', options: { slate: 'away.ts' } },
    { options: { slate: '' }, warnings: [{ code: 'STANDBY_GONE', message: '' }] },
    { totals: { sourceChanges: 1 } },
  ]
  const { list } = manyStreams(records.length, (index) => records[index]!)
  const look = (view: ListenerView) => {
    const listener = new MemoryListener()
    add(new Snapshots({ list }, () => IDLE), listener, view)
    return parse(listener.texts[0])
  }
  const { rows, totals } = look({ sort: 'id' })
  const states = rows.map(({ sources }) => sources?.map(({ source, state }) => [source, state]))
  t.strictSame(states, [
    undefined,
    [
      ['main', 'ON_AIR'],
      ['backup', 'CONNECTED'],
    ],
    [
      ['main', 'AWAY'],
      ['backup', 'ON_AIR'],
    ],
    [
      ['main', 'AWAY'],
      ['backup', 'AWAY'],
      ['slate', 'ON_AIR'],
    ],
    [
      ['main', 'AWAY'],
      ['backup', 'AWAY'],
    ],
    [
      ['main', 'AWAY'],
      ['backup', 'AWAY'],
    ],
  ])
  t.equal(totals.inBps, 1 + (1 + 2) + 2, 'of all encoders')
  t.same(
    look({ search: '192.0.2.2' }).rows.map(({ id }) => Number(id)),
    [1, 2],
    'also by the address of an encoder that is not on air',
  )
})

t.test('averages the bitrate to viewers over 10 s', async (t) => {
  let bytes = 5_000_000
  const snapshots = new Snapshots({ list: () => ({ streams: [] }) }, () => ({
    ...IDLE,
    sentBytes: bytes,
  }))
  const listener = new MemoryListener()
  add(snapshots, listener)
  const outBps = () => parse(listener.texts.at(-1)).totals.outBps
  t.equal(outBps(), undefined)
  bytes += 1_000_000
  tick(snapshots, 1000)
  t.equal(outBps(), 8_000_000)
  for (let second = 2; second <= 10; second++) tick(snapshots, second * 1000)
  t.equal(outBps(), 800_000)
  tick(snapshots, 11_000)
  t.equal(outBps(), 0)
  bytes += 9_000_000
  tick(snapshots, 60_000)
  t.equal(outBps(), undefined, 'nobody has looked for a while')
})

t.test('has the load of the process, with its CPU time over 10 s', async (t) => {
  const reading = { ...IDLE, cpuSec: 60, residentBytes: 2 ** 27, uptimeSec: 90.7 }
  const snapshots = new Snapshots({ list: () => ({ streams: [] }) }, () => ({ ...reading }))
  const listener = new MemoryListener()
  add(snapshots, listener)
  const first = parse(listener.texts[0]).process!
  t.match(first, { version: /^\d+\.\d+\.\d+/, uptimeSec: 90, residentBytes: 2 ** 27 })
  t.equal(first.cpuPercent, undefined)
  reading.cpuSec += 0.254
  tick(snapshots, 1000)
  const cpuPercent = () => parse(listener.texts.at(-1)).process?.cpuPercent
  t.equal(cpuPercent(), 25)
  for (let second = 2; second <= 10; second++) tick(snapshots, second * 1000)
  t.equal(cpuPercent(), 3)
  tick(snapshots, 11_000)
  t.equal(cpuPercent(), 0)
})

t.test('has the nodes of a cluster, unless its registry is away', async (t) => {
  const nodes = [{ node: 'a', url: 'http://10.0.0.1:8080', role: 'ingest', live: true, streams: 2 }]
  const answers = [Promise.resolve(nodes), Promise.reject(new Error('away'))]
  const list = () => ({ streams: [] })
  const snapshots = new Snapshots({ list, nodes: () => answers.shift()! }, () => IDLE)
  for (const expected of [{ rows: [], nodes }, { rows: [] }]) {
    const listener = new MemoryListener()
    for (const turn of snapshots.add(listener, {}, 0)) await turn
    const [text = ''] = listener.texts
    const { rows, nodes } = parse(text)
    t.strictSame({ rows, ...(nodes && { nodes }) }, expected)
  }
})

t.test('what is sent over SRT counts as what goes out', (t) => {
  const reader = { bitrateBps: 100, packetsDropped: 1 }
  const { list } = manyStreams(1, () => ({
    readers: [reader, reader],
    pushes: [
      { remote: 'host:1', state: 'CONNECTED', connection: reader },
      { remote: 'host:2', state: 'WAITING', error: 'refused' },
    ],
  }))
  let sentBytes = 0
  const snapshots = new Snapshots({ list }, () => ({ ...IDLE, sentBytes }))
  const listener = new MemoryListener()
  add(snapshots, listener)
  sentBytes = 125
  tick(snapshots, 1000)
  const { totals, rows } = parse(listener.texts.at(-1))
  t.equal(totals.outBps, 1000 + 300)
  t.match(rows[0], {
    readers: { count: 2, bitrateBps: 200, packetsDropped: 2 },
    pushes: [
      { peer: 'host:1, connected', bitrateBps: 100, packetsDropped: 1 },
      { peer: 'host:2, waiting: refused', bitrateBps: undefined },
    ],
  })
  t.end()
})
