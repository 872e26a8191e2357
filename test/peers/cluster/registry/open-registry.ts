/**
 * A registry over a real Redis that starts with the test.
 *
 * @module
 */
import type { Test } from 'tap'
import { Redis } from '../../../../src/cluster/registry/redis.ts'
import { Registry, type RegistrySettings } from '../../../../src/cluster/registry/registry.ts'
import { SEQUENCE_CLOCK } from '../../../cluster/registry/memory-registry.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../../support/until.ts'

/** @param url  of a server that runs; default: one that starts */
export async function openRedis(t: Test, url?: string): Promise<Redis> {
  const redis = new Redis({ url: url ?? (await startRedis(t)).url, timeoutMs: 5000 })
  t.teardown(() => redis.close())
  redis.connect()
  await until('a connection', () => redis.isReady)
  return redis
}

/** A node settles at once and its lease holds for a minute, unless the options say otherwise. */
export function openRegistry(redis: Redis, options: Partial<RegistrySettings> = {}): Registry {
  const defaults = { leaseMs: 60_000, settleMs: 0, sequenceClock: SEQUENCE_CLOCK }
  return new Registry({ redis, ...defaults, ...options })
}
