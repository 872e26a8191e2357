/**
 * An edge in front of several nodes: it follows a stream from owner to owner, never goes back, and does without the
 * registry.
 */
import t, { type Test } from 'tap'
import { machineClock } from '../../../src/timing/clock.ts'
import { until } from '../../support/until.ts'
import { startEdge, type EdgeAppOptions } from './edge-app.ts'
import { MemoryOwners, nodeCalls, startNodes, type FakeNode } from './fake-node.ts'

/** Longest interval of a timer: an edge for which no owner is silent for too long. */
const NEVER_MS = 2 ** 31 - 1

/** Three nodes, of which the first owns the stream, and an edge whose clock stands still. */
async function serve(t: Test, options: EdgeAppOptions = {}) {
  const [a, b, c] = (await startNodes(t, ['a', 'b', 'c'])) as [FakeNode, FakeNode, FakeNode]
  const owners = new MemoryOwners()
  owners.give(a, 5)
  const clock = standingClock()
  const silentMs = NEVER_MS
  const edge = await startEdge(t, '', { nodeCalls, owners, clock, silentMs, ...options })
  const ask = async (path: string) => {
    const reply = await fetch(edge.url + path, { headers: { 'accept-encoding': 'identity' } })
    const text = await reply.text()
    return { status: reply.status, etag: reply.headers.get('etag'), text }
  }
  const read = (file = 'playlist.m3u8') => ask(`/video/demo/${file}`)
  /** Waits until viewers get a version of the playlist. */
  const shows = async (version: string) =>
    until(version, async () => (await read()).text.includes(`#${version}\n`))
  /** Gives the stream to a node; the edge, which has just looked up its owner, may do so again. */
  const give = (node: FakeNode, fence: number) => {
    owners.give(node, fence)
    clock.advance(0.25)
  }
  return { a, b, c, owners, edge, clock, ask, read, shows, give }
}

/** Clock that only the test puts forward. */
function standingClock() {
  let nowUs = 0
  return {
    nowUs: () => nowUs,
    wallMs: () => machineClock.wallMs(),
    advance: (sec: number) => (nowUs += sec * 1e6),
  }
}

/** Waits until an edge asks a node again and again, and looks each time at what it shows. */
async function refusesAnswersOf({ asked }: FakeNode, look: () => Promise<unknown>) {
  const { length } = asked
  await until('three requests', async () => {
    await look()
    return asked.length >= length + 3
  })
  await look()
}

t.test('serves bytes and ETags of the owner as they are, after one lookup', async (t) => {
  const { a, b, owners, read, shows } = await serve(t)
  const { status, etag, text } = await read()
  t.strictSame([status, etag], [200, '"a-1"'])
  t.match(text, '#a-1')
  t.match(await read('a.ts'), { status: 200, text: '/video/demo/a.ts of a' })
  a.publish()
  await shows('a-2')
  t.strictSame([a.unsigned, b.asked.length, owners.lookups], [0, 0, [false]])
})

t.test('asks the owner as often for 100 viewers as for one', async (t) => {
  const { a, owners, read } = await serve(t)
  const crowd = () =>
    Promise.all(Array.from({ length: 100 }, (_, n) => read(n % 2 ? 'a.ts' : 'playlist.m3u8')))
  const replies = await crowd()
  t.ok(replies.every(({ status }) => status === 200))
  await until('the next request', () => a.asked.length === 3)
  await crowd()
  t.strictSame(a.asked.toSorted(), [
    '/video/demo/a.ts',
    '/video/demo/playlist.m3u8',
    '/video/demo/playlist.m3u8',
  ])
  t.strictSame(owners.lookups, [false])
})

t.test(
  'a stream whose owner answers 421 goes on at the next, with one lookup for all',
  async (t) => {
    const { a, b, owners, read, shows } = await serve(t)
    await shows('a-1')
    owners.give(b, 6)
    a.lose()
    await shows('b-1')
    t.match(await read('b.ts'), { status: 200, text: '/video/demo/b.ts of b' })
    t.strictSame(owners.lookups, [false, true])
  },
)

t.test('a lookup from a cache that is old costs one more, at once', async (t) => {
  const { a, b, owners, read } = await serve(t)
  owners.cached = { url: a.url, fence: 5 }
  owners.give(b, 6)
  a.fence = undefined
  const replies = await Promise.all(Array.from({ length: 100 }, () => read()))
  t.ok(replies.every(({ etag }) => etag === '"b-1"'))
  t.strictSame(owners.lookups, [false, true])
  t.equal(a.asked.length, 1)
})

t.test('a stream whose owner dies goes on at the next, and viewers see no failure', async (t) => {
  const { a, b, owners, clock, read, shows, give } = await serve(t)
  await shows('a-1')
  await a.die()
  for (let lookups = 2; lookups < 6; lookups++) {
    await until('a lookup', async () => {
      t.equal((await read()).etag, '"a-1"')
      return owners.lookups.length >= lookups
    })
    t.equal(owners.lookups.length, lookups, 'one in 250 ms')
    clock.advance(0.25)
  }
  give(b, 6)
  await shows('b-1')
})

t.test('never goes back to a lower fence, whatever the registry says', async (t) => {
  const { a, b, read, shows, give } = await serve(t)
  await shows('a-1')
  give(b, 6)
  a.lose()
  await shows('b-1')
  // The old owner awakes, and the registry has lost what it knew.
  give(a, 5)
  a.publish()
  b.lose()
  await refusesAnswersOf(a, async () => t.notMatch((await read()).text, '#a-'))
  t.match(await read('new.ts'), { status: 503 })
  give(b, 7)
  b.publish()
  await shows('b-2')
})

