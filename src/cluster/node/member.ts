/**
 * This node as a member of a cluster: its parts put together. It holds a lease, owns streams, and adopts those of nodes that
 * are gone.
 *
 * @module
 */
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
import type { WebhookDispatcher } from '../../webhook/dispatcher.ts'
import { decodeOptions } from '../registry/registered-options.ts'
import { Adoption } from './takeover/adoption.ts'
import { Claims, parseYieldRequest, type YieldRequest } from './takeover/claims.ts'
import { ClusterControl } from './control/cluster-control.ts'
import { Drain } from './takeover/drain.ts'
import { replaceEarlier } from './takeover/gone-nodes.ts'
import { CLUSTER_FAMILIES } from './node-metrics.ts'
import { linkNode, type NodeLinks } from './node-links.ts'
import { NodeLease } from './takeover/node-lease.ts'
import { OwnedStreams } from './owned/owned-streams.ts'
import { RegisteredPorts } from './registered/registered-ports.ts'
import { findEncryption } from './registered/registered-policy.ts'
import { RegisteredStreams } from './registered/registered-streams.ts'
import { WebhookOutbox } from './outbox/webhook-outbox.ts'

/** Time limits of calls to the registry when a stream is yielded, and when the node goes away. */
const YIELD_WRITE_MS = 400
const HAND_OVER_MS = 700

/** Command of another node. */
interface NodeMessage {
  /** Id of a stream, see `ClusterControl.refresh`. */
  readonly refresh?: unknown
  readonly expect?: Parameters<LocalService['expectCaller']>[0]
}

export class ClusterMember implements Cluster {
  readonly control: ClusterControl
  readonly outbox: WebhookOutbox
  readonly playback: Cluster['playback']
  readonly routes: NodeRoutes
  readonly metrics: Cluster['metrics']
  readonly #links: NodeLinks
  readonly #settings: LocalService['settings']
  readonly #streams: Streams
  readonly #registered: RegisteredStreams
  readonly #ports: RegisteredPorts
  readonly #webhooks: WebhookDispatcher
  readonly #lease: NodeLease
  readonly #owned: OwnedStreams
  readonly #claims: Claims
  readonly #adoption: Adoption
  readonly #drain: Drain
  /** Empty until `start`. */
  #url = ''
  #isOver = false

