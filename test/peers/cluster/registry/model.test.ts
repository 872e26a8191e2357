/**
 * The same random calls to the scripts in a real Redis and to their model give the same answers and leave the same
 * state. Time and the server are virtual in both: TIME and INFO are replaced in the scripts, and keys are deleted when the model's expire.
 */
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import t from 'tap'
import type { Redis } from '../../../../src/cluster/registry/redis.ts'
import { Outboxes } from '../../../../src/cluster/registry/outboxes.ts'
import { Registry } from '../../../../src/cluster/registry/registry.ts'
import { MillraceError } from '../../../../src/errors.ts'
import { requireTool } from '../../support/tools.ts'
import type { OutboxModel } from '../../../../src/cluster/registry/outbox-model.ts'
import { RegistryModel } from '../../../../src/cluster/registry/registry-model.ts'
import { SEQUENCE_CLOCK } from '../../../cluster/registry/memory-registry.ts'
import { openRedis } from './open-registry.ts'

const RUNS = Number(process.env['MODEL_RUNS'] ?? 150)

/** Ahead of the real clock, by which Redis ends what expires at a time that a script names. */
const START_MS = Date.UTC(2050, 0, 1)
/** Longer than a run takes by the real clock. */
const LEASE_MS = 3_600_000
const OPTIONS = {
  leaseMs: LEASE_MS,
  settleMs: LEASE_MS,
  maxStreams: 1,
  maxFloors: 2,
  sequenceClock: SEQUENCE_CLOCK,
}

const NODES = ['a', 'b', 'c']
const IDS = ['x', 'y', 'z']

const EVENTS = ['m', 'n']

type Scripts = Pick<Registry, keyof RegistryModel & keyof Registry> & {
  readonly outboxes: Pick<Outboxes, keyof OutboxModel & keyof Outboxes>
}
type Call = (scripts: Scripts) => Promise<unknown>

const node = fc.constantFrom(...NODES)
const id = fc.constantFrom(...IDS)
const small = fc.integer({ min: -1, max: 4 })
const flag = fc.boolean()
const event = fc.constantFrom(...EVENTS)
const status = fc.constantFrom('READY', 'STREAMING', 'INTERRUPTED', undefined)

/** A call, made with numbers around those that the model has. */
const operation = fc.oneof(
  fc.record({
    type: fc.constant('sleep' as const),
    ms: fc.constantFrom(1, 20_000, LEASE_MS, 2 * LEASE_MS),
  }),
  fc.record({ type: fc.constant('failover' as const) }),
  fc.record({ type: fc.constant('renew' as const), node }),
  fc.record({ type: fc.constant('leave' as const), node, sinceMs: fc.option(small) }),
  fc.record({
    type: fc.constant('start' as const),
    id,
    value: small,
    keyMs: fc.constantFrom(1000, 10 * LEASE_MS),
    backup: flag,
    port: fc.constantFrom(undefined, 5000, 5001),
    isProtected: flag,
    isKept: flag,
  }),
  fc.record({ type: fc.constant('update' as const), id, value: small }),
  fc.record({
    type: fc.constantFrom('use-key' as const, 'revoke-key' as const),
    id,
    value: small,
  }),
  fc.record({ type: fc.constant('use-keys' as const), id, sec: fc.constantFrom(0, 30) }),
  fc.record({
    type: fc.constant('claim' as const),
    id,
    node,
    epoch: fc.constantFrom('e', 'f'),
    fence: small,
    skip: fc.constantFrom(0, 0, 150),
    lingering: flag,
  }),
  fc.record({
    type: fc.constant('advance' as const),
    ...{
      id,
      fence: small,
      serial: small,
      first: small,
      from: small,
      count: fc.integer({ min: 0, max: 3 }),
    },
    ...{ other: flag, status, isYielded: flag, targets: flag, numbers: small, isLeased: flag },
  }),
  fc.record({
    type: fc.constant('restore' as const),
    id,
    node,
    fence: small,
    run: small,
    count: fc.integer({ min: 0, max: 3 }),
    awayMs: fc.constantFrom(0, 2 * LEASE_MS),
    port: fc.constantFrom(undefined, 5000, 5001),
  }),
  fc.record({
    type: fc.constant('stop' as const),
    id,
    run: fc.option(small),
    by: flag,
    fence: small,
    revoke: flag,
    lingerMs: fc.constantFrom(0, 60_000),
  }),
  fc.record({
    type: fc.constant('outbox' as const),
    node,
    events: fc.uniqueArray(event, { maxLength: 2 }),
    over: fc.array(fc.record({ outbox: node, id: event }), { maxLength: 2 }),
  }),
  fc.record({ type: fc.constant('announce' as const), id, node, event: fc.option(event) }),
  fc.record({
    type: fc.constant('read' as const),
    node,
    id,
    status,
    after: fc.constantFrom('', 'x'),
    limit: fc.constantFrom(1, 9),
  }),
)

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

