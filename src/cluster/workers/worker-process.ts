/**
 * Worker process: an edge of the ingest process, over its Unix socket.
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
import { replaceSettings, startProgram } from '../../service/service-process.ts'
import type { ChildOptions } from './messages.ts'
import { runChild, type ChildRole } from './run-child.ts'

/** Nice value: where processors are short, a third of the time slices of the ingest process, which must not lose packets. */
const WORKER_PRIORITY = 5

async function startWorker({ name, config, socketPath }: ChildOptions): Promise<ChildRole> {
  // Otherwise Node ends a worker at once when the supervisor is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  // Only a privileged process may lower its nice value.
  if (getPriority() < WORKER_PRIORITY) setPriority(WORKER_PRIORITY)
  const logger = openLogger(config).child({ process: name })
  const own = { ...workerConfig(config), edgeOf: `unix:${socketPath}` }
  const service = await startProgram(createWorker, own, logger)
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

/** Runs until the supervisor says otherwise, or is gone. */
export function runWorker(): void {
  runChild(startWorker)
}

/** Part of `CACHE_MAX_MIB` that each worker may use, besides the ingest process. */
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