  /** Begins to connect to the registry. @param links  default: those of this process */
  constructor(service: LocalService, links = linkNode(service)) {
    const { config, logger, settings, streams, webhooks } = service
    const { role, hls } = config
    const { node, registry, call, backup, clock, steadyClock, timers } = links
    const shared = sharedSettings(settings, steadyClock)
    const registered = new RegisteredStreams({ ...shared, streams })
    this.#ports = new RegisteredPorts({
      registry,
      range: parsePortRange(config.srt.streamPorts),
      clock: steadyClock,
      findOwned: (port) =>
        [...streams.all].find(
          (stream) => this.#owned.has(stream.id) && registered.portOf(stream) === port,
        )?.id,
    })
    this.#links = links
    this.#settings = settings
    this.#registered = registered
    this.#streams = streams
    this.#webhooks = webhooks
    // A source that a node calls cannot be sent elsewhere: it goes over with its stream.
    const listPublished = () => streams.published.filter(({ pullUrl }) => pullUrl === undefined)
    this.#drain = new Drain(listPublished, timers)
    this.#lease = new NodeLease({
      registry,
      describe: () => ({ node, url: this.#url, role }),
      onBegin: () => void this.#begin(logger),
      timers,
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
      clock,
      timers,
    })
    this.#claims = new Claims({
      node,
      createEpoch: links.createEpoch,
      registry,
      owned: this.#owned,
      call,
      sharesPort: links.sharesPort,
      readMedia: backup && ((handover) => backup.read(handover)),
      readRoom: () => streams.room,
      continueStream: (handover, mediaOf) => {
        if (this.#isOver) throw new MillraceError('SHUTTING_DOWN')
        return registered.continueStream(handover, mediaOf)
      },
      refresh: (streamId) => this.control.refresh(streamId),
      timers,
    })
    this.control = new ClusterControl({
      ...shared,
      ...service,
      node,
      registry,
      call,
      sendCommand: links.sendCommand,
      streams,
      registered,
      ports: this.#ports,
      srt: config.srt,
      webhooks,
      claim: (streamId) => this.#claims.claim(streamId),
      isDraining: () => this.isDraining,
    })
    this.outbox = new WebhookOutbox({
      node,
      outboxes: links.outboxes,
      clock,
      timers,
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
      timers,
      probe: links.probe,
    })
    this.playback = links.playback
    this.routes = {
      ...this.control.routes,
      yield: async (body) => ({ yielded: await this.#yield(parseYieldRequest(body)) }),
    }
    this.metrics = CLUSTER_FAMILIES.map((family) => ({
      ...family,
      read: () => family.read(this.#report()),
    }))
    links.open(
      () => {
        if (this.#url !== '' && !this.#isOver) void this.#lease.renew()
      },
      async (command) => {
        const { refresh, expect } = command as NodeMessage
        if (expect !== undefined) service.expectCaller(expect)
        if (typeof refresh === 'string') await this.control.refresh(refresh)
      },
    )
  }

  start(url: string): void {
    this.#url = url
    this.#lease.start()
    this.#adoption.start()
  }

  move(...[node, caller]: Parameters<Cluster['move']>): Promise<void> {
    const message: NodeMessage = { expect: caller }
    return this.#links.sendCommand(node, message)
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
      const { node, registry, sharesPort } = this.#links
      const { status, owner, ownerUrl: url, options } = (await registry.get(streamId)) ?? {}
      if (url === undefined || status === 'STOPPED') return undefined
      const isOther = sharesPort && owner !== node
      return { url, policy: decodeOptions(options), takenBy: isOther ? owner : undefined }
    },
  }

  readonly ownershipOf = (streamId: string) => {
    const stream = this.#streams.find(streamId)
    const publishPort = stream && this.#registered.portOf(stream)
    return {
      node: this.#links.node,
      ...this.#owned.reportOf(streamId),
      ...(publishPort !== undefined && { publishPort }),
    }
  }

  readonly fenceOf = (streamId: string): number | undefined => this.#owned.fenceOf(streamId)

  readonly announceEnd: Cluster['announceEnd'] = (stream, reason, event) => {
    const end = { urls: stream.webhookUrls, event }
    return this.#owned.stop(stream, reason, (run) => this.outbox.announce(run, end))
  }

  get othersGoOn(): boolean {
    return this.#links.othersGoOn
  }

  get isDraining(): boolean {
    return this.#isOver || this.#drain.hasBegun
  }

  async drain(limitMs?: number): Promise<void> {
    if (this.#links.othersGoOn) await this.#drain.run(limitMs)
  }

  async handOver(limitMs: number): Promise<void> {
    await this.drain(limitMs)
    this.#isOver = true
    await this.#adoption.stop()
    if (!this.#links.othersGoOn) return
    const timeoutMs = HAND_OVER_MS
    await Promise.all([this.#owned.handOver(timeoutMs), this.#webhooks.close({ timeoutMs })])
    await this.outbox.flush(timeoutMs)
    await this.#lease.leave()
  }

  async settleEnds(): Promise<void> {
    await this.#owned.handOver(HAND_OVER_MS)
  }

  async callOthers(call: string, timeoutMs: number): Promise<unknown[]> {
    const { node, registry, call: callNode } = this.#links
    const others = (await registry.listLiveNodes()).filter((each) => each.node !== node)
    const calls = others.map(({ url }) => callNode({ url, call, body: {}, timeoutMs }))
    const settled = await Promise.allSettled(calls)
    return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  }

  async close(): Promise<void> {
    this.#isOver = true
    void this.#adoption.stop()
    this.#lease.abandon()
    this.#owned.close()
    await this.#links.close()
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
    const { node, backup, isRegistryReady } = this.#links
    return {
      node,
      isRegistryReady: isRegistryReady(),
      ownedStreams: this.#owned.size,
      pendingStreams: this.#owned.pending,
      backup: backup?.report,
      outbox: this.outbox.report(),
    }
  }

  /** Ends the lease of an earlier process at this URL, and finds out what other nodes have adopted. */
  async #begin(logger: LocalService['logger']): Promise<void> {
    const { node, registry, timers } = this.#links
    const url = this.#url
    try {
      if (await replaceEarlier(registry, { node, url }, timers)) {
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
        clock: this.#links.steadyClock,
        sleep: (ms) => this.#links.timers.sleep(ms),
      })
      if (!isSilent) return false
    }
    if (this.#owned.fenceOf(streamId) === fence) await this.#owned.yield(streamId, YIELD_WRITE_MS)
    return true
  }
}