if (requireTool(t, 'redis-server')) {
  const redis = await openRedis(t)
  await t.test('scripts and model answer the same and hold the same', async (t) => {
    let calls = 0
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 40, minLength: 5 }), async (operations) => {
        await redis.command(['FLUSHALL'])
        let nowMs = START_MS
        let servers = 0
        const model = new RegistryModel({
          ...OPTIONS,
          nowMs: () => nowMs,
          server: () => `s${servers}`,
        })
        const timed = atTime(
          redis,
          () => nowMs,
          () => servers,
        )
        const outboxes = new Outboxes({ redis: timed, settleMs: LEASE_MS })
        const scripts = Object.assign(new Registry({ ...OPTIONS, redis: timed }), { outboxes })
        const call = (make: Call) => compare(() => make(model as never), make, scripts)
        // All nodes may claim from the start, and one has done so.
        for (const each of NODES)
          await call((r) => r.renewNode({ node: each, url: `http://${each}` }))
        const keyExpiresAtMs = START_MS + 10 * LEASE_MS
        await call((r) => r.start('x', { options: { webhookUrls: [] }, keyExpiresAtMs }))
        await call((r) => r.claim('x', { node: 'a', epoch: 'd', seenFence: 0 }))
        for (const step of operations) {
          calls++
          if (step.type === 'sleep') {
            nowMs += step.ms
            await forget(redis, model)
            continue
          }
          if (step.type === 'failover') {
            servers++
            continue
          }
          for (const each of callsOf(step, model)) await call(each)
        }
        model.expire()
        const real = await dump(redis)
        const expected = dumpModel(model)
        if (!isDeepStrictEqual(real, expected)) {
          throw new Error(`state ${JSON.stringify(real)} is not ${JSON.stringify(expected)}`)
        }
      }),
      { numRuns: RUNS },
    )
    t.ok(calls > RUNS * 5, `${calls} calls`)
  })
}

