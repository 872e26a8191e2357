/**
 * Ingest process: the service, with a Unix socket in place of its HTTP port; one of several is a node of their cluster.
 *
 * @module
 */
import { openLogger } from '../../logger.ts'
import type { JoinCluster } from '../../service/cluster.ts'
import type { ProgramOptions } from '../../service/open-server.ts'
import type { Server, ServerParts } from '../../service/server.ts'
import { showGuide } from '../../service/startup-guide.ts'
import { growHeapFast, replaceSettings, startProgram } from '../../service/service-process.ts'
import type { ChildOptions } from './messages.ts'
import { runChild, type ChildRole } from './run-child.ts'
import { removeSocket, removeSocketDirectory, socketBeside } from './socket-directory.ts'

type CreateIngest = (options: ProgramOptions, parts: ServerParts) => Promise<Server>

async function startIngest(
  { name, config, socketPath, isSecondary }: ChildOptions,
  createIngest: CreateIngest,
): Promise<ChildRole> {
  growHeapFast()
  removeSocket(socketPath)
  const logger = openLogger(config).child({ process: name })
  const joinCluster = config.ingest.workers === 1 ? undefined : await loadCluster(socketPath)
  const parts = { socketPath, isSecondary, joinCluster }
  const service = await startProgram((options) => createIngest(options, parts), config, logger)
  // Without a supervisor nobody else removes it.
  process.on('exit', () => !process.connected && removeSocketDirectory(socketPath))
  const { server } = service
  return {
    announce: () => {
      server.announce()
      if (!isSecondary) showGuide(service, config)
    },
    reload: (next) => replaceSettings(service, next),
    drain: () => server.drain(),
    close: (options) => server.close(options),
    abandon: () => server.abandon(),
  }
}

async function loadCluster(socketPath: string): Promise<JoinCluster> {
  const [{ ClusterMember }, { linkProcess }, { RegistryClient }] = await Promise.all([
    import('../node/member.ts'),
    import('./process-links.ts'),
    import('./registry-client.ts'),
  ])
  const registry = new RegistryClient()
  const socketPathOf = (host: string) => socketBeside(socketPath, host)
  return (service) => new ClusterMember(service, linkProcess(service, registry, socketPathOf))
}

/** Runs until the supervisor says otherwise, or is gone. */
export function runIngest(createIngest: CreateIngest): void {
  runChild((options) => startIngest(options, createIngest))
}
