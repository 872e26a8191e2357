/**
 * Streams of a node, real ones, and what the registry has of them: in memory, in virtual time.
 */
import t from 'tap'
import { listOwned, OwnedStreams } from '../../../../src/cluster/node/owned/owned-streams.ts'
import { unavailable } from '../../../../src/cluster/registry/unavailable.ts'
import { SegmentCache } from '../../../../src/hls/store/segment-cache.ts'
import { createLogger } from '../../../../src/logger.ts'
import { LiveStream } from '../../../../src/stream/live-stream.ts'
import { GopEncoder } from '../../../stream/gops.ts'
import { PUBLISHER_REPORT } from '../../../stream/publisher-report.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'

const HOUR_MS = 3_600_000
const LINGER_MS = 60_000

/** Node `a`, with streams that it has claimed. */
function createNode() {
  const time = new VirtualTime()
  const memory = new MemoryRegistry(time.clock, { leaseMs: 24 * HOUR_MS })
  const { model } = memory
  const leaseSinceMs = model.renewNode({ node: 'a', url: '' })
  const done: string[] = []
  const applied = { options: { title: 'new' }, keyExpiresAtMs: 7 }
  const owned = new OwnedStreams({
    ...{ node: 'a', registry: memory.calls, lingerMs: LINGER_MS, logger: createLogger('silent') },
    backup: {
      follow: ({ id }) => void done.push(`follow ${id}`),
      flush: async (timeoutMs) => void done.push(`flush ${timeoutMs}`),
    },
    readLeaseSince: () => leaseSinceMs,
    keyUsesOf: () => ({ '5-7200-main': 6000 }),
    appliedOf: () => applied,
    onRestored: ({ id }) => void done.push(`restored ${id}`),
    leave(stream) {
      done.push(`leave ${stream.id}`)
      stream.leave()
    },
    reclaim: (streamId) => void done.push(`reclaim ${streamId}`),
    clock: time.clock,
    timers: time,
  })
  const start = (id: string) =>
    model.start(id, { options: {}, keyExpiresAtMs: time.clock.wallMs() + 24 * HOUR_MS })
  const claim = (id = 'studio', node = 'a') => {
    const { fence: seenFence } = start(id)
    const claimed = model.claim(id, { node, epoch: node, seenFence })
    if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
    return claimed
  }
  const own = (id = 'studio') => {
    const claimed = claim(id)
    const stream = new LiveStream(id, {
      ...{ clock: time.clock, cache: new SegmentCache({ maxBytes: 1e6 }), epoch: 'e' },
      ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6, reconnectGraceSec: 60 },
      ...{ lingerSec: LINGER_MS / 1000, sequenceStart: claimed.free },
    })
    owned.own(stream, claimed)
    const { fence, run } = claimed.stream
    return { stream, fence, run }
  }
  /** Another node takes the stream, whose owner is taken for dead. */
  const takeOver = (id = 'studio') => {
    model.renewNode({ node: 'b', url: '' })
    model.leaveNode('a')
    return claim(id, 'b')
  }
  const reconcile = async () => owned.reconcile(await listOwned(memory.calls, 'a'))
  return {
    ...{ time, memory, model, owned, own, claim, start, takeOver, reconcile },
    take: () => done.splice(0),
    registered: (id = 'studio') => model.get(id),
    /** Writes so far. */
    writes: () => memory.called.filter((name) => name === 'advance').length,
  }
}

/** @returns the publication, and whether the stream has disconnected its encoder */
function publish(stream: LiveStream, keyId?: string) {
  let isClosed = false
  const publication = stream.publish({
    lastPacketUs: 0,
    report: () => PUBLISHER_REPORT,
    close: () => void (isClosed = true),
    ...(keyId !== undefined && { keyId }),
  })
  return { publication, isClosed: () => isClosed }
}

