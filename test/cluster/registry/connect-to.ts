import { Redis, type RedisOptions } from '../../../src/cluster/registry/redis.ts'
import { until } from '../../support/until.ts'

interface Test {
  teardown(close: () => unknown): unknown
}

/** Connects to Redis until the test ends; collects what it tells. */
export function connectTo(
  t: Test,
  url: string,
  { timeoutMs = 500, readsOnly = false }: Partial<Omit<RedisOptions, 'url'>> = {},
) {
  const redis = new Redis({ url, timeoutMs, readsOnly })
  t.teardown(() => redis.close())
  const events: string[] = []
  redis.on('ready', () => events.push('ready'))
  const reasons: string[] = []
  redis.on('lost', (reason) => {
    events.push('lost')
    reasons.push(reason)
  })
  redis.connect()
  return { redis, events, reasons, isReady: () => until('a connection', () => redis.isReady) }
}
