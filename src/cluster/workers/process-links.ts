/**
 * Links of an ingest process that is one of several: the registry is at the supervisor, the others are at Unix sockets.
 *
 * @module
 */
import type { LocalService } from '../../service/cluster.ts'
import { NodeClient } from '../edge/node-client.ts'
import { commonLinks, playbackOver, type NodeLinks } from '../node/node-links.ts'
import type { RegistryClient } from './registry-client.ts'

export function linkProcess(
  service: LocalService,
  registryClient: RegistryClient,
  socketPathOf: (host: string) => string,
): NodeLinks {
  const { registry, outboxes, sendCommand } = registryClient
  const client = new NodeClient({ calls: service.calls, socketPathOf })
  const playback = playbackOver(service, registry, client)
  return {
    ...commonLinks(client),
    registry,
    outboxes,
    sendCommand,
    playback,
    isRegistryReady: () => registryClient.isReady,
    backup: undefined,
    sharesPort: true,
    // All of them are told to close.
    othersGoOn: false,
    // The supervisor ends the lease of a process that dies.
    probe: async () => undefined,
    open: (_onReady, onCommand) =>
      registryClient.readCommands((command) => void onCommand(command).catch(() => undefined)),
    close: async () => {
      playback.close()
      await client.close()
    },
  }
}
