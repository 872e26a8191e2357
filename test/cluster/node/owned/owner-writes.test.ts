/**
 * Writes of the owner of a stream: a registry in memory, virtual time.
 */
import t, { type Test } from 'tap'
import {
  OwnerWrites,
  type OwnerWritesOptions,
} from '../../../../src/cluster/node/owned/owner-writes.ts'
import type { Advance, Registry } from '../../../../src/cluster/registry/registry.ts'
import { machineTimers } from '../../../../src/timing/clock.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'

const FREE = { media: 7, discontinuity: 1 }
const HOUR_MS = 3_600_000

/** Writes to a registry that answers as it is told. */
function writesTo(t: Test, advance: Registry['advance']): OwnerWrites {
  const unused = (): never => {
    throw new Error('the registry has lost nothing')
  }
  const options: OwnerWritesOptions = {
    ...{ streamId: 'studio', ownership: { node: 'a', fence: 1 }, run: 1, lingerMs: 0 },
    registry: { advance, restore: unused, stop: unused },
    readStatus: () => 'STREAMING',
    readLeaseSince: () => undefined,
    readWhole: unused,
    clock: { wallMs: () => 0 },
    timers: machineTimers,
    onLost: ({ outcome }) => t.fail(outcome),
    onError: (error) => t.error(error),
  }
  const writes = new OwnerWrites(options)
  t.teardown(() => writes.close())
  writes.push({ first: 6, free: FREE, entries: [] })
  return writes
}

/** Writes of node `a`, which has claimed `studio`, whose next number is `media`. */
function createWrites(fits: (advance: Advance) => boolean = () => true) {
  const time = new VirtualTime()
  const memory = new MemoryRegistry(time.clock, { leaseMs: 24 * HOUR_MS })
  const { model } = memory
  const leaseSinceMs = model.renewNode({ node: 'a', url: '' })
  const keyExpiresAtMs = time.clock.wallMs() + 24 * HOUR_MS
  model.start('studio', { options: { webhookUrls: [] }, keyExpiresAtMs })
  const claimed = model.claim('studio', { node: 'a', epoch: 'e', seenFence: 0 })
  if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
  const { stream, free } = claimed
  const { fence, run, epoch, startedAtMs } = stream
  const { media, discontinuity } = free
  /** Calls of `advance`, as they were sent. */
  const sent: Advance[] = []
  const losses: string[] = []
  const errors: unknown[] = []
  let restorations = 0
  /** Numbers up to `end`, which is free, from `first`, with entries. */
  const state = (first: number, end: number, numbers: readonly number[] = []) => ({
    first: media + first,
    free: { media: media + end, discontinuity },
    entries: numbers.map((number) => ({ mediaSequence: media + number, value: `of ${number}` })),
  })
  const writes = new OwnerWrites({
    registry: {
      advance: (id, ownership, advance) => {
        sent.push(advance)
        if (!fits(advance)) return Promise.reject(new RangeError())
        return memory.calls.advance(id, ownership, advance)
      },
      restore: memory.calls.restore,
      stop: memory.calls.stop,
    },
    ...{ streamId: 'studio', ownership: { node: 'a', fence }, run, lingerMs: 60_000 },
    readStatus: () => 'STREAMING',
    readLeaseSince: () => leaseSinceMs,
    readWhole: () => ({
      ...{ epoch, run, startedAtMs, keyExpiresAtMs, options: { title: 'new' }, keys: {} },
      ...state(0, 2, [0, 1]),
    }),
    clock: time.clock,
    timers: time,
    onRestored: () => restorations++,
    onLost: ({ outcome }) => losses.push(outcome),
    onError: (error) => errors.push(error),
  })
  /** The stream as the next owner gets it. */
  const handOver = () => {
    model.renewNode({ node: 'b', url: '' })
    model.leaveNode('a')
    const { fence: seenFence = 0 } = model.get('studio') ?? {}
    const next = model.claim('studio', { node: 'b', epoch: 'b', seenFence })
    if (next.outcome !== 'granted') throw new Error(next.outcome)
    const numbers = next.entries.map(({ mediaSequence }) => mediaSequence - media)
    return { ...next, numbers, end: next.free.media - media }
  }
  return {
    ...{ time, memory, model, writes, sent, losses, errors, state, handOver, media, fence },
    restorations: () => restorations,
    registered: () => model.get('studio'),
  }
}

t.test('waits for the acknowledgement of all changes, and leaves no timer', async (t) => {
  const timersOf = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timersOf()
  const writes = writesTo(t, async () => ({ outcome: 'accepted', free: FREE }))
  t.equal(await writes.flush(60_000), true)
  t.equal(timersOf(), before)
  t.equal(await writes.flush(0), true, 'of none')
})

t.test('a registry that does not answer holds a flush up for its time limit alone', async (t) => {
  const writes = writesTo(t, () => new Promise(() => undefined))
  t.equal(await writes.flush(20), false)
  t.equal(writes.pendingWrites, 1)
})