t.test('the registry has what the next owner needs to go on', async (t) => {
  const { time, owned, own, registered, take, takeOver } = createNode()
  const { stream, fence } = own()
  await time.pass(0)
  t.strictSame(take(), ['follow studio'])
  t.match(registered(), { owner: 'a', status: 'READY', fence })
  const keyId = `${time.clock.wallMs() / 1000}-7200-main`
  const { publication } = publish(stream, keyId)
  await time.pass(5)
  t.equal(registered()?.status, 'STREAMING')
  t.strictSame(registered()?.keys[keyId], time.clock.wallMs() - 5)
  publication.push(new GopEncoder().encode([2, 2, 2, 2, 2]))
  await time.pass(0)
  t.equal(owned.pending, 0)
  publication.end('timeout')
  await time.pass(0)
  t.equal(registered()?.status, 'INTERRUPTED')
  const { rows, free } = stream.checkpoint
  t.equal(rows.length, 5)
  const next = takeOver()
  t.strictSame(next.free, free)
  t.strictSame(
    next.entries.map(({ value }) => value),
    JSON.parse(JSON.stringify(rows)),
  )
})

t.test('the registry has the status of a stream whose encoder sends nothing', async (t) => {
  const { time, own, registered } = createNode()
  const { publication } = publish(own().stream)
  await time.pass(0)
  t.equal(registered()?.status, 'STREAMING')
  publication.end('timeout')
  await time.pass(0)
  t.equal(registered()?.status, 'INTERRUPTED')
})

t.test('a node knows what it owns, and what the registry has yet to learn', async (t) => {
  const { time, memory, owned, own } = createNode()
  t.strictSame([owned.has('studio'), owned.fenceOf('studio'), owned.size], [false, undefined, 0])
  t.strictSame(owned.reportOf('studio'), {})
  memory.fault = 'away'
  const { stream, fence } = own()
  stream.emit('live')
  t.strictSame([owned.has('studio'), owned.fenceOf('studio'), owned.size], [true, fence, 1])
  t.strictSame(owned.reportOf('studio'), { fence, pendingWrites: 2 })
  t.equal(owned.pending, 1)
  memory.fault = undefined
  await time.pass(1000)
  t.strictSame(owned.reportOf('studio'), { fence, pendingWrites: 0 })
  t.equal(owned.pending, 0)
})

t.test(
  'the end of a stream is written, then announced; it is served until its linger is over',
  async (t) => {
    const { time, owned, own, registered } = createNode()
    const { stream, fence, run } = own()
    const announced: unknown[] = []
    const end = () =>
      owned.stop(stream, 'grace-expired', async (name) => {
        announced.push(name, registered()?.status)
      })
    stream.stop('grace-expired')
    t.equal(end(), true)
    await time.pass(0)
    t.match(registered(), { status: 'STOPPED', reason: 'grace-expired' })
    t.strictSame(announced, [{ streamId: 'studio', run }, 'STOPPED'])
    t.strictSame([owned.has('studio'), owned.fenceOf('studio'), owned.size], [false, fence, 0])
    await time.pass(LINGER_MS)
    t.equal(owned.fenceOf('studio'), undefined)
    const next = new LiveStream('studio', {
      ...{ clock: time.clock, cache: new SegmentCache({ maxBytes: 1e6 }), epoch: 'e' },
      ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6, reconnectGraceSec: 60 },
      lingerSec: 60,
    })
    t.equal(
      owned.stop(next, 'api', async () => t.fail('it is not owned')),
      false,
    )
  },
)

t.test('a stream that is yielded is here no more', async (t) => {
  const { owned, own, registered, take } = createNode()
  own()
  await owned.yield('studio', 400)
  t.equal(registered()?.isYielded, true)
  t.strictSame(take(), ['follow studio', 'flush 400', 'leave studio'])
  t.equal(owned.has('studio'), false)
  await owned.yield('studio', 400)
  t.strictSame(take(), [])
})

t.test('a stream that another node has claimed is left', async (t) => {
  const { time, owned, own, takeOver, take, registered } = createNode()
  const { stream } = own()
  await time.pass(0)
  takeOver()
  publish(stream)
  await time.pass(0)
  t.strictSame(take(), ['follow studio', 'leave studio'])
  t.equal(owned.has('studio'), false)
  t.match(registered(), { owner: 'b', status: 'READY' })
})

