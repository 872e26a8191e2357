/**
 * Owners of streams, and ingest nodes, for an edge of a cluster.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { logRegistry, Redis } from '../registry/redis.ts'
import { Registry } from '../registry/registry.ts'
import type { Owner, OwnerLookup } from './stream-origin.ts'
import type { Logger } from '../../logger.ts'
import { SEQUENCE_CLOCK } from '../../stream/sequence-starts.ts'

/** Where an edge finds streams and ingest nodes. */
export interface EdgeCluster {
  readonly owners: OwnerLookup
  /** See `IngestNodesOptions`. */
  readonly listIngestNodes: () => Promise<readonly string[]>
  /** Given where the nodes are processes of this machine, see `NodeClientOptions`: the edge is the service to its clients. */
  readonly socketPathOf?: (host: string) => string
  /** Called when the edge has closed. */
  readonly close?: () => Promise<void>
}

/** Time for which a result is believed, in milliseconds; `fresh` asks again. */
const KEPT_MS = 1000
const MAX_KEPT = 10_000

/** Connects to the registry of an edge. */
export function openRegistry(redisUrl: string, logger: Logger): EdgeCluster {
  const redis = new Redis({ url: redisUrl, readsOnly: true })
  logRegistry(redis, logger)
  redis.connect()
  const registry = new Registry({ redis, sequenceClock: SEQUENCE_CLOCK })
  return {
    owners: new RegistryOwners(registry),
    listIngestNodes: async () => (await registry.listLiveNodes()).map(({ url }) => url),
    close: () => redis.close(),
  }
}

export class RegistryOwners implements OwnerLookup {
  readonly #registry: Pick<Registry, 'get'>
  readonly #kept = new LRUCache<string, { readonly owner: Owner | undefined }>({
    max: MAX_KEPT,
    ttl: KEPT_MS,
  })

  constructor(registry: Pick<Registry, 'get'>) {
    this.#registry = registry
  }

  async find(
    streamId: string,
    { fresh = false }: { readonly fresh?: boolean } = {},
  ): Promise<Owner | undefined> {
    const kept = fresh ? undefined : this.#kept.get(streamId)
    if (kept !== undefined) return kept.owner
    const { ownerUrl: url, fence = 0 } = (await this.#registry.get(streamId)) ?? {}
    const owner = url === undefined ? undefined : { url, fence }
    this.#kept.set(streamId, { owner })
    return owner
  }
}
