/**
 * Claims of a node: a registry in memory, virtual time.
 */
import t from 'tap'
import type { StreamKeyClaims } from '../../../../src/auth/stream-key.ts'
import type { NodeRequest } from '../../../../src/cluster/node/call-node.ts'
import { Claims } from '../../../../src/cluster/node/takeover/claims.ts'
import type { Handover } from '../../../../src/cluster/registry/registered.ts'
import { MillraceError } from '../../../../src/errors.ts'
import { SegmentCache } from '../../../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../../../src/stream/live-stream.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'

const LEASE_MS = 2000
const URL = 'http://b.example'

/** Claims of node `a`. The stream `studio` is started; node `b` has a lease. */
function createClaims(options: Partial<ConstructorParameters<typeof Claims>[0]> = {}) {
  const time = new VirtualTime()
  const memory = new MemoryRegistry(time.clock, { leaseMs: LEASE_MS, settleMs: 2 * LEASE_MS })
  const { model } = memory
  model.renewNode({ node: 'a', url: 'http://a.example' })
  model.renewNode({ node: 'b', url: URL })
  const keyExpiresAtMs = time.clock.wallMs() + 3_600_000
  model.start('studio', { options: {}, keyExpiresAtMs })
  let epochs = 0
  const owned = new Map<string, Handover>()
  const events: string[] = []
  const claims = new Claims({
    node: 'a',
    createEpoch: () => `a${epochs++}`,
    registry: memory.calls,
    call: async ({ url }) => {
      throw new Error(`${url} is not asked`)
    },
    owned: {
      has: (id) => owned.has(id),
      own: ({ id }, handover) => {
        owned.set(id, handover)
        events.push('owned')
      },
    },
    sharesPort: false,
    readMedia: undefined,
    readRoom: () => 10,
    continueStream: ({ stream: { id, epoch }, free }) => {
      events.push('continued')
      const stream = new LiveStream(id, {
        ...{ clock: time.clock, cache: new SegmentCache({ maxBytes: 1e6 }), epoch },
        ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6, reconnectGraceSec: 60 },
        ...{ lingerSec: 60, sequenceStart: free },
      })
      stream.on('interrupted', ({ reason }) => events.push(`interrupted: ${reason}`))
      return stream
    },
    refresh: async () => void events.push('refreshed'),
    timers: time,
    ...options,
  })
  /** The stream at node `b`, with a segment. */
  const own = (status: 'STREAMING' | 'INTERRUPTED' = 'STREAMING') => {
    const claimed = model.claim('studio', { node: 'b', epoch: 'e', seenFence: 0 })
    if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
    const { media, discontinuity } = claimed.free
    const ownership = { node: 'b', fence: claimed.stream.fence }
    const state = {
      ...{ status, first: media, free: { media: media + 1, discontinuity } },
      entries: [{ mediaSequence: media, value: 'segment' }],
    }
    model.advance('studio', ownership, { serial: 1, ...state })
    return {
      ...{ fence: ownership.fence, media: media + 1 },
      yield: () => model.advance('studio', ownership, { serial: 2, ...state, isYielded: true }),
    }
  }
  const keyOf = (issuedAtSec: number): StreamKeyClaims => ({
    ...{ streamId: 'studio', issuedAtSec, expiresAtSec: keyExpiresAtMs / 1000 },
  })
  const key = keyOf(time.clock.wallMs() / 1000)
  const registered = () => model.get('studio')
  return { time, memory, model, claims, owned, events, own, keyOf, key, keyExpiresAtMs, registered }
}

/** As `fetch` fails where nobody listens. */
function refuse(): never {
  throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })
}

t.test('an encoder gets a stream without an owner, once', async (t) => {
  const { claims, owned, key, memory, events, registered } = createClaims()
  await Promise.all([claims.admit(key), claims.admit(key), claims.claim('studio')])
  t.match(registered(), { owner: 'a', status: 'READY' })
  t.strictSame([...owned.keys()], ['studio'])
  t.strictSame(events, ['continued', 'owned'], 'without media nothing is refreshed')
  await claims.admit(key)
  t.equal(memory.called.filter((name) => name === 'claim').length, 1)
})

t.test('each encoder is judged by its own stream key', async (t) => {
  const { claims, model, keyOf, keyExpiresAtMs, registered } = createClaims()
  model.stop('studio', { reason: 'api', lingerMs: 1000, revoke: true })
  model.start('studio', { options: {}, keyExpiresAtMs })
  const { keyFloorSec = 0 } = registered() ?? {}
  t.ok(keyFloorSec > 0)
  const answers = await Promise.allSettled([
    claims.admit(keyOf(keyFloorSec - 1)),
    claims.admit(keyOf(keyFloorSec + 1)),
    claims.admit(keyOf(keyFloorSec + 1)),
  ])
  t.match(answers, [
    { status: 'rejected', reason: { code: 'STREAM_KEY_REVOKED' } },
    { status: 'fulfilled' },
    { status: 'fulfilled' },
  ])
  t.equal(registered()?.owner, 'a')
})

