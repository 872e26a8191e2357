/**
 * This node as a member of a cluster: it holds a lease, owns streams, and adopts those of nodes that are gone.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { machineClock } from '../../clock.ts'
import { callNode } from '../../cluster/call-node.ts'
import { NodeLease } from '../../cluster/node-lease.ts'
import type { NodeCalls } from '../../cluster/node-calls.ts'
import { CommandReader } from '../../cluster/command-reader.ts'
import { Redis } from '../../cluster/redis.ts'
import { Outboxes } from '../../cluster/registry/outboxes.ts'
import { Registry } from '../../cluster/registry/registry.ts'
import type { Config } from '../../config/schema.ts'
import { MillraceError } from '../../errors.ts'
import type { NodeRoutes } from '../../http/node-routes.ts'
import type { AdmissionStreams } from '../../ingest/admission.ts'
import type { Logger } from '../../logger.ts'
import type { WebhookDispatcher } from '../../webhook/dispatcher.ts'
import type { NotifierOptions } from '../notifications.ts'
import { SEQUENCE_CLOCK } from '../../stream/sequence-starts.ts'
import type { Streams } from '../streams.ts'
import { Claims } from './claims.ts'
import { ClusterControl, type ClusterLink, type ControlOptions } from './control.ts'
import { EdgeWithin, type EdgeWithinOptions } from './edge-within.ts'
import type { ClusterReport } from '../metrics/cluster-families.ts'
import { MediaBackup } from './media-backup.ts'
import { Drain } from './drain.ts'
import { replaceEarlier, watchNext } from './gone-nodes.ts'
import { listOwned, OwnedStreams } from './owned-streams.ts'
import { logRegistry } from './registry-log.ts'
import { RegistryOwners } from './registry-owners.ts'
import { staysSilent } from './silence.ts'
import { WebhookOutbox, type OutboxParts } from './webhook-outbox.ts'
import { parseYieldRequest, type YieldRequest } from './yield-call.ts'

/** Interval at which streams without an owner are looked for. */
const ADOPT_MS = 500
/** Max number of streams without an owner that a round adopts, and of those at the same time. */
const MAX_ADOPTED = 20
const ADOPTED_AT_ONCE = 8
/** Rounds after which the streams of this node are compared with the registry. */
const RECONCILE_ROUNDS = 4

/** Time limits of calls to the registry when a stream is yielded, and when the node goes away. */
const YIELD_WRITE_MS = 400
const HAND_OVER_MS = 700

/** What the member has of the service. */
export interface ServiceParts extends Omit<ControlOptions, keyof ClusterLink>, OutboxParts {
  readonly streams: Streams
  readonly calls: NodeCalls
  readonly webhooks: WebhookDispatcher
}

/** Calling order: `join`, `start` when the ports are open, `drain` if need be, then `handOver` and `close`, or `close` alone. */
export class ClusterMember {
  /** Identifies this run of the process. */
  readonly node = randomBytes(6).toString('hex')
  readonly redis: Redis
  readonly registry: Registry
  readonly outbox: WebhookOutbox
  readonly #lease: NodeLease
  readonly #owned: OwnedStreams
  readonly #claims: Claims
  readonly #backup: MediaBackup | undefined
  readonly #drain = new Drain(() => this.#service.streams.published)
  readonly #redisUrl: string
  #parts: ServiceParts | undefined
  #control: ClusterControl | undefined
  #commands: CommandReader | undefined
  #url = ''
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #rounds = 0
  #isOver = false

