/**
 * Worker process: an edge of the ingest process, over its Unix socket.
 *
 * @module
 */
import cluster from 'node:cluster'
import { getPriority, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLogger } from '../logger.ts'
import { createWorker } from '../service/edge-server.ts'
import { replaceSettings } from '../service/reload.ts'
import { startProgram } from '../service/service-process.ts'
import type { ChildOptions } from './messages.ts'
import { obey, type Role } from './obey.ts'
import { workerConfig } from './shares.ts'

/** Nice value: where processors are short, a third of the time slices of the ingest process, which must not lose packets. */
const WORKER_PRIORITY = 5

async function startWorker({ name, config, socketPath }: ChildOptions): Promise<Role> {
  // Otherwise Node ends a worker at once when the supervisor is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  // Only a privileged process may lower its nice value.
  if (getPriority() < WORKER_PRIORITY) setPriority(WORKER_PRIORITY)
  const logger = createLogger(config.logLevel).child({ process: name })
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
export function obeyAsWorker(): void {
  obey(startWorker)
}
