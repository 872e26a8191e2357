/**
 * Worker process: an edge of the ingest processes, over their Unix sockets.
 *
 * @module
 */
import cluster from 'node:cluster'
import { getPriority, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  MIN_BUFFERED_MIB,
  MIN_CACHE_MIB,
  MIN_CONNECTIONS,
  type Config,
} from '../../config/schema.ts'
import { openLogger } from '../../logger.ts'
import { createWorker } from '../edge/edge-server.ts'
import type { EdgeCluster } from '../edge/registry-owners.ts'
import type { ProgramOptions } from '../../service/open-server.ts'
import { replaceSettings, startProgram } from '../../service/service-process.ts'
import type { ChildOptions } from './messages.ts'
import { runChild, type ChildRole } from './run-child.ts'
import { socketBeside } from './socket-directory.ts'

/** Nice value: where processors are short, a third of the time slices of the ingest process, which must not lose packets. */
const WORKER_PRIORITY = 5

async function startWorker({ name, config, socketPath }: ChildOptions): Promise<ChildRole> {
  // Otherwise Node ends a worker at once when the supervisor is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  // Only a privileged process may lower its nice value.
  if (getPriority() < WORKER_PRIORITY) setPriority(WORKER_PRIORITY)
  const logger = openLogger(config).child({ process: name })
  const isOfOne = config.ingest.workers === 1
  const own = { ...workerConfig(config), edgeOf: isOfOne ? `unix:${socketPath}` : '' }
  const ingest = isOfOne ? undefined : await openIngest(socketPath)
  const create = (options: ProgramOptions) => createWorker(options, ingest)
  const service = await startProgram(create, own, logger)
  const { server } = service
  return {
    reload: (next) => replaceSettings(service, next),
    close: async ({ drainMs }) => {
      await sleep(drainMs)
      await server.close()
    },
    abandon: () => server.abandon(),
  }
}

/** Ingest processes and the owners of streams, as the registry of the supervisor has them. */
async function openIngest(socketPath: string): Promise<EdgeCluster> {
  const [{ RegistryOwners }, { RegistryClient }] = await Promise.all([
    import('../edge/registry-owners.ts'),
    import('./registry-client.ts'),
  ])
  const { registry } = new RegistryClient()
  return {
    owners: new RegistryOwners(registry),
    listIngestNodes: async () => (await registry.listLiveNodes()).map(({ url }) => url).toSorted(),
    socketPathOf: (host) => socketBeside(socketPath, host),
  }
}

/** Runs until the supervisor says otherwise, or is gone. */
export function runWorker(): void {
  runChild(startWorker)
}

/** Part of `CACHE_MAX_MIB` that each worker may use, besides the ingest processes. */
const CACHE_PART = 1 / 4

/** Settings of one of several workers: its share of what the settings allow all of them. */
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
