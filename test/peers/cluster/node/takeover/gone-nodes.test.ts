/**
 * Nodes that are gone, and nodes that only seem so, over a real Redis.
 */
import t, { type Test } from 'tap'
import type { Registry } from '../../../../../src/cluster/registry/registry.ts'
import {
  endLease,
  replaceEarlier,
  watchNext,
  endEarlierProcess,
} from '../../../../../src/cluster/node/takeover/gone-nodes.ts'
import { completeSettings } from '../../../../../src/config/complete-settings.ts'
import { openRedis, openRegistry } from '../../registry/open-registry.ts'
import { freePort } from '../../../../support/free-port.ts'
import { startRedis } from '../../../support/redis.ts'
import { requireTool } from '../../../support/tools.ts'

/** Nobody listens there. */
const URL = `http://127.0.0.1:${await freePort()}`

/** A node that renews its lease until `stop`. */
async function startNode(t: Test, registry: Registry, node: string) {
  const renew = () => registry.renewNode({ node, url: URL })
  await renew()
  const timer = setInterval(() => void renew().catch(() => undefined), 100)
  const stop = () => clearInterval(timer)
  t.teardown(stop)
  return { stop }
}

const CASES = {
  'the next node': (registry: Registry) => watchNext(registry, 'a'),
  'an owner that refuses a call': async (registry: Registry) => {
    const [owner] = await registry.listLiveNodes()
    await endLease(registry, owner!)
  },
  'a node with the same URL': (registry: Registry) =>
    replaceEarlier(registry, { node: 'a', url: URL }),
}

if (requireTool(t, 'redis-server')) {
  const { url: redisUrl } = await startRedis(t)
  const redis = await openRedis(t, redisUrl)
  for (const [title, find] of Object.entries(CASES)) {
    await t.test(`${title} is gone only if it does not renew its lease`, async (t) => {
      await redis.command(['FLUSHALL'])
      const registry = openRegistry(redis)
      const isLive = async () => (await registry.listNodes()).some(({ isLive }) => isLive)
      const { stop } = await startNode(t, registry, 'b')
      await find(registry)
      t.equal(await isLive(), true)
      stop()
      await find(registry)
      t.equal(await isLive(), false)
    })
  }

  await t.test('two nodes with one URL learn of each other', async (t) => {
    await redis.command(['FLUSHALL'])
    const registry = openRegistry(redis)
    const own = { node: 'a', url: URL }
    await registry.renewNode(own)
    t.equal(await replaceEarlier(registry, own), false)
    const { stop } = await startNode(t, registry, 'b')
    t.equal(await replaceEarlier(registry, own), true)
    stop()
    t.equal(await replaceEarlier(registry, own), false)
  })

  await t.test('a killed process is found while the next one is loaded', async (t) => {
    await redis.command(['FLUSHALL'])
    const registry = openRegistry(redis)
    const config = completeSettings({
      ...{ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32), clusterSecret: 'c'.repeat(32) },
      ...{ redisUrl, nodeUrl: URL },
    })
    const { stop } = await startNode(t, registry, 'b')
    await registry.renewNode({ node: 'c', url: `${URL}0` })
    const live = async () => (await registry.listLiveNodes()).map(({ node }) => node).toSorted()
    await endEarlierProcess(config)
    t.strictSame(await live(), ['b', 'c'])
    stop()
    await endEarlierProcess(config)
    t.strictSame(await live(), ['c'])
    const away = `redis://127.0.0.1:${await freePort()}`
    await endEarlierProcess({ ...config, redisUrl: away })
  })

  await t.test('a node whose lease lapses meanwhile is none that lives', async (t) => {
    await redis.command(['FLUSHALL'])
    const registry = openRegistry(redis, { leaseMs: 200 })
    await registry.renewNode({ node: 'b', url: URL })
    t.equal(await replaceEarlier(registry, { node: 'a', url: URL }), false)
  })
}