t.test('a stream that was stopped elsewhere stops for the same reason', async (t) => {
  const { time, model, owned, own, take } = createNode()
  const { stream } = own()
  const reasons: string[] = []
  stream.on('end', ({ reason }) => reasons.push(reason))
  await time.pass(0)
  model.stop('studio', { reason: 'key-expired', lingerMs: LINGER_MS })
  stream.emit('live')
  await time.pass(0)
  t.strictSame(reasons, ['key-expired'])
  t.strictSame(take(), ['follow studio'], 'it is served here')
  t.equal(owned.has('studio'), false)
})

t.test('a stream whose numbers others have passed is claimed again', async (t) => {
  const { time, model, own, take } = createNode()
  const { stream, fence } = own()
  await time.pass(0)
  const { media, discontinuity } = stream.freeSequence
  const higher = { media: media + 5, discontinuity }
  const late = { serial: 1, entries: [], first: 0, free: higher }
  t.match(model.advance('studio', { node: 'b', fence: fence - 1 }, late), { outcome: 'stale' })
  stream.emit('live')
  await time.pass(0)
  t.strictSame(take(), ['follow studio', 'leave studio', 'reclaim studio'])
})

t.test('a registry that has lost a stream gets all of it', async (t) => {
  const { time, model, own, take, registered } = createNode()
  const { stream, fence } = own()
  publish(stream).publication.push(new GopEncoder().encode([2, 2, 2, 2]))
  await time.pass(0)
  model.streams.clear()
  stream.emit('live')
  await time.pass(0)
  t.strictSame(take(), ['follow studio', 'restored studio'])
  t.match(registered(), {
    ...{ owner: 'a', status: 'STREAMING', fence, epoch: 'a' },
    ...{ options: { title: 'new' }, keyExpiresAtMs: 7, keys: { '5-7200-main': 6000 } },
  })
  t.equal(model.windows.get('studio')?.length, stream.checkpoint.rows.length)
})

t.test('a comparison finds streams that are here no more, or not yet', async (t) => {
  const { time, model, own, claim, takeOver, reconcile, take, writes } = createNode()
  own('here')
  own('lost')
  claim('missing')
  const over = claim('over')
  model.stop('over', { reason: 'api', by: { node: 'a', fence: over.stream.fence }, lingerMs: 9 })
  await time.pass(0)
  const before = writes()
  t.strictSame(await reconcile(), ['missing', 'over'])
  await time.pass(0)
  t.equal(writes(), before, 'nothing has changed')
  takeOver('lost')
  model.renewNode({ node: 'a', url: '' })
  t.strictSame(await reconcile(), ['missing', 'over'])
  await time.pass(0)
  t.strictSame(take(), ['follow here', 'follow lost', 'leave lost'])
})

t.test('a comparison tells that the registry has the stream', async (t) => {
  const { time, model, own, reconcile, take, registered } = createNode()
  const { stream } = own()
  await time.pass(3 * HOUR_MS)
  await reconcile()
  model.streams.clear()
  model.bornMs = 0
  stream.emit('live')
  await time.pass(0)
  t.equal(registered()?.owner, 'a')
  t.strictSame(take(), ['follow studio', 'restored studio'])
})

t.test('a stream is left if the registry had forgotten it for long', async (t) => {
  const { time, model, own, take, registered } = createNode()
  const { stream } = own()
  await time.pass(3 * HOUR_MS)
  model.streams.clear()
  model.bornMs = 0
  stream.emit('live')
  await time.pass(0)
  t.equal(registered(), undefined)
  t.strictSame(take(), ['follow studio', 'leave studio'])
})

t.test('a stream that was served to its end is not claimed again', async (t) => {
  const { time, owned, own } = createNode()
  const { stream, fence } = own()
  stream.stop('api')
  owned.stop(stream, 'api', async () => undefined)
  await time.pass(LINGER_MS)
  const running = new Map<string, number>()
  const lingering = new Map([['studio', fence]])
  t.strictSame(await owned.reconcile({ running, lingering }), [], 'which ends later there')
  t.strictSame(await owned.reconcile({ running, lingering: new Map() }), [])
  t.strictSame(await owned.reconcile({ running, lingering }), ['studio'], 'not known any more')
})

