/**
 * The earlier process of a node, over a real Redis.
 */
import t from 'tap'
import { endEarlierProcess } from '../../../../../src/cluster/node/takeover/gone-nodes.ts'
import { completeSettings } from '../../../../../src/config/complete-settings.ts'
import { openRedis, openRegistry } from '../../registry/open-registry.ts'
import { freePort } from '../../../../support/free-port.ts'
import { startRedis } from '../../../support/redis.ts'
import { requireTool } from '../../../support/tools.ts'

t.test('a killed process is found while the next one is loaded', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url: redisUrl } = await startRedis(t)
  const registry = openRegistry(await openRedis(t, redisUrl))
  // Nobody listens there.
  const url = `http://127.0.0.1:${await freePort()}`
  const config = completeSettings({
    ...{ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32), clusterSecret: 'c'.repeat(32) },
    ...{ redisUrl, nodeUrl: url },
  })
  const renew = () => registry.renewNode({ node: 'b', url })
  await renew()
  const renewals = setInterval(() => void renew().catch(() => undefined), 100)
  t.teardown(() => clearInterval(renewals))
  await registry.renewNode({ node: 'c', url: `${url}0` })
  const live = async () => (await registry.listLiveNodes()).map(({ node }) => node).toSorted()
  await endEarlierProcess(config)
  t.strictSame(await live(), ['b', 'c'])
  clearInterval(renewals)
  await endEarlierProcess(config)
  t.strictSame(await live(), ['c'])
  const away = `redis://127.0.0.1:${await freePort()}`
  await endEarlierProcess({ ...config, redisUrl: away })
})
