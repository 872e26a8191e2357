import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type {
  Advance,
  Registry,
  RegistrySettings,
} from '../../../../src/cluster/registry/registry.ts'
import { machineTimers } from '../../../../src/timing/clock.ts'
import { OwnerWrites } from '../../../../src/cluster/node/owned/owner-writes.ts'
import { readCommands, sendCommand } from '../../../../src/cluster/registry/node-commands.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'
import { openRedis, openRegistry } from './open-registry.ts'

const KEY_EXPIRES_AT_MS = Date.now() + 7_200_000
const OPTIONS = { options: {}, keyExpiresAtMs: KEY_EXPIRES_AT_MS }
const LINGER_MS = 60_000

if (requireTool(t, 'redis-server')) {
  const redis = await openRedis(t)
  const check = (title: string, run: (t: Test, registry: Registry) => Promise<void>) =>
    t.test(title, async (t) => {
      await redis.command(['FLUSHALL'])
      await run(t, openRegistry(redis))
    })
  const lapse = (node: string) => redis.command(['DEL', `mr:node:${node}`])
  const variant = (options: Partial<RegistrySettings>) => openRegistry(redis, options)

  await check('a started stream is READY, without an owner', async (t, registry) => {
    const beforeMs = Date.now()
    const options = { webhook_urls: [], part_ms: 300 }
    const { issuedAtSec = 0, ...stream } = await registry.start('studio', {
      options,
      keyExpiresAtMs: KEY_EXPIRES_AT_MS,
    })
    t.ok(issuedAtSec >= Math.floor(beforeMs / 1000))
    t.match(stream, { id: 'studio', status: 'READY', fence: 0, options, isYielded: false })
    t.equal(stream.owner, undefined)
    t.equal(stream.keyExpiresAtMs, KEY_EXPIRES_AT_MS)
    t.ok(stream.startedAtMs >= beforeMs - 1000 && stream.run === stream.startedAtMs)
    t.strictSame(await registry.get('studio'), stream)
    t.equal(await registry.get('other'), undefined)
  })

  await check('a port that another stream has binds no stream any more', async (t, registry) => {
    const start = (id: string, publishPort: number) =>
      registry.start(id, { ...OPTIONS, publishPort, isProtected: true })
    await start('studio', 5000)
    await t.rejects(start('studio', 5001), /must be 5000/)
    await redis.command(['HDEL', 'mr:ports', '5000'])
    await start('other', 5000)
    t.match((await start('studio', 5001)).options, { publishPort: 5001 })
  })

  await check(
    'a start of a running stream merges options and keeps the run',
    async (t, registry) => {
      const first = await registry.start('studio', { ...OPTIONS, options: { a: 1, b: [] } })
      const again = { options: { b: ['x'] }, keyExpiresAtMs: 1 }
      const second = await registry.start('studio', again)
      t.strictSame(second, { ...first, options: { a: 1, b: ['x'] } })
      const later = await registry.start('studio', {
        ...again,
        keyExpiresAtMs: KEY_EXPIRES_AT_MS + 1,
      })
      t.equal(later.keyExpiresAtMs, KEY_EXPIRES_AT_MS + 1, 'the last key counts')
    },
  )

  await check(
    'a kept setting has its first value until the stream stops, an update replaces the others',
    async (t, registry) => {
      const start = (kept: object, options: object) =>
        registry.start('studio', { kept: { ...kept }, options: { ...options }, keyExpiresAtMs })
      const keyExpiresAtMs = KEY_EXPIRES_AT_MS
      await start({ media: { partMs: 300 } }, { a: 1 })
      const second = await start({ media: {}, encryption: 7 }, { a: 2 })
      t.strictSame(second.options, { media: { partMs: 300 }, encryption: 7, a: 2 })
      const updated = await registry.update('studio', { a: 3, kick: 'x' })
      t.strictSame(updated?.options, { media: { partMs: 300 }, encryption: 7, a: 3, kick: 'x' })
      t.strictSame(updated, await registry.get('studio'))
      t.equal(await registry.update('other', { a: 1 }), undefined)
      await registry.stop('studio', { reason: 'api', lingerMs: 60_000 })
      t.strictSame((await start({ media: {} }, {})).options, { media: {} })
    },
  )

  await check(
    'a revocation holds for every key issued before it, in later runs and for unknown streams',
    async (t, registry) => {
      const stop = { reason: 'api', lingerMs: 0, revoke: true } as const
      const nowSec = Math.floor(Date.now() / 1000)
      t.strictSame(await registry.stop('studio', stop), { outcome: 'unknown' })
      const keyExpiresAtMs = (nowSec + 7200) * 1000
      const { keyFloorSec: floorSec = 0 } = await registry.start('studio', {
        options: {},
        keyExpiresAtMs,
      })
      t.ok(floorSec > nowSec && floorSec <= Date.now() / 1000 + 1)
      // The clock of the node that issues it is ahead.
      const keyIssuedAtMs = (nowSec + 3600) * 1000
      await registry.start('studio', { options: {}, keyExpiresAtMs, keyIssuedAtMs })
      await registry.stop('studio', stop)
      t.equal((await registry.get('studio'))?.keyFloorSec, nowSec + 3601)
      t.equal((await registry.start('other', OPTIONS)).keyFloorSec, undefined)
    },
  )

  await check(
    'a revocation holds for as long as the registry, and a key issued after it is above its floor',
    async (t, registry) => {
      const lifetimeMs = 7_200_000
      const stop = { reason: 'api', lingerMs: 0, revoke: true } as const
      const startSec = Math.floor(Date.now() / 1000)
      // Each key is issued at the floor of the revocation before it, which is a second later.
      for (let times = 0; times < 300; times++) {
        await registry.start('studio', OPTIONS)
        await registry.stop('studio', stop)
      }
      const issuedMs = Date.now()
      const { keyFloorSec: floorSec = 0, keyExpiresAtMs } = await registry.start('studio', {
        options: {},
        keyExpiresAtMs: issuedMs + lifetimeMs,
      })
      t.ok(floorSec >= startSec + 300)
      const lostMs = floorSec * 1000 + lifetimeMs - keyExpiresAtMs
      t.ok(lostMs >= 0 && lostMs <= Date.now() - issuedMs, 'it has its lifetime from the floor on')
      t.equal(await redis.command(['TTL', 'mr:floors']), -1)
    },
  )

  await check(
    'keys stay listed until they are revoked, expire or are too many',
    async (t, registry) => {
      const nowMs = Date.now()
      const start = async (issuedMs: number, lifetimeSec = 7200) =>
        registry.start('studio', {
          options: {},
          keyExpiresAtMs: issuedMs + lifetimeSec * 1000,
          keyIssuedAtMs: issuedMs,
        })
      const first = await start(nowMs - 60_000)
      const [oldest = ''] = Object.keys(first.keys)
      t.equal(oldest, `${first.issuedAtSec}-7200-main`)
      t.same(Object.keys((await start(nowMs - 10_000, 5)).keys), [oldest], 'without an expired one')
      await registry.useKey('studio', oldest)
      await registry.useKey('unknown', oldest)
      t.equal(await registry.get('unknown'), undefined)
      for (let i = 0; i < 60; i++) await start(nowMs - 59_000 + i * 1000)
      const { keys = {} } = (await registry.get('studio')) ?? {}
      t.equal(Object.keys(keys).length, 50)
      t.ok(keys[oldest]! >= nowMs, 'one that was used stays')
      t.equal(Object.values(keys).filter((ms) => ms > 0).length, 1)
      t.equal((await start(nowMs - 60_000)).keys[oldest], keys[oldest], 'also issued once more')

      await registry.revokeKey('studio', oldest)
      const { keys: kept = {}, revokedKeys } = (await registry.get('studio')) ?? {}
      t.strictSame(revokedKeys, [oldest])
      t.notOk(oldest in kept)
      const renewed = await start(nowMs - 60_000)
      t.equal(renewed.issuedAtSec, first.issuedAtSec! + 1, 'no key has the id of a revoked one')
    },
  )

  await check(
    'beyond 50 revoked keys of a stream, the oldest goes with all before it',
    async (t) => {
      const registry = variant({})
      const issuedSec = Math.floor(Date.now() / 1000) - 1000
      for (let i = 0; i < 51; i++) await registry.revokeKey('studio', `${issuedSec + i}-7200-main`)
      await registry.revokeKey('studio', `${issuedSec + 9}-1-main`)
      const { revokedKeys, keyFloorSec } = await registry.start('studio', OPTIONS)
      t.equal(revokedKeys?.length, 50, 'without the expired one')
      t.equal(keyFloorSec, issuedSec + 1)
    },
  )

  await check('of too many revoked keys those that have expired leave first', async (t) => {
    const registry = variant({ maxFloors: 2 })
    const nowSec = Math.floor(Date.now() / 1000)
    await registry.revokeKey('z', `${nowSec - 60}-61-main`)
    await registry.revokeKey('a', `${nowSec}-7200-main`)
    await until('the first has expired', () => Date.now() >= (nowSec + 1) * 1000)
    await registry.revokeKey('b', `${nowSec}-7200-main`)
    const members = ['a', 'b'].map((id) => `${id} ${nowSec}-7200-main`)
    t.strictSame(await redis.command(['ZRANGE', 'mr:revoked', '0', '-1']), members)
    t.equal(await redis.command(['ZCARD', 'mr:floors']), 0)

    const ahead = `${nowSec + 30}-3600-main`
    await registry.revokeKey('c', ahead)
    const { keyFloorSec } = await registry.start('c', OPTIONS)
    t.equal(keyFloorSec, nowSec + 31, 'one that was issued ahead of the clock stays refused')
  })

  await check('revocations of many streams count for all, and use no more memory', async (t) => {
    const registry = variant({ maxFloors: 2 })
    const beforeSec = Math.floor(Date.now() / 1000)
    for (const id of ['a', 'b', 'c']) {
      await registry.stop(id, { reason: 'api', lingerMs: 0, revoke: true })
    }
    t.equal(await redis.command(['ZCARD', 'mr:floors']), 2)
    const { keyFloorSec = 0 } = await registry.start('other', OPTIONS)
    t.ok(keyFloorSec > beforeSec)
  })

  await check('no more streams run than the limit of each node allows', async (t) => {
    const registry = variant({ maxStreams: 1 })
    const stop = (id: string) => registry.stop(id, { reason: 'api', lingerMs: LINGER_MS })
    await registry.start('a', OPTIONS)
    await t.rejects(registry.start('b', OPTIONS), { code: 'TOO_MANY_STREAMS' })
    await stop('a')
    await registry.start('b', OPTIONS)
    for (const node of ['n', 'm']) await registry.renewNode({ node, url: `http://${node}` })
    await registry.start('c', OPTIONS)
    await t.rejects(registry.start('d', OPTIONS), { code: 'TOO_MANY_STREAMS' }, 'two nodes')
    await registry.start('c', OPTIONS)
    await registry.leaveNode('n')
    await stop('b')
    await t.rejects(registry.start('b', OPTIONS), { code: 'TOO_MANY_STREAMS' }, 'one node')
    // In the same millisecond the first one by name is forgotten first.
    await stop('c')
    await registry.start('e', OPTIONS)
    const listed = await registry.list({ limit: 9 })
    t.strictSame(
      listed.map(({ id }) => id),
      ['c', 'e'],
      'of those that linger, the first ones have been forgotten',
    )
  })

  await check('a stopped stream leaves little in Redis', async (t, registry) => {
    const sizeOf = async (id: string) =>
      Number(await redis.command(['MEMORY', 'USAGE', `mr:{${id}}`, 'SAMPLES', '0']))
    const options = { webhookUrls: ['x'.repeat(32_768)] }
    await registry.start('idle', { ...OPTIONS, options })
    await registry.stop('idle', { reason: 'api', lingerMs: 0 })
    const ttl = Number(await redis.command(['PTTL', 'mr:{idle}']))
    t.ok(ttl > 0 && ttl <= 60_000, 'nobody has owned it')
    await begin(registry, 'studio', 'a')
    await registry.update('studio', options)
    await registry.stop('studio', { reason: 'api', lingerMs: 0 })
    await registry.start('other', OPTIONS)
    t.ok((await sizeOf('studio')) < 4000)
    t.ok((await sizeOf('idle')) < 4000)
    t.match(await registry.get('studio'), { status: 'STOPPED', owner: 'a', options: {} })
  })

  await check(
    'a claim has a fence above the last one, and the numbers go on',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      t.ok(first.stream.fence >= first.stream.run)
      t.match(first.stream, { owner: 'a', ownerUrl: 'http://a', epoch: 'a-0', status: 'READY' })
      const at = first.free.media
      const opening = { ...boundary(at, 1), status: 'STREAMING' } as const
      await registry.advance('studio', own(first), opening)
      const second = await granted(registry.claim('studio', claimOf('a', 'a-1', first)))
      t.ok(second.stream.fence > first.stream.fence)
      t.strictSame(second.free, { media: at + 1, discontinuity: first.free.discontinuity })
      t.equal(second.stream.status, 'INTERRUPTED')
      const late = await registry.advance('studio', own(first), boundary(at + 1, 2))
      t.match(late, { outcome: 'stale' }, 'the same node is refused under its old fence')
    },
  )

  await check('a claim that is sent again is granted once', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const again = { node: 'a', epoch: 'a-0', seenFence: 0 }
    t.strictSame(await granted(registry.claim('studio', again)), first)
    const late = { ...again, epoch: 'a-1' }
    t.match(await registry.claim('studio', late), { outcome: 'changed' }, 'one of before is not')
  })

  await check('a live owner keeps its stream until it yields it', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    await renew(registry, 'b')
    const claim = claimOf('b', 'b-0', first)
    const owned = { outcome: 'owned', stream: { owner: 'a', ownerUrl: 'http://a' } }
    t.match(await registry.claim('studio', claim), owned)
    const yielding = { ...boundary(first.free.media, 1), status: 'INTERRUPTED', isYielded: true }
    await registry.advance('studio', own(first), yielding as Advance)
    t.match(await registry.get('studio'), { isYielded: true, owner: 'a' })
    const second = await granted(registry.claim('studio', claim))
    t.match(second.stream, { owner: 'b', isYielded: false, status: 'INTERRUPTED' })
    t.strictSame(await registry.owned('a', { limit: 10 }), [])
    t.strictSame(await registry.owned('b', { limit: 10 }), [
      { id: 'studio', fence: second.stream.fence },
    ])
  })

  await check('of two claims at once one is granted', async (t, registry) => {
    await registry.start('studio', OPTIONS)
    const nodes = Array.from({ length: 8 }, (_, index) => `n${index}`)
    for (const node of nodes) await renew(registry, node)
    const claims = await Promise.all(
      nodes.map((node) => registry.claim('studio', { node, epoch: node, seenFence: 0 })),
    )
    t.equal(claims.filter(({ outcome }) => outcome === 'granted').length, 1)
    t.equal(claims.filter(({ outcome }) => outcome === 'changed').length, 7)
  })

  await check(
    'the stream of a dead owner is an orphan, and a settled node takes it',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      await renew(registry, 'b')
      t.strictSame(await registry.orphans('b', { limit: 10 }), [], 'its lease holds')
      t.equal(await registry.leaveNode('a'), true)
      const { fence } = first.stream
      const orphan = { id: 'studio', fence, owner: { node: 'a', url: 'http://a' }, isGone: true }
      t.strictSame(await registry.orphans('b', { limit: 10 }), [orphan])
      t.strictSame(await registry.orphans('b', { limit: 10, after: 'studio' }), [])
      t.strictSame(
        await registry.orphans('c', { limit: 10 }),
        [],
        'a node without a lease adopts none',
      )
      await granted(registry.claim('studio', claimOf('b', 'b-0', first)))
      t.strictSame(await registry.orphans('b', { limit: 10 }), [])
      t.match(
        await registry.listNodes(),
        [{ node: 'b', isLive: true }],
        'the dead node is forgotten',
      )
    },
  )

  await check(
    'a node takes streams of one that is known to be gone at once, and of others once it is settled',
    async (t, registry) => {
      const unsettled = variant({ settleMs: 60_000 })
      const first = await begin(registry, 'studio', 'a')
      await renew(registry, 'b')
      await lapse('a')
      await redis.command(['ZADD', 'mr:nodes', '1', 'a'])
      t.match(await registry.orphans('b', { limit: 10 }), [{ id: 'studio', isGone: false }])
      t.strictSame(await unsettled.orphans('b', { limit: 10 }), [])
      t.match(await unsettled.claim('studio', claimOf('b', 'b-0', first)), { outcome: 'owned' })

      const other = await begin(registry, 'other', 'd')
      await registry.leaveNode('d')
      t.match(await unsettled.orphans('b', { limit: 10 }), [{ id: 'other', isGone: true }])
      await granted(unsettled.claim('other', claimOf('b', 'b-0', other)))
    },
  )

  await check(
    'a lease lapses by itself, and begins anew when it is renewed',
    async (t, registry) => {
      const since = await registry.renewNode({ node: 'a', url: 'http://a', load: 1 })
      t.equal(await registry.renewNode({ node: 'a', url: 'http://a', load: 2 }), since)
      const brief = variant({ leaseMs: 60 })
      t.equal(await brief.renewNode({ node: 'a', url: 'http://a' }), since)
      await until('the lapse', async () => (await redis.command(['EXISTS', 'mr:node:a'])) === 0)
      t.ok((await registry.renewNode({ node: 'a', url: 'http://a' })) > since)
      t.match(await registry.listNodes(), [{ node: 'a', url: 'http://a', isLive: true }])
    },
  )

  await check('a node without a lease claims nothing', async (t, registry) => {
    await registry.start('studio', OPTIONS)
    const claim = registry.claim('studio', { node: 'a', epoch: 'a', seenFence: 0 })
    await t.rejects(claim, { code: 'REGISTRY_UNAVAILABLE' })
    t.match(await registry.claim('other', { node: 'a', epoch: 'a', seenFence: 0 }), {
      outcome: 'unknown',
    })
  })

  await check(
    'a reserved number that never closes is a gap of the next owner',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      const at = first.free.media
      const targets = { targetSec: 2, partTargetSec: 0.2 }
      await registry.advance('studio', own(first), { ...boundary(at, 1), targets })
      await registry.advance('studio', own(first), {
        ...boundary(at + 1, 2, [[at, 'closed']]),
        targets: { targetSec: 9 },
        renditions: [{ name: 'main' }],
      })
      await registry.leaveNode('a')
      await renew(registry, 'b')
      const second = await granted(registry.claim('studio', claimOf('b', 'b-0', first)))
      t.match(second, { targets, renditions: [{ name: 'main' }], free: { media: at + 2 } })
      t.equal(second.targets?.targetSec, 2, 'targets never change')
      t.strictSame(second.entries, [
        { mediaSequence: at, value: 'closed' },
        { mediaSequence: at + 1, value: `gap ${at + 1}` },
      ])
    },
  )

  await check('a window loses what the owner has removed', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const at = first.free.media
    for (let n = 0; n < 5; n++) {
      await registry.advance('studio', own(first), {
        ...boundary(at + n, n + 1, n > 0 ? [[at + n - 1, `closed ${n - 1}`]] : []),
        first: at + Math.max(0, n - 2),
      })
    }
    const { entries } = await granted(registry.claim('studio', claimOf('a', 'a-1', first)))
    t.strictSame(
      entries.map(({ value }) => value),
      ['closed 2', 'closed 3', `gap ${at + 4}`],
    )
    t.strictSame(entries[0]?.mediaSequence, at + 2)
  })

  await check(
    'an owner that was away for longer than its window replaces it',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      const at = first.free.media
      await registry.advance('studio', own(first), boundary(at, 1))
      const entries = [at + 50, at + 51].map((mediaSequence) => ({ mediaSequence, value: 'x' }))
      const free = { media: at + 52, discontinuity: first.free.discontinuity + 3 }
      const advance = { serial: 2, entries, first: at + 50, free }
      t.match(await registry.advance('studio', own(first), advance), { outcome: 'accepted', free })
      t.match(await granted(registry.claim('studio', claimOf('a', 'a-1', first))), {
        entries,
        free,
      })
    },
  )

  await check('an advance that is sent again, or late, changes nothing', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const at = first.free.media
    const opening = boundary(at, 1)
    await registry.advance('studio', own(first), opening)
    const closing = boundary(at + 1, 2, [[at, 'closed']])
    const accepted = await registry.advance('studio', own(first), closing)
    t.strictSame(await registry.advance('studio', own(first), closing), accepted)
    t.strictSame(await registry.advance('studio', own(first), opening), accepted)
    const { entries } = await granted(registry.claim('studio', claimOf('a', 'a-1', first)))
    t.strictSame(
      entries.map(({ value }) => value),
      ['closed', `gap ${at + 1}`],
    )
  })

  await check(
    'a stale fence writes nothing, but the numbers it has used are not used again',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      const at = first.free.media
      await lapse('a')
      await renew(registry, 'b')
      const second = await granted(registry.claim('studio', claimOf('b', 'b-0', first)))
      const late = { ...boundary(at + 1007, 1), status: 'STREAMING' } as const
      const stale = await registry.advance('studio', own(first), late)
      t.match(stale, {
        outcome: 'stale',
        stream: { owner: 'b', fence: second.stream.fence, status: 'READY' },
      })
      const answer = await registry.advance('studio', own(second), boundary(at, 1))
      t.match(
        answer,
        { outcome: 'accepted', free: { media: at + 1008 } },
        'which its successor is told',
      )
      const third = await granted(registry.claim('studio', claimOf('b', 'b-1', second)))
      t.match(
        third,
        { free: { media: at + 1008 }, entries: [] },
        'the window begins anew above them',
      )
    },
  )

  await check('a claim skips numbers of an owner that may be alive', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    await registry.advance('studio', own(first), boundary(first.free.media, 1))
    await lapse('a')
    await renew(registry, 'b')
    const { media, discontinuity } = first.free
    const free = { media: media + 1001, discontinuity: discontinuity + 10 }
    const second = await granted(registry.claim('studio', claimOf('b', 'b-0', first)))
    t.match(second, { free, entries: [] })
    const again = { ...claimOf('b', 'b-1', second), skip: 500 }
    t.match(await granted(registry.claim('studio', again)), { free: { media: media + 1501 } })
  })

  await check(
    'numbers of an owner that is gone are known unless its lease has lapsed since it told them',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      const at = first.free.media
      await lapse('a')
      // The lease after it begins in a later millisecond.
      await sleep(2)
      const leaseSinceMs = await registry.renewNode({ node: 'a', url: 'http://a' })
      await renew(registry, 'b')
      const orphan = async () => {
        await registry.leaveNode('a')
        return (await registry.orphans('b', { limit: 10 }))[0]
      }
      t.match(await orphan(), { isGone: false })

      await registry.renewNode({ node: 'a', url: 'http://a' })
      const early = { ...boundary(at, 1), leaseSinceMs: leaseSinceMs - 1 }
      await registry.advance('studio', own(first), early)
      t.match(await orphan(), { isGone: false }, 'told before the lapse')
      const renewed = await registry.renewNode({ node: 'a', url: 'http://a' })
      const later = { ...boundary(at + 1, 2), leaseSinceMs: renewed }
      await registry.advance('studio', own(first), later)
      t.match(await orphan(), { isGone: true })
      const second = await granted(registry.claim('studio', claimOf('b', 'b-0', first)))
      t.equal(second.free.media, at + 2)
    },
  )

  await check('a new run begins above numbers that the last owner may use', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const media = first.free.media + 1_000_000
    const free = { media, discontinuity: 90_000 }
    await registry.advance('studio', own(first), { serial: 1, entries: [], first: 0, free })
    await registry.stop('studio', { reason: 'api', lingerMs: LINGER_MS })
    const { fence } = await registry.start('studio', OPTIONS)
    const claim = { node: 'a', epoch: 'a-1', seenFence: fence }
    const second = await granted(registry.claim('studio', claim))
    t.strictSame(second.free, { media: media + 1000, discontinuity: 90_010 })
  })

  await check('after a failover claims skip numbers that may be lost', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    await redis.command(['HSET', 'mr:{studio}', 'server', 'another'])
    const second = await granted(registry.claim('studio', claimOf('a', 'a-1', first)))
    t.equal(second.free.media, first.free.media + 1000)
    const third = await granted(registry.claim('studio', claimOf('a', 'a-2', second)))
    t.equal(third.free.media, second.free.media, 'once')

    const [sinceMs] = String(await redis.command(['GET', 'mr:node:a'])).split(' ')
    await redis.command(['SET', 'mr:node:a', `${Number(sinceMs) - 5000} another`, 'PX', '60000'])
    const renewed = await registry.renewNode({ node: 'a', url: 'http://a' })
    t.ok(renewed >= Number(sinceMs), 'a lease begins anew')
  })

  await check('any node stops a stream, once', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    await lapse('a')
    const stop = { reason: 'api', lingerMs: LINGER_MS } as const
    const stopped = await registry.stop('studio', stop)
    t.match(stopped, {
      outcome: 'stopped',
      stream: { status: 'STOPPED', reason: 'api' },
    })
    t.match(await registry.stop('studio', stop), { outcome: 'stopped' })
    t.match(await registry.stop('other', stop), { outcome: 'unknown' })
    t.match(await registry.advance('studio', own(first), boundary(first.free.media, 1)), {
      outcome: 'stopped',
    })
    t.match(await registry.claim('studio', claimOf('a', 'a-1', first)), { outcome: 'stopped' })
    await renew(registry, 'b')
    t.strictSame(await registry.orphans('b', { limit: 10 }), [])
    await renew(registry, 'a')
    const lingering = { ...claimOf('a', 'a-1', first), lingering: true }
    const { entries } = await granted(registry.claim('studio', lingering))
    t.strictSame(entries, boundary(first.free.media, 1).entries, 'its owner ends its window')
  })

  for (const [what, unseen] of [
    ['whose owner', 1000],
    ['whose server', 2000],
  ] as const) {
    await check(`a stopped stream ${what} is lost keeps its window`, async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      const { media } = first.free
      await registry.advance('studio', own(first), boundary(media, 1))
      await registry.stop('studio', { reason: 'api', lingerMs: LINGER_MS })
      await lapse('a')
      await renew(registry, 'b')
      if (what === 'whose server') {
        await redis.command(['HSET', 'mr:{studio}', 'server', 'another'])
      }
      const lingering = { ...claimOf('b', 'b-0', first), lingering: true, skip: 1000 }
      const { free, entries } = await granted(registry.claim('studio', lingering))
      t.strictSame(entries, boundary(media, 1).entries)
      t.equal(free.media, media + 1)
      const { fence } = await registry.start('studio', OPTIONS)
      const claim = { node: 'b', epoch: 'b-1', seenFence: fence }
      const next = await granted(registry.claim('studio', claim))
      t.equal(next.free.media, media + 1 + unseen, 'the next run begins above what they know')
    })
  }

  await check('a stop is for one run, or for one fence', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const options = { reason: 'api', lingerMs: LINGER_MS } as const
    const { run, fence } = first.stream
    t.match(await registry.stop('studio', { ...options, run: run - 1 }), { outcome: 'changed' })
    const by = { node: 'a', fence: fence - 1 }
    t.match(await registry.stop('studio', { ...options, by }), { outcome: 'stale' })
    t.match(await registry.stop('studio', { ...options, run, by: own(first) }), {
      outcome: 'stopped',
    })
  })

  await check('a stopped stream lingers, and its record outlasts the keys', async (t, registry) => {
    await begin(registry, 'studio', 'a')
    await registry.stop('studio', { reason: 'api', lingerMs: 1 })
    await until('the end', async () => (await registry.list({ limit: 10 })).length === 0)
    t.match(await registry.get('studio'), { status: 'STOPPED' })
    const ttl = Number(await redis.command(['PTTL', 'mr:{studio}']))
    t.ok(ttl > 7_000_000 && ttl <= 7_200_000, `${ttl} ms`)
  })

  await check(
    'a start after a stop begins a new run above the numbers of the last',
    async (t, registry) => {
      const first = await begin(registry, 'studio', 'a')
      const at = first.free.media + 5000
      await registry.advance('studio', own(first), boundary(at, 1))
      await registry.stop('studio', { reason: 'api', lingerMs: LINGER_MS })
      const stream = await registry.start('studio', { ...OPTIONS, options: { c: 1 } })
      t.match(stream, { status: 'READY', fence: first.stream.fence, options: { c: 1 } })
      t.ok(stream.run > first.stream.run)
      t.strictSame(
        [stream.owner, stream.reason, stream.stoppedAtMs],
        [undefined, undefined, undefined],
      )
      t.equal(await redis.command(['PTTL', 'mr:{studio}']), -1)
      const late = await registry.advance('studio', own(first), boundary(at + 1001, 2))
      t.match(late, { outcome: 'stale' }, 'the owner of the last run is refused')
      const next = await granted(registry.claim('studio', claimOf('a', 'a-9', first)))
      t.match(next, { free: { media: at + 1002 }, entries: [] })
    },
  )

  await check('numbers of a new stream come from the clock of Redis', async (t) => {
    const originMs = Date.now() - 100_001
    const clock = { originMs, mediaPerSec: 4, discontinuitiesPerSec: 0.1 }
    const { free } = await begin(variant({ sequenceClock: clock }), 'studio', 'a')
    const elapsedSec = (Date.now() - originMs) / 1000
    t.ok(free.media >= 400 && free.media < elapsedSec * 4 + 60, String(free.media))
    const { discontinuity } = free
    t.ok(discontinuity > 10 && discontinuity < elapsedSec * 0.1 + 4, String(discontinuity))
  })

  await check('READY streams whose keys have expired are overdue', async (t, registry) => {
    await registry.start('b', { options: {}, keyExpiresAtMs: 2 })
    await registry.start('a', { options: {}, keyExpiresAtMs: 3 })
    await registry.start('c', OPTIONS)
    await begin(registry, 'd', 'n')
    t.strictSame(
      (await registry.overdue(10)).map(({ id }) => id),
      ['b', 'a'],
    )
    await registry.stop('b', { reason: 'key-expired', lingerMs: 0 })
    await registry.start('a', OPTIONS)
    t.strictSame(await registry.overdue(10), [], 'b has stopped, and a has a new key')
  })

  await check(
    'streams are listed in pages, in the order of their ids, by status',
    async (t, registry) => {
      for (const id of ['b', 'a~', 'a', 'A', 'c', 'a.1']) await registry.start(id, OPTIONS)
      const ids = async (...args: Parameters<Registry['list']>) =>
        (await registry.list(...args)).map(({ id }) => id)
      t.strictSame(await ids({ limit: 100 }), ['A', 'a', 'a.1', 'a~', 'b', 'c'])
      t.strictSame(await ids({ limit: 2, after: 'a.1' }), ['a~', 'b'])
      await registry.stop('b', { reason: 'api', lingerMs: LINGER_MS })
      t.strictSame(await ids({ limit: 100, status: 'STOPPED' }), ['b'])
      t.strictSame(await ids({ limit: 100, status: 'READY', after: 'a' }), ['a.1', 'a~', 'c'])
      const claimed = await begin(registry, 'c', 'n')
      await registry.advance('c', own(claimed), {
        ...boundary(claimed.free.media, 1),
        status: 'STREAMING',
      })
      t.strictSame(await ids({ limit: 100, status: 'STREAMING' }), ['c'])
      await redis.command(['DEL', 'mr:{c}'])
      t.strictSame(
        await ids({ limit: 100, status: 'STREAMING' }),
        [],
        'a record that is gone is not',
      )
    },
  )

  await check('an owner gives back what Redis has lost', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const { fence, run } = first.stream
    const at = first.free.media
    await redis.command(['FLUSHALL'])
    const advance = boundary(at + 3, 7)
    t.match(await registry.advance('studio', own(first), advance), { outcome: 'lost' })
    const whole = {
      ...{ ...advance, run, epoch: 'a-0', status: 'STREAMING' as const, first: at + 2 },
      entries: [at + 2, at + 3].map((mediaSequence) => ({
        mediaSequence,
        value: `v${mediaSequence}`,
      })),
      ...{ startedAtMs: 5, keyExpiresAtMs: 6, options: { a: 1 }, targets: { targetSec: 2 } },
      ...{ keys: { '5-7200-main': 9 }, awayMs: 0 },
    }
    t.match(await registry.restore('studio', own(first), whole), {
      outcome: 'accepted',
      free: { media: at + 4 },
    })
    t.match(await registry.get('studio'), {
      ...{ status: 'STREAMING', owner: 'a', fence, run, epoch: 'a-0', options: { a: 1 } },
      ...{ startedAtMs: 5, keyExpiresAtMs: 6, keys: { '5-7200-main': 9 } },
    })
    t.match(await registry.advance('studio', own(first), boundary(at + 4, 8)), {
      outcome: 'accepted',
    })
    t.match(await registry.list({ limit: 9, status: 'STREAMING' }), [{ id: 'studio' }])
    t.strictSame(await registry.owned('a', { limit: 9 }), [{ id: 'studio', fence }])

    await registry.stop('studio', { reason: 'api', lingerMs: LINGER_MS })
    t.match(
      await registry.restore('studio', own(first), whole),
      { outcome: 'stopped' },
      'a stop counts',
    )
    await registry.start('studio', OPTIONS)
    t.match(
      await registry.restore('studio', own(first), whole),
      { outcome: 'stale' },
      'as does a new run',
    )
    await redis.command([
      'HSET',
      'mr:{studio}',
      'run',
      String(run),
      'fence',
      String(fence - 1),
      'owner',
      'b',
    ])
    t.match(await registry.advance('studio', own(first), advance), { outcome: 'lost' })
    t.match(
      await registry.restore('studio', own(first), whole),
      { outcome: 'accepted' },
      'over a lower fence',
    )
    await redis.command(['HSET', 'mr:{studio}', 'fence', String(fence + 1)])
    t.match(
      await registry.restore('studio', own(first), whole),
      { outcome: 'stale' },
      'not over a higher one',
    )
  })

  await check(
    'an owner that was away for longer than a stop is known gives its stream up',
    async (t, registry) => {
      const claimed = await begin(registry, 'studio', 'a')
      const { fence, run, epoch, startedAtMs, keyExpiresAtMs, options, keys } = claimed.stream
      const past = { epoch, run, startedAtMs, keyExpiresAtMs, options, keys }
      const state = { first: claimed.free.media, free: claimed.free, entries: [] }
      let nowMs = 0
      const own = () => {
        const losses: string[] = []
        const writes = new OwnerWrites({
          ...{ registry, run, streamId: 'studio', ownership: { node: 'a', fence }, lingerMs: 0 },
          clock: { wallMs: () => nowMs },
          timers: machineTimers,
          readStatus: () => 'STREAMING',
          readLeaseSince: () => undefined,
          readWhole: () => ({ ...past, ...state }),
          onLost: ({ outcome }) => losses.push(outcome),
          onError: (error) => t.error(error),
        })
        t.teardown(() => writes.close())
        return { writes, losses }
      }
      const away = own()
      const inTouch = own()
      const lost = own()
      nowMs += 3 * 3_600_000
      inTouch.writes.confirm()
      // Stopped, and forgotten.
      await redis.command(['DEL', 'mr:{studio}'])
      lost.writes.push(state)
      t.equal(await lost.writes.flush(5000), true)
      t.strictSame(lost.losses, [], 'Redis began anew meanwhile')

      await redis.command(['DEL', 'mr:{studio}'])
      await redis.command(['SET', 'mr:born', '1'])
      away.writes.push(state)
      await until('lost', () => away.losses.length > 0)
      t.strictSame(away.losses, ['forgotten'])
      t.equal(await registry.get('studio'), undefined)

      inTouch.writes.push(state)
      t.equal(await inTouch.writes.flush(5000), true)
      t.strictSame(inTouch.losses, [])
      t.match(await registry.get('studio'), { status: 'STREAMING', fence })
    },
  )

  await check('what does not fit into the registry costs no number', async (t, registry) => {
    const claimed = await begin(registry, 'studio', 'a')
    const { fence, run } = claimed.stream
    const errors: unknown[] = []
    const writes = new OwnerWrites({
      ...{ registry, run, streamId: 'studio', ownership: { node: 'a', fence }, lingerMs: 0 },
      clock: { wallMs: () => 0 },
      timers: machineTimers,
      readStatus: () => 'STREAMING',
      readLeaseSince: () => undefined,
      readWhole: () => {
        throw new Error('Redis has lost nothing')
      },
      onLost: ({ outcome }) => t.fail(outcome),
      onError: (error) => errors.push(error),
    })
    t.teardown(() => writes.close())
    const { media, discontinuity } = claimed.free
    const free = { media: media + 5, discontinuity }
    const renditions = { text: 'x'.repeat(100_000) }
    writes.push({ first: media, free, renditions, entries: [{ mediaSequence: media, value: {} }] })
    t.equal(await writes.flush(5000), true)
    t.match(errors, [RangeError])
    await registry.leaveNode('a')
    await registry.renewNode({ node: 'b', url: 'http://b.example' })
    const next = await registry.claim('studio', { node: 'b', epoch: 'next', seenFence: fence })
    t.match(next, { outcome: 'granted', free: { media: media + 5 } })
    await writes.stop('api', async () => undefined)
  })

  await check('what is too large is refused before it is sent', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const entries = [{ mediaSequence: first.free.media, value: 'x'.repeat(20_000) }]
    const advance = { ...boundary(first.free.media, 1), entries }
    await t.rejects(registry.advance('studio', own(first), advance), RangeError)
    await t.rejects(
      registry.start('b', { ...OPTIONS, options: { a: 'x'.repeat(70_000) } }),
      RangeError,
    )
    await t.rejects(registry.renewNode({ node: 'a', url: 'x'.repeat(5000) }), RangeError)
    await t.rejects(sendCommand(redis, 'a', 'x'.repeat(9000)), RangeError)
  })

  await check('a window has at most 2,000 entries', async (t, registry) => {
    const first = await begin(registry, 'studio', 'a')
    const at = first.free.media
    const entries = Array.from({ length: 2500 }, (_, index) => ({
      mediaSequence: at + index,
      value: index,
    }))
    const free = { ...first.free, media: at + 2500 }
    await registry.advance('studio', own(first), { serial: 1, entries, first: at, free })
    const { entries: kept } = await granted(registry.claim('studio', claimOf('a', 'a-1', first)))
    t.match(
      [kept.length, kept[0], kept.at(-1)?.value],
      [2000, { mediaSequence: at + 500, value: 500 }, 2499],
    )
  })

  await check('commands of a node are read in order, from where it was', async (t) => {
    t.strictSame(await readCommands(redis, 'a', { waitMs: 0 }), [])
    await sendCommand(redis, 'a', { type: 'stop', id: 'studio' })
    await sendCommand(redis, 'b', { type: 'other' })
    const [first] = await readCommands(redis, 'a', { waitMs: 0 })
    t.strictSame(first?.command, { type: 'stop', id: 'studio' })
    const waiting = readCommands(redis, 'a', { after: first!.at, waitMs: 20 })
    t.strictSame(await waiting, [], 'none in time')
    await sendCommand(redis, 'a', 2)
    t.match(await readCommands(redis, 'a', { after: first!.at, waitMs: 1000 }), [{ command: 2 }])
    t.ok(Number(await redis.command(['PTTL', 'mr:node:a:commands'])) > 0)
    for (let n = 0; n < 1500; n++) await sendCommand(redis, 'a', n)
    t.ok(Number(await redis.command(['XLEN', 'mr:node:a:commands'])) < 1200, 'old ones are lost')
  })

  await check('scripts are sent again to a Redis that has forgotten them', async (t, registry) => {
    await redis.command(['SCRIPT', 'FLUSH'])
    t.equal(await registry.get('studio'), undefined)
  })
}