t.test(
  'a stream that ended in a long outage of the registry is stopped, not claimed',
  async (t) => {
    const { time, memory, owned, own, reconcile, registered } = createNode()
    const { stream } = own()
    await time.pass(0)
    memory.fault = 'away'
    const announced: string[] = []
    stream.stop('api')
    owned.stop(stream, 'api', async () => announced.push('end'))
    await time.pass(HOUR_MS)
    t.equal(stream.forgotten, true)
    memory.fault = undefined
    t.strictSame(await reconcile(), [])
    t.match(registered(), { status: 'STOPPED', reason: 'api' })
    t.strictSame(await reconcile(), [], 'while it lingers in the registry')
    t.strictSame(announced, ['end'])
  },
)

t.test('ends that a failover has lost are announced for as long as it takes', async (t) => {
  const { time, model, owned, own, reconcile, registered, take } = createNode()
  const ids = ['one', 'two']
  const streams = ids.map((id) => own(id).stream)
  await time.pass(0)
  const { streams: stored, stopped, lingering } = model
  const before = structuredClone({ streams: stored, stopped, lingering })
  const calls: string[] = []
  let isRefused = false
  const announce = async ({ streamId }: { readonly streamId: string }) => {
    calls.push(streamId)
    if (isRefused) throw unavailable()
  }
  for (const stream of streams) {
    stream.stop('api')
    owned.stop(stream, 'api', announce)
  }
  await time.pass(0)
  t.strictSame(calls, ids)
  const announcedInRound = async () => {
    calls.length = 0
    t.strictSame(await reconcile(), [])
    return calls.toSorted()
  }
  t.strictSame(await announcedInRound(), [], 'the registry has them')

  Object.assign(model, before)
  isRefused = true
  t.strictSame(await announcedInRound(), ids, 'one that fails delays no other')
  t.equal(registered('one')?.status, 'STOPPED')
  isRefused = false
  t.strictSame(await announcedInRound(), ids, 'again')
  t.strictSame(await announcedInRound(), [], 'once')
  t.strictSame(take(), ['follow one', 'follow two'])
})

t.test('a stopped stream is left once its next run has another owner', async (t) => {
  const { time, owned, own, takeOver, reconcile, take, registered } = createNode()
  const { stream } = own()
  const announced: string[] = []
  stream.stop('api')
  owned.stop(stream, 'api', async () => announced.push('end'))
  await time.pass(1)
  takeOver()
  t.strictSame(await reconcile(), [])
  t.strictSame(take(), ['follow studio', 'leave studio'])
  t.equal(owned.fenceOf('studio'), undefined)
  t.strictSame(announced, ['end'], 'once')
  t.match(registered(), { owner: 'b', status: 'READY' })
})

t.test('a node that goes away writes all, and leaves what runs', async (t) => {
  const { time, model, owned, own, take, registered } = createNode()
  const { stream } = own('one')
  const { publication, isClosed } = publish(stream)
  publication.push(new GopEncoder().encode([2, 2, 2, 2]))
  const ended = own('two').stream
  ended.stop('api')
  owned.stop(ended, 'api', async () => undefined)
  const { free } = stream.checkpoint
  await owned.handOver(700)
  t.equal(isClosed(), true)
  t.strictSame(take(), ['follow one', 'follow two', 'flush 700', 'leave one'])
  t.equal(model.streams.get('one')?.media, free.media)
  t.equal(registered('two')?.status, 'STOPPED')
  t.ok(owned.fenceOf('two'), 'it lingers here')
  await time.pass(0)
  t.equal(owned.size, 0)
})

t.test('after close nothing is written', async (t) => {
  const { time, owned, own, writes } = createNode()
  const { stream } = own()
  await time.pass(0)
  const before = writes()
  owned.close()
  stream.emit('live')
  await time.pass(5000)
  t.equal(writes(), before)
})

t.test('all streams of a node are listed, page by page', async (t) => {
  const { memory, model, claim } = createNode()
  const ids = Array.from({ length: 1001 }, (_, index) => `s${1000 + index}`)
  for (const id of ids) claim(id)
  model.stop('s1000', { reason: 'api', lingerMs: LINGER_MS })
  const { running, lingering } = await listOwned(memory.calls, 'a')
  t.strictSame([...running.keys()], ids.slice(1))
  t.strictSame([...lingering.keys()], ['s1000'])
  t.equal(running.get('s1001'), model.get('s1001')?.fence)
  t.equal(memory.called.filter((name) => name === 'owned').length, 3)
})
