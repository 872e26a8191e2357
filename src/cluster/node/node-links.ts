/**
 * What a node of a cluster has around it: time, the registry, other nodes, and their media.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { RemoteStreams } from '../../playback/remote-streams.ts'
import type { LocalService } from '../../service/cluster.ts'
import { SEQUENCE_CLOCK } from '../../stream/sequence-starts.ts'
import {
  machineClock,
  machineTimers,
  systemClock,
  type Clock,
  type Timers,
} from '../../timing/clock.ts'
import { NodeClient } from '../edge/node-client.ts'
import { RegistryOwners } from '../edge/registry-owners.ts'
import { CommandReader, sendCommand, type SendCommand } from '../registry/node-commands.ts'
import { Outboxes } from '../registry/outboxes.ts'
import { logRegistry, Redis } from '../registry/redis.ts'
import { Registry } from '../registry/registry.ts'
import { MediaBackup } from './backup/media-backup.ts'
import { callNode, type CallNode, type NodeRequest } from './call-node.ts'
import { ClusterPlayback } from './cluster-playback.ts'
import { probeNode, type Probe } from './takeover/gone-nodes.ts'

/** Calling order: `open`, then `close`. */
export interface NodeLinks {
  /** Id of this run of the process. */
  readonly node: string
  /** Creates an id for a claim. */
  readonly createEpoch: () => string
  /** Clock for times that other machines compare with their own clocks. */
  readonly clock: Clock
  /** Clock for dates of media and of stream keys, see `SteadyClock`. */
  readonly steadyClock: Clock
  readonly timers: Timers
  readonly registry: Pick<Registry, keyof Registry>
  readonly isRegistryReady: () => boolean
  readonly sendCommand: SendCommand
  readonly outboxes: Pick<Outboxes, keyof Outboxes>
  readonly call: CallNode
  readonly probe: Probe
  /** Undefined without `CLUSTER_BACKUP`. */
  readonly backup: Pick<MediaBackup, 'follow' | 'flush' | 'read' | 'report'> | undefined
  readonly playback: RemoteStreams
  /** Whether all nodes share the SRT port of one machine, so that a caller can go from one to another. */
  readonly sharesPort: boolean
  /** Whether other nodes go on when this one closes, and take its streams; otherwise these end. */
  readonly othersGoOn: boolean
  /**
   * Begins to connect.
   *
   * @param onReady  called when the registry answers, again after it was away
   * @param onCommand  see `CommandReader`
   */
  open(onReady: () => void, onCommand: (command: unknown) => Promise<void>): void
  /** Settles when no timer or socket is left. */
  close(): Promise<void>
}

/** Size of the media of other nodes in memory, as a part of `CACHE_MAX_MIB` and beside it. */
const REMOTE_SHARE = 1 / 4

/** Links of this process, by Redis and HTTP. */
export function linkNode(service: LocalService): NodeLinks {
  const { config, logger, calls } = service
  const { redisUrl, maxStreams, clusterBackup } = config
  const redis = new Redis({ url: redisUrl })
  const registry = new Registry({ redis, sequenceClock: SEQUENCE_CLOCK, maxStreams })
  const backup = clusterBackup ? new MediaBackup(config, logger, machineClock) : undefined
  const client = new NodeClient({ calls })
  const playback = playbackOver(service, registry, client)
  const common = commonLinks(client)
  const { node } = common
  let commands: CommandReader | undefined
  return {
    ...common,
    registry,
    isRegistryReady: () => redis.isReady,
    sendCommand: (...command) => sendCommand(redis, ...command),
    backup,
    playback,
    outboxes: new Outboxes({ redis }),
    probe: probeNode,
    sharesPort: false,
    othersGoOn: true,
    open(onReady, onCommand) {
      redis.on('ready', onReady)
      logRegistry(redis, logger.child({ node }))
      redis.connect()
      backup?.connect()
      commands = new CommandReader({ url: redisUrl }, node, onCommand)
      commands.start()
    },
    async close() {
      playback.close()
      await Promise.all([redis.close(), commands?.close(), backup?.close(), client.close()])
    },
  }
}

/** Streams of other nodes, whose media takes memory beside that of this one. */
export function playbackOver(
  { config, settings, urls, logger }: LocalService,
  registry: Pick<Registry, 'get'>,
  client: NodeClient,
): ClusterPlayback {
  return new ClusterPlayback({
    owners: new RegistryOwners(registry),
    client,
    readUrl: () => urls.node,
    maxBytes: config.cache.maxMib * 1024 * 1024 * REMOTE_SHARE,
    readPlaybackSecrets: () => settings.secrets.playback,
    logger,
  })
}

/** What has nothing to do with the registry. */
export function commonLinks(client: NodeClient) {
  return {
    node: createId(),
    createEpoch: createId,
    clock: machineClock,
    steadyClock: systemClock,
    timers: machineTimers,
    call: (request: NodeRequest) => callNode(client, request),
  }
}

function createId(): string {
  return randomBytes(6).toString('hex')
}
