/**
 * Settings of one of several workers: its share of what the settings allow all of them.
 *
 * @module
 */
import { MIN_BUFFERED_MIB, MIN_CACHE_MIB, MIN_CONNECTIONS, type Config } from '../config/schema.ts'

/** Part of `CACHE_MAX_MIB` that each worker may use, besides the ingest process. */
const CACHE_PART = 1 / 4

export function workerConfig(config: Config): Config {
  const { http, cache } = config
  const share = (total: number) => Math.ceil(total / http.workers)
  return {
    ...config,
    http: {
      ...http,
      maxConnections: Math.max(MIN_CONNECTIONS, share(http.maxConnections)),
      maxBufferedMib: Math.max(MIN_BUFFERED_MIB, share(http.maxBufferedMib)),
    },
    cache: { maxMib: Math.max(MIN_CACHE_MIB, Math.ceil(cache.maxMib * CACHE_PART)) },
  }
}