t.test('the next owner has what was written: numbers, window, status', async (t) => {
  const { time, writes, sent, state, registered, handOver } = createWrites()
  writes.push(state(0, 2, [1, 0]))
  writes.push({ ...state(0, 3, [2]), renditions: ['video'], targets: { targetSec: 2 } })
  t.equal(writes.pendingWrites, 2)
  await time.pass(0)
  t.equal(writes.isPending, false)
  t.equal(sent.length, 1, 'changes of one turn are one call')
  t.equal(registered()?.status, 'STREAMING')
  const next = handOver()
  t.strictSame([next.numbers, next.end], [[0, 1, 2], 3])
  t.match(next, { renditions: ['video'], targets: { targetSec: 2 } })
})

t.test('changes wait for a registry that is away, and are one call then', async (t) => {
  const { time, memory, writes, sent, state, handOver } = createWrites()
  memory.fault = 'away'
  for (let end = 1; end <= 5; end++) {
    writes.push(state(Math.max(0, end - 3), end, [end - 1]))
    await time.pass(2000)
  }
  t.equal(writes.pendingWrites, 5)
  t.strictSame(sent.at(-1)?.entries.length, 3, 'what has left the window is not written')
  // 100 ms, then doubled up to 1 s: 100, 300, 700, 1500, 2500 …
  t.equal(sent.length, 13)
  memory.fault = undefined
  await time.pass(1000)
  t.equal(writes.pendingWrites, 0)
  t.equal(sent.length, 14)
  const next = handOver()
  t.strictSame([next.numbers, next.end], [[2, 3, 4], 5])
})

t.test('a call whose answer was lost is repeated with later changes', async (t) => {
  const { time, memory, writes, state, losses, handOver } = createWrites()
  memory.fault = 'unanswered'
  writes.push(state(0, 1, [0]))
  await time.pass(0)
  t.equal(writes.isPending, true)
  memory.fault = undefined
  writes.push(state(0, 2, [1]))
  await time.pass(1000)
  t.equal(writes.isPending, false)
  t.strictSame(losses, [])
  t.strictSame(handOver().numbers, [0, 1])
})

t.test('an entry that changes during a call is written again', async (t) => {
  const { time, writes, sent, state, handOver, media } = createWrites()
  writes.push(state(0, 1, [0]))
  await Promise.resolve()
  t.equal(sent.length, 1)
  writes.push({ ...state(0, 1), entries: [{ mediaSequence: media, value: 'closed' }] })
  await time.pass(0)
  t.equal(sent.length, 2)
  t.strictSame(handOver().entries, [{ mediaSequence: media, value: 'closed' }])
})

t.test('the table of renditions is sent when it has changed', async (t) => {
  const { time, writes, sent, state } = createWrites()
  for (const renditions of [['one'], ['one'], ['two'], ['two']]) {
    writes.push({ ...state(0, 1), renditions })
    await time.pass(0)
  }
  t.strictSame(
    sent.map(({ renditions }) => renditions),
    [['one'], undefined, ['two'], undefined],
  )
  t.strictSame(
    sent.map(({ serial }) => serial),
    [1, 2, 3, 4],
  )
})

t.test('what does not fit into the registry costs no number', async (t) => {
  const { time, writes, errors, state, handOver } = createWrites(
    ({ renditions, entries }) => renditions === undefined && entries.length === 0,
  )
  writes.push({ ...state(0, 5, [0]), renditions: ['too long'] })
  await time.pass(0)
  t.match(errors, [RangeError])
  t.equal(writes.isPending, false)
  t.equal(handOver().end, 5)
})

t.test('a stream that is yielded may be claimed at once', async (t) => {
  const { writes, state, media, model, registered } = createWrites()
  writes.push(state(0, 1, [0]))
  await writes.yield(60_000)
  t.equal(registered()?.isYielded, true)
  model.renewNode({ node: 'b', url: '' })
  const { fence = 0 } = registered() ?? {}
  const next = model.claim('studio', { node: 'b', epoch: 'b', seenFence: fence })
  t.match(next, { outcome: 'granted', free: { media: media + 1 } })
})

t.test('an owner that another node has replaced writes no more', async (t) => {
  const { time, writes, sent, losses, state, handOver, registered } = createWrites()
  writes.push(state(0, 1, [0]))
  await time.pass(0)
  handOver()
  writes.push(state(0, 2, [1]))
  await time.pass(0)
  t.strictSame(losses, ['stale'])
  writes.touch()
  await time.pass(1000)
  t.equal(sent.length, 2)
  t.match(registered(), { owner: 'b', status: 'INTERRUPTED' })
})

t.test('an owner whose numbers others have passed loses the stream', async (t) => {
  const { time, model, writes, losses, state, media, fence } = createWrites()
  model.advance(
    'studio',
    { node: 'b', fence: fence - 1 },
    { serial: 1, entries: [], first: 0, free: { media: media + 9, discontinuity: 0 } },
  )
  writes.push(state(0, 9))
  await time.pass(0)
  t.strictSame(losses, [], 'as many')
  model.advance(
    'studio',
    { node: 'b', fence: fence - 1 },
    { serial: 1, entries: [], first: 0, free: { media: media + 10, discontinuity: 0 } },
  )
  writes.push(state(0, 9))
  await time.pass(0)
  t.strictSame(losses, ['overtaken'])
})

