/**
 * Ingest process: the service, with a Unix socket in place of its HTTP port.
 *
 * @module
 */
import { createLogger } from '../logger.ts'
import { createIngest } from '../service/create-server.ts'
import { replaceSettings } from '../service/reload.ts'
import { growHeapFast, startProgram } from '../service/service-process.ts'
import type { ChildOptions } from './messages.ts'
import { obey, type Role } from './obey.ts'
import { removeSocket, removeSocketDirectory } from './socket-directory.ts'

async function startIngest({ name, config, socketPath }: ChildOptions): Promise<Role> {
  growHeapFast()
  removeSocket(socketPath)
  const logger = createLogger(config.logLevel).child({ process: name })
  const service = await startProgram((options) => createIngest(options, socketPath), config, logger)
  // Without a supervisor nobody else removes it.
  process.on('exit', () => !process.connected && removeSocketDirectory(socketPath))
  const { server } = service
  return {
    announce: () => server.announce(),
    reload: (next) => replaceSettings(service, next),
    drain: () => server.drain(),
    close: (options) => server.close(options),
    abandon: () => server.abandon(),
  }
}

/** Runs until the supervisor says otherwise, or is gone. */
export function obeyAsIngest(): void {
  obey(startIngest)
}