  constructor(config: Config, logger: Logger) {
    const { redisUrl, role, hls, maxStreams, clusterBackup } = config
    const { node } = this
    this.#redisUrl = redisUrl
    this.redis = new Redis({ url: redisUrl })
    const registry = new Registry({
      redis: this.redis,
      sequenceClock: SEQUENCE_CLOCK,
      maxStreams,
    })
    this.registry = registry
    const outboxes = new Outboxes({ redis: this.redis })
    this.outbox = new WebhookOutbox({ node, outboxes, clock: machineClock, logger })
    this.#lease = new NodeLease({
      registry,
      describe: () => ({ node, url: this.#url, role }),
      onBegin: () => void this.#begin(logger),
    })
    const backup = clusterBackup ? new MediaBackup(config, logger) : undefined
    this.#backup = backup
    this.#owned = new OwnedStreams({
      node,
      registry,
      backup,
      logger,
      lingerMs: hls.lingerSec * 1000,
      readLeaseSince: () => this.#lease.sinceMs,
      leave: (stream) => this.#service.streams.leave(stream),
      reclaim: (streamId) => void this.#claims.adopt(streamId).catch(() => undefined),
    })
    this.#claims = new Claims({
      node,
      registry,
      owned: this.#owned,
      call: (request) => callNode(this.#service.calls, request),
      readMedia: backup && ((continuation) => backup.read(continuation)),
      readRoom: () => this.#service.streams.room,
      adopt: (continuation, mediaOf) => {
        if (this.#isOver) throw new MillraceError('SHUTTING_DOWN')
        return this.#service.streams.adopt(continuation, mediaOf)
      },
      refresh: async (streamId) => this.#control?.refresh(streamId),
    })
    this.redis.on('ready', () => {
      if (this.#timer !== undefined) void this.#lease.renew()
    })
    logRegistry(this.redis, logger.child({ node }))
  }

  /** Connects to the registry. @returns the calls of the API on any node */
  join(parts: ServiceParts): ClusterControl {
    const { node, registry, redis } = this
    const isDraining = () => this.isDraining
    const control = new ClusterControl({ ...parts, node, registry, redis, isDraining })
    this.#parts = parts
    this.#control = control
    redis.connect()
    this.#backup?.connect()
    this.outbox.join(parts)
    this.#commands = new CommandReader({ url: this.#redisUrl }, node, async (command) => {
      const { refresh } = command as { readonly refresh?: unknown }
      if (typeof refresh === 'string') await control.refresh(refresh)
    })
    this.#commands.start()
    return control
  }

  /** @param url  at which other nodes reach this one */
  start(url: string): void {
    this.#url = url
    this.#lease.start()
    this.#timer = setInterval(() => {
      this.#round ??= this.#adopt().finally(() => (this.#round = undefined))
    }, ADOPT_MS)
  }

  /** Streams for admission: that of a verified key runs here once it is admitted. */
  readonly admission: AdmissionStreams = {
    find: (streamId) => this.#service.streams.find(streamId),
    admit: async (key) => {
      if (this.isDraining) throw new MillraceError('SHUTTING_DOWN')
      await this.#claims.admit(key)
      return this.#service.streams.admit(key)
    },
  }

  /** See `RecordsOptions`. */
  readonly ownershipOf = (streamId: string) => ({
    node: this.node,
    ...this.#owned.reportOf(streamId),
  })

  /** See `FenceOf`. */
  readonly fenceOf = (streamId: string): number | undefined => this.#owned.fenceOf(streamId)

  /** Streams of other nodes, for viewers of this one. */
  serveRemote(options: Omit<EdgeWithinOptions, 'owners' | 'readUrl'>): EdgeWithin {
    const owners = new RegistryOwners(this.registry)
    return new EdgeWithin({ ...options, owners, readUrl: () => this.#url })
  }

  /** See `NotifierOptions`. */
  readonly announceEnd: NonNullable<NotifierOptions['announceEnd']> = (stream, reason, event) => {
    const end = { urls: stream.webhookUrls, event }
    return this.#owned.stop(stream, reason, (run) => this.outbox.announce(run, end))
  }

  get routes(): NodeRoutes {
    return {
      ...this.#control?.routes,
      yield: async (body) => ({ yielded: await this.#yield(parseYieldRequest(body)) }),
    }
  }

  report(): ClusterReport {
    return {
      node: this.node,
      isRegistryReady: this.redis.isReady,
      ownedStreams: this.#owned.size,
      pendingStreams: this.#owned.pending,
      backup: this.#backup?.report,
      outbox: this.outbox.report(),
    }
  }

  /** Whether new encoders and streams are refused, since this node goes away. */
  get isDraining(): boolean {
    return this.#isOver || this.#drain.hasBegun
  }

  /**
   * Sends the encoders away, and takes none any more. Streams are served here until other nodes claim them.
   *
   * @param limitMs  see `Drain`
   */
  drain(limitMs?: number): Promise<void> {
    return this.#drain.run(limitMs)
  }

  /** Drains, then leaves what it still has to other nodes, which go on with the streams at once. */
  async handOver(limitMs: number): Promise<void> {
    await this.drain(limitMs)
    this.#isOver = true
    clearInterval(this.#timer)
    await this.#round
    const { webhooks } = this.#service
    const timeoutMs = HAND_OVER_MS
    await Promise.all([this.#owned.handOver(timeoutMs), webhooks.close({ timeoutMs })])
    await this.outbox.flush(timeoutMs)
    await this.#lease.leave()
  }

  /** Tells the registry nothing any more. */
  async close(): Promise<void> {
    this.#isOver = true
    clearInterval(this.#timer)
    this.#lease.abandon()
    this.#owned.close()
    await Promise.all([this.redis.close(), this.#commands?.close(), this.#backup?.close()])
  }

  get #service(): ServiceParts {
    if (this.#parts === undefined) throw new Error('the node has not joined the cluster')
    return this.#parts
  }

  /** Ends the lease of an earlier process at this URL, and finds out what other nodes have adopted. */
  async #begin(logger: Logger): Promise<void> {
    const url = this.#url
    try {
      if (await replaceEarlier(this.registry, { node: this.node, url })) {
        logger.error({ url }, 'two nodes have this NODE_URL: calls reach one of them. Set another.')
      }
      await this.#reconcile()
    } catch {
      // The next round does it.
    }
  }

  async #adopt(): Promise<void> {
    try {
      await watchNext(this.registry, this.node)
      // What a node that is gone has told of its streams comes before what this one does.
      await this.outbox.look()
      const orphans = await this.registry.orphans(this.node, { limit: MAX_ADOPTED })
      // Those end here: with the events and webhooks of a stream that ends.
      const overdue = await this.registry.overdue(MAX_ADOPTED)
      await this.#adoptAll([...orphans, ...overdue].map(({ id }) => id))
      if (++this.#rounds % RECONCILE_ROUNDS === 0) await this.#reconcile()
    } catch {
      // The next round tries again.
    }
  }

  async #reconcile(): Promise<void> {
    const listed = await listOwned(this.registry, this.node)
    if (this.#isOver) return
    await this.#adoptAll(await this.#owned.reconcile(listed))
  }

  /** What fails, or finds no room, is tried again in a later round. */
  async #adoptAll(streamIds: readonly string[]): Promise<void> {
    const left = streamIds.values()
    const lane = async () => {
      for (const streamId of left) {
        if (!this.isDraining) await this.#claims.adopt(streamId).catch(() => undefined)
      }
    }
    await Promise.all(Array.from({ length: ADOPTED_AT_ONCE }, lane))
  }

  /** Yields a stream whose encoder has been silent for 1 s, or does so now. */
  async #yield({ stream_id: streamId, fence }: YieldRequest): Promise<boolean> {
    const stream = this.#owned.has(streamId) ? this.#service.streams.find(streamId) : undefined
    if (!(await staysSilent(stream))) return false
    if (this.#owned.fenceOf(streamId) === fence) await this.#owned.yield(streamId, YIELD_WRITE_MS)
    return true
  }
}
