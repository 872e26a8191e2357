/**
 * This node as a member of a cluster: its parts put together. It holds a lease, owns streams, and adopts those of nodes that
 * are gone.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { machineClock, machineTimers, systemClock } from '../../timing/clock.ts'
import { MillraceError } from '../../errors.ts'
import { parsePortRange } from '../../config/setting-types.ts'
import { ENCODER_SOURCES } from '../../api/records.ts'
import { checkAddress, checkProtection, type PublishRequest } from '../../ingest/admission.ts'
import { waitForSilence } from '../../ingest/silence.ts'
import type { Cluster, LocalService } from '../../service/cluster.ts'
import type { NodeRoutes } from '../../service/node-routes.ts'
import { sharedSettings } from '../../service/stream-defaults.ts'
import type { Streams } from '../../service/streams.ts'
import type { LiveStream } from '../../stream/live-stream.ts'
import { SEQUENCE_CLOCK } from '../../stream/sequence-starts.ts'
import type { WebhookDispatcher } from '../../webhook/dispatcher.ts'
import { RegistryOwners } from '../edge/registry-owners.ts'
import { CommandReader } from '../registry/node-commands.ts'
import { Outboxes } from '../registry/outboxes.ts'
import { logRegistry, Redis } from '../registry/redis.ts'
import { decodeOptions } from '../registry/registered-options.ts'
import { Registry } from '../registry/registry.ts'
import { Adoption } from './takeover/adoption.ts'
import { callNode, type CallNode } from './call-node.ts'
import { Claims, parseYieldRequest, type YieldRequest } from './takeover/claims.ts'
import { ClusterControl } from './control/cluster-control.ts'
import { Drain } from './takeover/drain.ts'
import { ClusterPlayback } from './cluster-playback.ts'
import { replaceEarlier } from './takeover/gone-nodes.ts'
import { MediaBackup } from './backup/media-backup.ts'
import { CLUSTER_FAMILIES } from './node-metrics.ts'
import { NodeLease } from './takeover/node-lease.ts'
import { OwnedStreams } from './owned/owned-streams.ts'
import { RegisteredPorts } from './registered/registered-ports.ts'
import { findEncryption } from './registered/registered-policy.ts'
import { RegisteredStreams } from './registered/registered-streams.ts'
import { WebhookOutbox } from './outbox/webhook-outbox.ts'

/** Time limits of calls to the registry when a stream is yielded, and when the node goes away. */
const YIELD_WRITE_MS = 400
const HAND_OVER_MS = 700

/** Size of the media of other nodes in memory, as a part of `CACHE_MAX_MIB` and beside it. */
const REMOTE_SHARE = 1 / 4

export class ClusterMember implements Cluster {
  readonly control: ClusterControl
  readonly outbox: WebhookOutbox
  readonly playback: ClusterPlayback
  readonly routes: NodeRoutes
  readonly metrics: Cluster['metrics']
  /** Id of this run of the process. */
  readonly #node = randomBytes(6).toString('hex')
  readonly #settings: LocalService['settings']
  readonly #redis: Redis
  readonly #registry: Registry
  readonly #streams: Streams
  readonly #registered: RegisteredStreams
  readonly #ports: RegisteredPorts
  readonly #webhooks: WebhookDispatcher
  readonly #lease: NodeLease
  readonly #owned: OwnedStreams
  readonly #claims: Claims
  readonly #adoption: Adoption
  readonly #commands: CommandReader
  readonly #backup: MediaBackup | undefined
  readonly #drain: Drain
  /** Empty until `start`. */
  #url = ''
  #isOver = false