t.test(
  'serves the last playlist for three target durations without an owner, then 503',
  async (t) => {
    const { a, owners, clock, read, shows, give } = await serve(t)
    await shows('a-1')
    owners.owner = undefined
    a.lose()
    await until('the lookup after the loss', () => owners.lookups.includes(true))
    clock.advance(3)
    t.match(await read(), { status: 200, etag: '"a-1"' })
    clock.advance(0.1)
    const refused = await read()
    t.match(refused, { status: 503 })
    t.match(refused.text, 'ORIGIN_UNREACHABLE')
    give(a, 6)
    await shows('a-1')
  },
)

t.test('a stream that no node owns is unknown', async (t) => {
  const { a, owners, read, give } = await serve(t)
  owners.owner = undefined
  t.match(await read(), { status: 404, text: /STREAM_NOT_FOUND/ })
  t.match(await read('a.ts'), { status: 404, text: /STREAM_NOT_FOUND/ })
  t.equal(a.asked.length, 0)
  give(a, 6)
  await until('its first playlist', async () => (await read()).status === 200)
})

t.test('goes on with the owner known last while the registry cannot say', async (t) => {
  const { a, owners, read, shows } = await serve(t)
  await shows('a-1')
  owners.isAway = true
  a.publish()
  await shows('a-2')
  t.match(await read('b.ts'), { status: 200 })
  const port = Number(new URL(a.url).port)
  await a.die()
  await until('the lookup after the death', () => owners.lookups.includes(true))
  t.match(await read(), { status: 200, etag: '"a-2"' })
  await a.listen(port)
  a.publish()
  await shows('a-3')
})

t.test('an unknown stream is 503 while the registry cannot say', async (t) => {
  const { owners, read } = await serve(t)
  owners.isAway = true
  t.match(await read(), { status: 503, text: /ORIGIN_UNREACHABLE/ })
})

t.test('keeps a playlist whose new owner has yet to learn it', async (t) => {
  const { a, b, owners, read, shows } = await serve(t)
  await shows('a-1')
  b.isEmpty = true
  owners.give(b, 6)
  a.lose()
  await until('the new owner is asked', () => b.asked.length > 1)
  t.match(await read(), { status: 200, etag: '"a-1"' })
  b.isEmpty = false
  await shows('b-1')
})

t.test('serves a lower fence two minutes after the last reply under a higher one', async (t) => {
  const { a, b, clock, read, shows, give } = await serve(t)
  await shows('a-1')
  give(b, 6)
  a.lose()
  await shows('b-1')
  // The registry and its clock have been set back.
  give(a, 5)
  b.lose()
  clock.advance(100)
  await refusesAnswersOf(a, async () => t.notMatch((await read()).text, '#a-'))
  clock.advance(30)
  await shows('a-1')
})

t.test('a silent owner is looked up at intervals, however many requests wait', async (t) => {
  const silentMs = 20
  const { a, owners, clock, read, shows } = await serve(t, { silentMs })
  await shows('a-1')
  a.isSilent = true
  for (let n = 0; n < 5; n++) void read(`${n}.ts`).catch(() => undefined)
  await until('all requests, two for the playlist', () => a.asked.length >= 7)
  const count = () => owners.lookups.filter((isFresh) => isFresh).length
  for (let lookups = 1; lookups < 5; lookups++) {
    await until('a lookup', () => count() >= lookups)
    t.equal(count(), lookups)
    clock.advance(silentMs / 1000)
  }
})

t.test('an owner that has failed for 5 s is looked up every 2 s', async (t) => {
  const { a, owners, clock, read, shows } = await serve(t)
  await shows('a-1')
  await a.die()
  await until('a lookup', () => owners.lookups.includes(true))
  clock.advance(6)
  await read('0.ts')
  const { length } = owners.lookups
  for (let sec = 1; sec <= 6; sec++) {
    clock.advance(1)
    t.match(await read(`${sec}.ts`), { status: 503 }, 'a request that needs the owner')
  }
  t.equal(owners.lookups.length, length + 3)
})

t.test('names no part that dies with its owner, while parts are read', async (t) => {
  const { a, b, read, shows, give } = await serve(t)
  a.parts = 'served'
  await shows('a-1')
  t.equal((await read('a-1-part.ts')).status, 200)
  a.parts = 'silent'
  a.publish()
  const isAsked = () => a.asked.includes('/video/demo/a-2-part.ts')
  await until('the request for the part', isAsked)
  t.match((await read()).text, '#a-1\n', 'the version before')
  await a.die()
  give(b, 6)
  const seen = new Set<string>()
  await until('the version of the next owner', async () => {
    const { text } = await read()
    seen.add(text.trimEnd().split('\n').at(-1)!)
    return text.includes('#b-1\n')
  })
  t.notOk(seen.has('#a-2'))
  t.match(await read('a-1-part.ts'), { status: 200, text: / of a$/ }, 'a part that was named')
})

t.test('a part that its owner refuses does not hold up the playlist', async (t) => {
  const { a, read, shows } = await serve(t)
  a.parts = 'served'
  await shows('a-1')
  await read('a-1-part.ts')
  a.parts = 'refused'
  a.publish()
  await shows('a-2')
  t.ok(a.asked.includes('/video/demo/a-2-part.ts'))
})

t.test('fetches no parts for viewers who read segments', async (t) => {
  const { a, read, shows } = await serve(t)
  a.parts = 'served'
  await shows('a-1')
  await read('a.ts')
  a.publish()
  await shows('a-2')
  t.notOk(a.asked.some((path) => path.endsWith('-part.ts')))
})