/** Calls with arguments from the state of the model, which is that of Redis. */
function callsOf(
  step: Exclude<Operation, { type: 'sleep' | 'failover' }>,
  model: RegistryModel,
): Call[] {
  const stream = 'id' in step ? model.streams.get(step.id) : undefined
  const fence = (stream?.fence ?? 0) + ('fence' in step ? Math.max(step.fence - 2, -1) : 0)
  const owner = stream?.owner ?? ''
  switch (step.type) {
    case 'renew':
      return [(r) => r.renewNode({ node: step.node, url: `http://${step.node}` })]
    case 'leave': {
      const knownMs = model.nodes.get(step.node)?.deadlineMs ?? 0
      const deadline = step.sinceMs !== null && { deadlineMs: knownMs + Math.min(step.sinceMs, 0) }
      return [(r) => r.leaveNode(step.node, { ...deadline })]
    }
    case 'start': {
      const names: Record<number, string> = { 3: 'allowFrom', 4: 'webhookUrls' }
      const name = names[step.value] ?? `s${step.value % 2}`
      const options = step.value < 0 ? {} : { [name]: [step.value] }
      const keyExpiresAtMs = START_MS + step.keyMs
      const keyIssuedAtMs = keyExpiresAtMs - 10 * LEASE_MS
      const { backup, isProtected, port } = step
      const kept = step.isKept ? { s0: [step.value], k0: [step.value] } : {}
      const asked = { backup, isProtected, kept, ...(port !== undefined && { publishPort: port }) }
      return [(r) => r.start(step.id, { options, keyExpiresAtMs, keyIssuedAtMs, ...asked })]
    }
    case 'use-key':
    case 'revoke-key': {
      const keyIds = Object.keys(stream?.keys ?? {}).toSorted()
      const keyId = keyIds[step.value] ?? `${START_MS / 1000 + step.value}-9000-main`
      return step.type === 'use-key'
        ? [(r) => r.useKey(step.id, keyId)]
        : [(r) => r.revokeKey(step.id, keyId)]
    }
    // More than a record has.
    case 'use-keys':
      return Array.from({ length: 55 }, (_, index): Call => {
        const keyId = `${START_MS / 1000 + step.sec + index}-9000-main`
        return (r) => r.useKey(step.id, keyId)
      })
    case 'update': {
      const options = step.value < 0 ? {} : { [`s${step.value % 2}`]: { n: step.value } }
      return [(r) => r.update(step.id, options)]
    }
    case 'claim': {
      const { id, node, epoch, skip, lingering } = step
      return [
        (r) =>
          r.claim(id, {
            node,
            epoch,
            skip,
            lingering,
            seenFence: step.fence < 1 ? fence : (stream?.fence ?? 0),
          }),
      ]
    }
    case 'advance': {
      const first = stream?.first ?? 100
      const from = first + (model.windows.get(step.id)?.length ?? 0) + step.from - 1
      const entries = Array.from({ length: step.count }, (_, index) => ({
        mediaSequence: Math.max(0, from) + index,
        value: { n: from + index, serial: step.serial },
      }))
      const free = {
        media: from + step.numbers,
        discontinuity: (stream?.discontinuity ?? 0) + step.numbers - 1,
      }
      const by = { node: step.other ? 'a' : owner || 'b', fence }
      return [
        (r) =>
          r.advance(step.id, by, {
            ...{
              serial: (stream?.serial ?? 0) + step.serial,
              entries,
              free,
              first: first + step.first,
            },
            ...(step.status !== undefined && { status: step.status }),
            ...(step.targets && {
              targets: { targetSec: step.count + 1 },
              renditions: [step.count],
            }),
            isYielded: step.isYielded,
            ...(step.isLeased && { leaseSinceMs: model.leases.get(by.node)?.sinceMs ?? 1 }),
          }),
      ]
    }
    case 'restore': {
      const run = (stream?.run ?? START_MS) + Math.max(step.run - 2, -1)
      const first = (stream?.first ?? 50) + step.run
      const entries = Array.from({ length: step.count }, (_, index) => ({
        mediaSequence: first + index,
        value: index,
      }))
      return [
        (r) =>
          r.restore(
            step.id,
            { node: step.node, fence },
            {
              ...{
                serial: step.run + 1,
                entries,
                first,
                free: { media: first, discontinuity: 1 },
                status: 'STREAMING',
              },
              ...{ epoch: 'g', run, startedAtMs: 1, keyExpiresAtMs: 2 },
              options: { s1: 1, ...(step.port !== undefined && { publishPort: step.port }) },
              keys: { '5-7200-main': step.run },
              awayMs: step.awayMs,
            },
          ),
      ]
    }
    case 'stop': {
      const { run, by, revoke, lingerMs } = step
      return [
        (r) =>
          r.stop(step.id, {
            ...{ reason: 'api', lingerMs },
            revoke,
            ...(run !== null && { run: (stream?.run ?? 0) + Math.max(run - 2, -1) }),
            ...(by && { by: { node: owner || 'a', fence } }),
          }),
      ]
    }
    case 'outbox': {
      const events = step.events.map((id) => ({ id, text: `${id} of ${step.node}` }))
      return [(r) => r.outboxes.update(step.node, { events, over: step.over })]
    }
    case 'announce': {
      const ended = [...model.outboxes.ends.keys()].find((name) => name.startsWith(step.id))
      const name = { streamId: step.id, run: Number(ended?.split(' ')[1] ?? 0) }
      const event = step.event === null ? undefined : { id: step.event, text: 'stopped' }
      return [(r) => r.outboxes.announce(name, step.node, event)]
    }
    default: {
      const { after, limit, node, status = '' } = step
      return [
        (r) => r.get(step.id),
        (r) => r.list({ after, limit, status }),
        (r) => r.owned(node, { after, limit }),
        (r) => r.owned(node, { after, limit, lingering: true }),
        (r) => r.orphans(node, { after, limit }),
        (r) => r.overdue(limit),
        (r) => r.listPorts(),
        (r) => r.listNodes(),
        (r) => r.outboxes.read(node),
        (r) => r.outboxes.unannounced(node, limit),
      ]
    }
  }
}