  /** Begins to connect to the registry. */
  constructor({ config, logger, settings, calls, streams, webhooks, ...service }: LocalService) {
    const { redisUrl, role, hls, maxStreams, clusterBackup, cache } = config
    const shared = sharedSettings(settings, systemClock)
    const node = this.#node
    const call: CallNode = (request) => callNode(calls, request)
    const redis = new Redis({ url: redisUrl })
    const registry = new Registry({ redis, sequenceClock: SEQUENCE_CLOCK, maxStreams })
    const registered = new RegisteredStreams({ ...shared, streams })
    const backup = clusterBackup ? new MediaBackup(config, logger, machineClock) : undefined
    this.#ports = new RegisteredPorts({
      registry,
      range: parsePortRange(config.srt.streamPorts),
      clock: systemClock,
      findOwned: (port) =>
        [...streams.all].find(
          (stream) => this.#owned.has(stream.id) && registered.portOf(stream) === port,
        )?.id,
    })
    this.#settings = settings
    this.#registered = registered
    this.#redis = redis
    this.#registry = registry
    this.#streams = streams
    this.#webhooks = webhooks
    this.#backup = backup
    // A source that a node calls cannot be sent elsewhere: it goes over with its stream.
    this.#drain = new Drain(() => streams.published.filter(({ pullUrl }) => pullUrl === undefined))
    this.#lease = new NodeLease({
      registry,
      describe: () => ({ node, url: this.#url, role }),
      onBegin: () => void this.#begin(logger),
      timers: machineTimers,
    })
    this.#owned = new OwnedStreams({
      node,
      registry,
      backup,
      logger,
      lingerMs: hls.lingerSec * 1000,
      readLeaseSince: () => this.#lease.sinceMs,
      keyUsesOf: (stream) => streams.keyUsesOf(stream),
      appliedOf: (stream) => registered.appliedOf(stream),
      onRestored: (stream) => void this.#checkPort(stream, logger).catch(() => undefined),
      leave: (stream) => streams.leave(stream),
      reclaim: (streamId) => void this.#claims.claim(streamId).catch(() => undefined),
      clock: machineClock,
      timers: machineTimers,
    })
    this.#claims = new Claims({
      node,
      registry,
      owned: this.#owned,
      call,
      readMedia: backup && ((handover) => backup.read(handover)),
      readRoom: () => streams.room,
      continueStream: (handover, mediaOf) => {
        if (this.#isOver) throw new MillraceError('SHUTTING_DOWN')
        return registered.continueStream(handover, mediaOf)
      },
      refresh: (streamId) => this.control.refresh(streamId),
      timers: machineTimers,
    })
    this.control = new ClusterControl({
      ...shared,
      ...service,
      node,
      registry,
      redis,
      call,
      streams,
      registered,
      ports: this.#ports,
      srt: config.srt,
      webhooks,
      claim: (streamId) => this.#claims.claim(streamId),
      isDraining: () => this.isDraining,
    })
    const outboxes = new Outboxes({ redis })
    this.outbox = new WebhookOutbox({
      node,
      outboxes,
      clock: machineClock,
      logger,
      webhooks,
      readClusterSecrets: shared.readClusterSecrets,
      webhookUrls: shared.webhookUrls,
    })
    this.#adoption = new Adoption({
      node,
      registry,
      outbox: this.outbox,
      owned: this.#owned,
      claim: (streamId) => this.#claims.claim(streamId),
      isDraining: () => this.isDraining,
      timers: machineTimers,
    })
    this.playback = new ClusterPlayback({
      owners: new RegistryOwners(registry),
      calls,
      readUrl: () => this.#url,
      maxBytes: cache.maxMib * 1024 * 1024 * REMOTE_SHARE,
      readPlaybackSecrets: () => settings.secrets.playback,
      logger,
    })
    this.routes = {
      ...this.control.routes,
      yield: async (body) => ({ yielded: await this.#yield(parseYieldRequest(body)) }),
    }
    this.metrics = CLUSTER_FAMILIES.map((family) => ({
      ...family,
      read: () => family.read(this.#report()),
    }))
    this.#commands = new CommandReader({ url: redisUrl }, node, async (command) => {
      const { refresh } = command as { readonly refresh?: unknown }
      if (typeof refresh === 'string') await this.control.refresh(refresh)
    })
    redis.on('ready', () => {
      if (this.#url !== '' && !this.#isOver) void this.#lease.renew()
    })
    logRegistry(redis, logger.child({ node }))
    redis.connect()
    backup?.connect()
    this.#commands.start()
  }

  start(url: string): void {
    this.#url = url
    this.#lease.start()
    this.#adoption.start()
  }

  async ownerOf(port: number): Promise<string | undefined> {
    return (await this.#ports.find(port))?.streamId
  }

  readonly admission: Cluster['admission'] = {
    find: (streamId) => this.#streams.find(streamId),
    admit: async (key) => {
      if (this.isDraining) throw new MillraceError('SHUTTING_DOWN')
      await this.#claims.admit(key)
      return this.#streams.admit(key)
    },
    admitUnkeyed: (request) => this.#admitUnkeyed(request),
    checkKey: (key) => this.#streams.checkKey(key),
    locate: async (streamId) => {
      const { status, ownerUrl: url, options } = (await this.#registry.get(streamId)) ?? {}
      if (url === undefined || status === 'STOPPED') return undefined
      return { url, policy: decodeOptions(options) }
    },
  }

  readonly ownershipOf = (streamId: string) => {
    const stream = this.#streams.find(streamId)
    const publishPort = stream && this.#registered.portOf(stream)
    return {
      node: this.#node,
      ...this.#owned.reportOf(streamId),
      ...(publishPort !== undefined && { publishPort }),
    }
  }

  readonly fenceOf = (streamId: string): number | undefined => this.#owned.fenceOf(streamId)

  readonly announceEnd: Cluster['announceEnd'] = (stream, reason, event) => {
    const end = { urls: stream.webhookUrls, event }
    return this.#owned.stop(stream, reason, (run) => this.outbox.announce(run, end))
  }

  get isDraining(): boolean {
    return this.#isOver || this.#drain.hasBegun
  }

  drain(limitMs?: number): Promise<void> {
    return this.#drain.run(limitMs)
  }

  async handOver(limitMs: number): Promise<void> {
    await this.drain(limitMs)
    this.#isOver = true
    await this.#adoption.stop()
    const timeoutMs = HAND_OVER_MS
    await Promise.all([this.#owned.handOver(timeoutMs), this.#webhooks.close({ timeoutMs })])
    await this.outbox.flush(timeoutMs)
    await this.#lease.leave()
  }

  async close(): Promise<void> {
    this.#isOver = true
    void this.#adoption.stop()
    this.#lease.abandon()
    this.#owned.close()
    await Promise.all([
      this.#redis.close(),
      this.#commands.close(),
      this.#backup?.close(),
      this.playback.close(),
    ])
  }

  /** Claims the stream of a port only for an encoder that the stream takes: whoever finds the port may call. */
  async #admitUnkeyed(request: PublishRequest): Promise<LiveStream | undefined> {
    const { port, address, checkEncryption } = request
    if (this.isDraining) throw new MillraceError('SHUTTING_DOWN')
    const found = await this.#ports.find(port)
    if (found === undefined) return undefined
    const { streamId, options } = found
    await this.#claims.admitUnkeyed(streamId, async () => {
      const { allowFrom, encryption } = decodeOptions(options)
      const {
        config,
        secrets: { jwt: secrets },
      } = this.#settings
      checkProtection({ encryption, allowFrom }, config.srt.passphrase !== '')
      checkAddress(allowFrom, address)
      const own = encryption && findEncryption(streamId, encryption, secrets).encryption
      await checkEncryption(own?.passphrase)
    })
    const stream = this.#streams.find(streamId)
    // The stream may have been started again without the port.
    return stream && this.#registered.portOf(stream) === port ? stream : undefined
  }

  /** While the registry had lost a stream of this node, another one may have been given its port. */
  async #checkPort(stream: LiveStream, logger: LocalService['logger']): Promise<void> {
    const port = this.#registered.portOf(stream)
    if (port === undefined) return
    await this.control.refresh(stream.id)
    if (this.#registered.portOf(stream) === port) return
    logger.warn(
      { stream_id: stream.id },
      `Redis has given publish_port ${port} to another stream. Encoders of this one are refused there. Stop it, and start it at another port.`,
    )
  }

  #report() {
    return {
      node: this.#node,
      isRegistryReady: this.#redis.isReady,
      ownedStreams: this.#owned.size,
      pendingStreams: this.#owned.pending,
      backup: this.#backup?.report,
      outbox: this.outbox.report(),
    }
  }

  /** Ends the lease of an earlier process at this URL, and finds out what other nodes have adopted. */
  async #begin(logger: LocalService['logger']): Promise<void> {
    const url = this.#url
    try {
      if (await replaceEarlier(this.#registry, { node: this.#node, url }, machineTimers)) {
        logger.error({ url }, 'two nodes have this NODE_URL: calls reach one of them. Set another.')
      }
      await this.#adoption.reconcile()
    } catch {
      // The next round does it.
    }
  }

  /** Yields a stream whose encoder has been silent for 1 s, or does so now. */
  async #yield({ stream_id: streamId, fence }: YieldRequest): Promise<boolean> {
    const stream = this.#owned.has(streamId) ? this.#streams.find(streamId) : undefined
    if (stream !== undefined) {
      const isSilent = await waitForSilence(stream, {
        sources: ENCODER_SOURCES,
        clock: systemClock,
        sleep: (ms) => machineTimers.sleep(ms),
      })
      if (!isSilent) return false
    }
    if (this.#owned.fenceOf(streamId) === fence) await this.#owned.yield(streamId, YIELD_WRITE_MS)
    return true
  }
}
