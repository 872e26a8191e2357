/**
 * Ingest process: the service, with a Unix socket in place of its HTTP port.
 *
 * @module
 */
import { openLogger } from '../../logger.ts'
import type { ProgramOptions } from '../../service/open-server.ts'
import type { Server } from '../../service/server.ts'
import { showGuide } from '../../service/startup-guide.ts'
import { growHeapFast, replaceSettings, startProgram } from '../../service/service-process.ts'
import type { ChildOptions } from './messages.ts'
import { runChild, type ChildRole } from './run-child.ts'
import { removeSocket, removeSocketDirectory } from './socket-directory.ts'

type CreateIngest = (options: ProgramOptions, socketPath: string) => Promise<Server>

async function startIngest(
  { name, config, socketPath }: ChildOptions,
  createIngest: CreateIngest,
): Promise<ChildRole> {
  growHeapFast()
  removeSocket(socketPath)
  const logger = openLogger(config).child({ process: name })
  const service = await startProgram((options) => createIngest(options, socketPath), config, logger)
  // Without a supervisor nobody else removes it.
  process.on('exit', () => !process.connected && removeSocketDirectory(socketPath))
  const { server } = service
  return {
    announce: () => {
      server.announce()
      showGuide(service, config)
    },
    reload: (next) => replaceSettings(service, next),
    drain: () => server.drain(),
    close: (options) => server.close(options),
    abandon: () => server.abandon(),
  }
}

/** Runs until the supervisor says otherwise, or is gone. */
export function runIngest(createIngest: CreateIngest): void {
  runChild((options) => startIngest(options, createIngest))
}