async function compare(expect: () => unknown, call: Call, scripts: Scripts): Promise<void> {
  const expected = await outcome(async () => expect())
  const real = await outcome(() => call(scripts))
  if (isDeepStrictEqual(real, expected)) return
  throw new Error(`${String(call)}: ${JSON.stringify(real)} is not ${JSON.stringify(expected)}`)
}

async function outcome(run: () => Promise<unknown>): Promise<unknown> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof MillraceError && error.cause === undefined) return { code: error.code }
    throw error
  }
}

/** A connection whose scripts see a time and a server of the test. */
function atTime(redis: Redis, nowMs: () => number, servers: () => number): Pick<Redis, 'command'> {
  return {
    command: async (args, options) => {
      if (args[0] === 'EVALSHA') {
        throw new MillraceError('REGISTRY_UNAVAILABLE', { cause: new Error('NOSCRIPT') })
      }
      const [name, source, ...rest] = args
      const time = `{ '${Math.floor(nowMs() / 1000)}', '${(nowMs() % 1000) * 1000}' }`
      const timed = String(source)
        .replace("redis.call('TIME')", time)
        .replace("redis.call('INFO', 'server')", `'run_id:s${servers()}'`)
      return await redis.command([name!, timed, ...rest], options)
    },
  }
}

/** Deletes what has expired in the model. */
async function forget(redis: Redis, model: RegistryModel): Promise<void> {
  model.expire()
  const keys = [
    ...NODES.filter((each) => !model.leases.has(each)).map((each) => `mr:node:${each}`),
    ...IDS.filter((each) => !model.streams.has(each)).map((each) => `mr:{${each}}`),
    ...IDS.filter((each) => !model.windows.has(each)).map((each) => `mr:{${each}}:list`),
    ...(model.revocations.floorOfAll === undefined ? ['mr:floors:all'] : []),
    ...NODES.filter((each) => !model.outboxes.outboxes.has(each)).map(outboxKey),
  ]
  if (keys.length > 0) await redis.command(['DEL', ...keys])
}

async function dump(redis: Redis): Promise<unknown> {
  const list = async (...args: string[]) => (await redis.command(args)) as string[]
  const streams = IDS.map(async (each) => {
    const fields = await list('HGETALL', `mr:{${each}}`)
    const window = await list('LRANGE', `mr:{${each}}:list`, '0', '-1')
    return [each, pairsOf(fields), window]
  })
  const expiring = IDS.map(async (each) => {
    const leftMs = Number(await redis.command(['PTTL', `mr:{${each}}:list`]))
    return leftMs > 0 ? [each] : []
  })
  const byStatus = ['READY', 'STREAMING', 'INTERRUPTED', 'STOPPED'].map((each) =>
    list('ZRANGE', `mr:streams:${each}`, '0', '-1'),
  )
  return {
    streams: await Promise.all(streams),
    expiring: (await Promise.all(expiring)).flat(),
    leases: (await list('KEYS', 'mr:node:?')).toSorted(),
    nodes: await list('ZRANGE', 'mr:nodes', '0', '-1', 'WITHSCORES'),
    gone: pairsOf(await list('HGETALL', 'mr:nodes:gone')),
    listed: await list('ZRANGE', 'mr:streams', '0', '-1'),
    byStatus: await Promise.all(byStatus),
    stopped: await list('ZRANGE', 'mr:stopped', '0', '-1', 'WITHSCORES'),
    unclaimed: await list('ZRANGE', 'mr:unclaimed', '0', '-1', 'WITHSCORES'),
    ports: pairsOf(await list('HGETALL', 'mr:ports')),
    born: await redis.command(['GET', 'mr:born']),
    lingering: await Promise.all(
      NODES.map((each) => list('ZRANGE', `mr:node:${each}:lingering`, '0', '-1')),
    ),
    floors: await list('ZRANGE', 'mr:floors', '0', '-1', 'WITHSCORES'),
    floorOfAll: await redis.command(['GET', 'mr:floors:all']),
    revoked: await list('ZRANGE', 'mr:revoked', '0', '-1'),
    revokedUntil: await list('ZRANGE', 'mr:revoked:until', '0', '-1', 'WITHSCORES'),
    unannounced: await list('ZRANGE', 'mr:unannounced', '0', '-1', 'WITHSCORES'),
    ends: pairsOf(await list('HGETALL', 'mr:unannounced:ends')),
    holders: pairsOf(await list('HGETALL', 'mr:outboxes')),
    outboxes: await Promise.all(
      NODES.map(async (each) => pairsOf(await list('HGETALL', outboxKey(each)))),
    ),
    owned: await Promise.all(
      NODES.map((each) => list('ZRANGE', `mr:node:${each}:streams`, '0', '-1')),
    ),
  }
}

