/**
 * CPU of a redis-server.
 *
 * @module
 */
import type { Redis } from '../../src/cluster/registry/redis.ts'

/** Microseconds since its start, as `INFO cpu` tells. */
export async function usedCpuUs(redis: Redis): Promise<number> {
  const text = String(await redis.command(['INFO', 'cpu']))
  const used = [...text.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)]
  return used.reduce((sum, [, sec]) => sum + Number(sec) * 1e6, 0)
}