t.test('encoders without a stream key are checked one at a time', async (t) => {
  const { claims, owned, registered } = createClaims()
  let checks = 0
  let end: ((error: Error) => void) | undefined
  const call = () =>
    claims.admitUnkeyed('studio', () => {
      checks++
      return new Promise((_, reject) => (end = reject))
    })
  const first = call()
  await t.rejects(call(), { code: 'STREAM_BUSY' })
  end?.(new MillraceError('PASSPHRASE_WRONG'))
  await t.rejects(first, { code: 'PASSPHRASE_WRONG' })
  t.equal(checks, 1)
  t.equal(registered()?.fence, 0, 'nobody has claimed it')
  await claims.admitUnkeyed('studio', async () => undefined)
  t.strictSame([...owned.keys()], ['studio'])
  await claims.admitUnkeyed('studio', async () => void t.fail('the stream is here'))
})

t.test('no encoder gets a stream that is over, or was never started', async (t) => {
  const { claims, model, key } = createClaims()
  await t.rejects(claims.admit({ ...key, streamId: 'other' }), { code: 'STREAM_NOT_FOUND' })
  await claims.claim('other')
  model.stop('studio', { reason: 'api', lingerMs: 60_000 })
  await t.rejects(claims.admit(key), { code: 'STREAM_NOT_FOUND' })
  t.equal(model.get('studio')?.owner, undefined)
})

t.test('a stream that its owner yields goes on with its window', async (t) => {
  const asked: NodeRequest[] = []
  const { claims, owned, own, key, events } = createClaims({
    call: async (request) => {
      asked.push(request)
      owner.yield()
      return { yielded: true }
    },
  })
  const owner = own()
  await claims.admit(key)
  const body = { stream_id: 'studio', fence: owner.fence }
  t.match(asked, [{ url: URL, call: 'yield', body }])
  t.equal(asked.length, 1)
  const { free, entries } = owned.get('studio')!
  t.equal(free.media, owner.media)
  t.match(entries, [{ mediaSequence: owner.media - 1, value: 'segment' }])
  t.strictSame(events, ['continued', 'owned'], 'its encoder is here: it is not interrupted')
})

t.test('a stream that was yielded before is claimed without a call', async (t) => {
  const { claims, owned, own, key } = createClaims()
  const owner = own()
  owner.yield()
  await claims.admit(key)
  t.equal(owned.get('studio')?.free.media, owner.media)
})

t.test('an encoder is refused while another one publishes', async (t) => {
  const { claims, own, key, registered } = createClaims({ call: async () => ({ yielded: false }) })
  own()
  await t.rejects(claims.admit(key), { code: 'STREAM_BUSY', message: /b\.example/ })
  t.equal(registered()?.owner, 'b')
})

t.test('where nodes share a port, the owner takes that encoder', async (t) => {
  const call = async () => ({ yielded: false })
  const { claims, own, key } = createClaims({ call, sharesPort: true })
  own()
  await t.rejects(claims.admit(key), { code: 'STREAM_BUSY', takenBy: 'b' })
})

t.test('the lease of an owner that refuses the call is ended', async (t) => {
  const { time, memory, claims, own, key, registered } = createClaims({
    call: async () => refuse(),
  })
  own()
  const fromMs = time.clock.wallMs()
  await time.until(claims.admit(key))
  t.equal(registered()?.owner, 'a')
  t.ok(memory.model.gone.has('b'))
  t.ok(time.clock.wallMs() - fromMs < LEASE_MS, 'before it lapses')
})

t.test('an encoder is refused while a silent owner has its lease, after three tries', async (t) => {
  const { memory, claims, own, key } = createClaims({
    call: async () => {
      throw new Error('no reply in 1500 ms')
    },
  })
  own()
  await t.rejects(claims.admit(key), {
    code: 'REGISTRY_UNAVAILABLE',
    message: /or the node that has the stream, does not answer/,
  })
  t.equal(memory.called.filter((name) => name === 'claim').length, 3)
  t.notOk(memory.called.includes('leaveNode'))
})

t.test('a stream that others claim meanwhile is claimed again', async (t) => {
  let isFirst = true
  const { model, claims, key, owned } = createClaims({
    readRoom: () => {
      if (isFirst) {
        model.claim('studio', { node: 'b', epoch: 'e', seenFence: 0 })
        model.leaveNode('b')
      }
      isFirst = false
      return 1
    },
    call: async () => refuse(),
  })
  await claims.admit(key)
  t.strictSame([...owned.keys()], ['studio'])
})