t.test('a registry that has lost the stream gets all of it', async (t) => {
  const { time, model, writes, losses, state, restorations, registered, handOver } = createWrites()
  model.streams.clear()
  writes.push(state(0, 2, [1]))
  await time.pass(0)
  t.strictSame(losses, [])
  t.equal(restorations(), 1)
  t.match(registered(), { owner: 'a', status: 'STREAMING', options: { title: 'new' } })
  writes.push(state(0, 3, [2]))
  await time.pass(0)
  t.equal(restorations(), 1)
  const next = handOver()
  t.strictSame([next.numbers, next.end], [[0, 1, 2], 3])
})

t.test('an owner that was away for longer than a stop is known gives up', async (t) => {
  for (const isConfirmed of [false, true]) {
    const { time, model, writes, losses, state, registered } = createWrites()
    await time.pass(3 * HOUR_MS)
    if (isConfirmed) writes.confirm()
    model.streams.clear()
    model.bornMs = 0
    writes.push(state(0, 2, [1]))
    await time.pass(0)
    t.strictSame(losses, isConfirmed ? [] : ['forgotten'])
    t.equal(registered()?.owner, isConfirmed ? 'a' : undefined)
  }
})

t.test('a stream that was stopped elsewhere tells its end, and writes nothing then', async (t) => {
  const { time, model, writes, sent, losses, state } = createWrites()
  model.stop('studio', { reason: 'api', lingerMs: 60_000 })
  writes.push(state(0, 1, [0]))
  await time.pass(0)
  t.strictSame(losses, ['stopped'])
  t.equal(writes.isPending, false)
  const announced: string[] = []
  await writes.stop('api', async () => announced.push('end'))
  t.strictSame(announced, ['end'])
  writes.touch()
  await time.pass(1000)
  t.equal(sent.length, 1)
})

t.test('the last numbers come before the end, and the end before its announcement', async (t) => {
  const { writes, memory, state, registered, model, media } = createWrites()
  writes.push(state(0, 4, [0, 1, 2, 3]))
  const announced: unknown[] = []
  const stopped = writes.stop('grace-expired', async () => announced.push(registered()?.status))
  t.equal(
    writes.stop('api', async () => t.fail('once')),
    stopped,
  )
  await stopped
  t.strictSame(announced, ['STOPPED'])
  t.match(registered(), { reason: 'grace-expired' })
  t.equal(model.streams.get('studio')?.media, media + 4)
  t.ok(memory.called.indexOf('advance') < memory.called.indexOf('stop'))
})

t.test('the end is told again until it is announced', async (t) => {
  const { time, memory, writes, state, registered } = createWrites()
  writes.push(state(0, 1, [0]))
  memory.fault = 'away'
  let announcements = 0
  const stopped = writes.stop('api', async () => {
    announcements++
    if (announcements < 3) throw new Error('no receiver yet')
  })
  await time.pass(60_000)
  t.equal(announcements, 0)
  memory.fault = undefined
  await time.until(stopped)
  t.equal(announcements, 3)
  t.equal(registered()?.status, 'STOPPED')
  t.equal(time.sleepers, 0)
})

t.test('the end of a stream that the registry has lost is told with the whole of it', async (t) => {
  const { time, model, writes, state, restorations, registered } = createWrites()
  writes.push(state(0, 1, [0]))
  await time.pass(0)
  model.streams.clear()
  const announced: string[] = []
  await writes.stop('api', async () => announced.push('end'))
  t.strictSame(announced, ['end'])
  t.equal(restorations(), 1)
  t.equal(registered()?.status, 'STOPPED')
})

t.test('a stream that goes on at another owner has no end', async (t) => {
  const { writes, handOver, registered } = createWrites()
  handOver()
  await writes.stop('api', async () => t.fail('it goes on'))
  t.match(registered(), { owner: 'b', status: 'READY' })
})

t.test('the end is told for ten minutes at most', async (t) => {
  const { time, memory, writes } = createWrites()
  memory.fault = 'away'
  const fromMs = time.clock.wallMs()
  await time.until(writes.stop('api', async () => t.fail('nobody knows')))
  const minutes = (time.clock.wallMs() - fromMs) / 60_000
  t.equal(Math.round(minutes), 10)
})

t.test('close ends all waits', async (t) => {
  const { time, memory, writes, sent, state } = createWrites()
  memory.fault = 'away'
  writes.push(state(0, 1, [0]))
  const stopped = writes.stop('api', async () => undefined)
  await time.pass(0)
  t.equal(time.sleepers, 2)
  const { length } = sent
  writes.close()
  await stopped
  t.equal(time.sleepers, 0)
  await time.pass(10_000)
  t.equal(sent.length, length)
})