interface Grant {
  readonly stream: { readonly owner?: string; readonly fence: number }
}

function renew(registry: Registry, node: string) {
  return registry.renewNode({ node, url: `http://${node}` })
}

/** Starts a stream and claims it. */
async function begin(registry: Registry, id: string, node: string) {
  await renew(registry, node)
  const { fence } = await registry.start(id, OPTIONS)
  return granted(registry.claim(id, { node, epoch: `${node}-0`, seenFence: fence }))
}

async function granted(claim: ReturnType<Registry['claim']>) {
  const answer = await claim
  if (answer.outcome !== 'granted') throw new Error(`not granted: ${answer.outcome}`)
  return answer
}

function own({ stream: { owner = '', fence } }: Grant) {
  return { node: owner, fence }
}

function claimOf(node: string, epoch: string, { stream: { fence } }: Grant) {
  return { node, epoch, seenFence: fence }
}

/** Opens a segment, and closes others. */
function boundary(
  opened: number,
  serial: number,
  closed: readonly (readonly [mediaSequence: number, value: string])[] = [],
): Advance {
  const gap = { mediaSequence: opened, value: `gap ${opened}` }
  return {
    serial,
    entries: [...closed.map(([mediaSequence, value]) => ({ mediaSequence, value })), gap],
    first: 0,
    free: { media: opened + 1, discontinuity: 0 },
  }
}