t.test('a stream that this node has lost goes on 1,000 numbers higher', async (t) => {
  const { model, claims, owned, registered } = createClaims()
  const lost = model.claim('studio', { node: 'a', epoch: 'lost', seenFence: 0 })
  if (lost.outcome !== 'granted') throw new Error(lost.outcome)
  await claims.claim('studio')
  t.match(registered(), { owner: 'a' })
  t.equal(owned.get('studio')?.free.media, lost.free.media + 1000)

  const { fence } = registered()!
  const { free } = owned.get('studio')!
  owned.clear()
  const yielded = { serial: 1, entries: [], first: free.media, free, isYielded: true }
  model.advance('studio', { node: 'a', fence }, yielded)
  await claims.claim('studio')
  t.equal(owned.get('studio')?.free.media, free.media, 'unless it has yielded it')
})

t.test('receivers are told that an adopted stream is interrupted, if it was live', async (t) => {
  for (const status of ['STREAMING', 'INTERRUPTED'] as const) {
    const { model, claims, own, events } = createClaims()
    own(status)
    model.leaveNode('b')
    await claims.claim('studio')
    const told = status === 'STREAMING' ? ['interrupted: timeout'] : []
    t.strictSame(events, ['continued', 'owned', ...told], status)
  }
})

t.test('media is read before the stream goes on, and the record again after it', async (t) => {
  const events: string[] = []
  const { model, claims, own, memory } = createClaims({
    readMedia: async ({ entries }) => {
      events.push(`${entries.length} read`)
      return () => undefined
    },
    continueStream: (_handover, mediaOf) => {
      events.push(mediaOf === undefined ? 'without media' : 'with media')
      return {} as LiveStream
    },
    owned: { has: () => false, own: () => void events.push('owned') },
    refresh: async () => {
      events.push('refreshed')
      throw new Error('another round does it')
    },
  })
  own('INTERRUPTED')
  model.leaveNode('b')
  await claims.claim('studio')
  t.strictSame(events, ['1 read', 'with media', 'owned', 'refreshed'])
  t.notOk(memory.called.includes('advance'))
})

t.test('a node claims no more streams than it has room for', async (t) => {
  const { model, memory, claims, owned, keyExpiresAtMs } = createClaims({ readRoom: () => 1 })
  model.start('other', { options: {}, keyExpiresAtMs })
  const answers = await Promise.allSettled([claims.claim('studio'), claims.claim('other')])
  t.match(answers, [
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'TOO_MANY_STREAMS' } },
  ])
  t.strictSame([...owned.keys()], ['studio'])
  t.equal(memory.called.filter((name) => name === 'claim').length, 1)
  await claims.claim('other')
  t.strictSame([...owned.keys()], ['studio', 'other'], 'the room is free again')
})

t.test('a stream that cannot go on here is left to other nodes, with its window', async (t) => {
  const adopted: Handover[] = []
  const { model, claims, own, owned, registered } = createClaims({
    continueStream: (handover) => {
      adopted.push(handover)
      throw new MillraceError('TOO_MANY_STREAMS')
    },
  })
  own()
  model.leaveNode('b')
  await t.rejects(claims.claim('studio'), { code: 'TOO_MANY_STREAMS' })
  t.match(registered(), { owner: 'a', isYielded: true })
  t.equal(owned.size, 0)
  const { fence } = registered()!
  model.renewNode({ node: 'c', url: 'http://c.example' })
  const next = model.claim('studio', { node: 'c', epoch: 'c', seenFence: fence })
  t.match(next, { outcome: 'granted', free: adopted[0]!.free, entries: adopted[0]!.entries })
})

t.test('a stopped stream that lingers goes over, too', async (t) => {
  const { model, claims, own, owned } = createClaims()
  own()
  model.stop('studio', { reason: 'api', lingerMs: 60_000 })
  model.leaveNode('b')
  await claims.claim('studio')
  t.match(owned.get('studio'), { stream: { status: 'STOPPED', owner: 'a', reason: 'api' } })
  t.equal(owned.get('studio')?.entries.length, 1)
})

t.test('a stopped stream that cannot be served is claimed again, with its window', async (t) => {
  const adopted: Handover[] = []
  const { model, claims, own } = createClaims({
    owned: { has: () => false, own: () => undefined },
    continueStream: (handover) => {
      adopted.push(handover)
      if (adopted.length === 1) throw new MillraceError('TOO_MANY_STREAMS')
      return {} as LiveStream
    },
  })
  own()
  model.stop('studio', { reason: 'api', lingerMs: 60_000 })
  model.leaveNode('b')
  await t.rejects(claims.claim('studio'), { code: 'TOO_MANY_STREAMS' })
  t.strictSame(model.orphans('a', { limit: 9 }), [])
  t.match(model.owned('a', { limit: 9, lingering: true }), [{ id: 'studio' }])
  await claims.claim('studio')
  t.match(adopted[1], { stream: { status: 'STOPPED', owner: 'a' } })
  t.strictSame(adopted[1]?.entries, adopted[0]?.entries)
  t.equal(adopted[1]?.entries.length, 1)
})