function outboxKey(node: string): string {
  return `mr:node:${node}:outbox`
}

function pairsOf(list: readonly string[]): Record<string, string> {
  const pairs = list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1]!]] : []))
  return Object.fromEntries(pairs) as Record<string, string>
}

function dumpModel(model: RegistryModel): unknown {
  const scored = (entries: Iterable<readonly [string, number]>) =>
    [...entries]
      .toSorted(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))
      .flatMap(([name, score]) => [name, String(score)])
  const statusOf = (each: string) => model.streams.get(each)?.status ?? 'STOPPED'
  const { ends, holders, outboxes } = model.outboxes
  const { floors, floorOfAll, revoked } = model.revocations
  return {
    streams: IDS.map((each) => {
      const window = model.windows.get(each) ?? []
      return [each, fieldsOf(model, each), window.map((value) => JSON.stringify(value))]
    }),
    expiring: IDS.filter((each) => model.windows.has(each) && statusOf(each) === 'STOPPED'),
    leases: NODES.filter((each) => model.leases.has(each)).map((each) => `mr:node:${each}`),
    nodes: scored([...model.nodes].map(([each, { deadlineMs }]) => [each, deadlineMs])),
    gone: Object.fromEntries([...model.gone].map(([each, since]) => [each, String(since)])),
    listed: [...model.listed].toSorted(),
    byStatus: ['READY', 'STREAMING', 'INTERRUPTED', 'STOPPED'].map((status) =>
      [...model.listed].filter((each) => statusOf(each) === status).toSorted(),
    ),
    stopped: scored(model.stopped),
    unclaimed: scored(model.unclaimed),
    ports: Object.fromEntries(model.ports),
    born: model.bornMs === undefined ? null : String(model.bornMs),
    lingering: NODES.map((each) => [...(model.lingering.get(each) ?? [])].toSorted()),
    floors: scored(floors),
    floorOfAll: floorOfAll === undefined ? null : String(floorOfAll),
    revoked: [...revoked].toSorted(),
    revokedUntil: scored(model.revocations.revokedUntil()),
    unannounced: scored([...ends].map(([name, { dueMs }]) => [name, dueMs])),
    ends: Object.fromEntries(
      [...ends].map(([name, { owner, reason, webhookUrls }]) => {
        return [name, `${owner} ${reason} ${webhookUrls}`]
      }),
    ),
    holders: Object.fromEntries(holders),
    outboxes: NODES.map((each) => Object.fromEntries(outboxes.get(each)?.texts ?? [])),
    owned: NODES.map((each) =>
      IDS.filter((id) => {
        const stream = model.streams.get(id)
        return stream?.owner === each && stream.status !== 'STOPPED'
      }),
    ),
  }
}

function fieldsOf(model: RegistryModel, each: string): Record<string, string> {
  const stream = model.streams.get(each)
  if (stream === undefined) return {}
  const { options, keys, isYielded, startedAtMs, stoppedAtMs, lingersUntilMs, ...rest } = stream
  const { expiresAtMs: _, keyExpiresAtMs, keyIssuedAtMs, targets, renditions, ...plain } = rest
  const fields = {
    ...plain,
    yielded: isYielded ? 1 : 0,
    startedAt: startedAtMs,
    keyExpiresAt: keyExpiresAtMs,
    keyIssuedAt: keyIssuedAtMs,
    ...(stoppedAtMs !== undefined && { stoppedAt: stoppedAtMs, lingersUntil: lingersUntilMs }),
    ...(targets !== undefined && { targets: JSON.stringify(targets) }),
    ...(renditions !== undefined && { renditions: JSON.stringify(renditions) }),
    ...Object.fromEntries(
      Object.entries(options).map(([name, value]) => [`s.${name}`, JSON.stringify(value)]),
    ),
    ...Object.fromEntries(Object.entries(keys).map(([name, ms]) => [`k.${name}`, ms])),
  }
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))
}
