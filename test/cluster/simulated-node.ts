/**
 * A node of a simulated cluster: the real `ClusterMember` over simulated links, with the real streams, records, notifications
 * and admission of its service. What has sockets is not here: SRT, HTTP and the delivery of webhooks.
 *
 * @module
 */
import { ClusterMember } from '../../src/cluster/node/member.ts'
import type { NodeRequest } from '../../src/cluster/node/call-node.ts'
import type { NodeLinks } from '../../src/cluster/node/node-links.ts'
import { sendCommand } from '../../src/cluster/registry/node-commands.ts'
import type { Argument } from '../../src/cluster/registry/redis.ts'
import { completeSettings } from '../../src/config/complete-settings.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { createAdmission, type Admission } from '../../src/ingest/admission.ts'
import { createLogger } from '../../src/logger.ts'
import { parseAllowList } from '../../src/outbound/address-rules.ts'
import { createNotifier } from '../../src/service/notifications.ts'
import { PublicUrls } from '../../src/service/public-urls.ts'
import { Records } from '../../src/service/records.ts'
import { nodeCallsOf, Settings } from '../../src/service/settings-in-use.ts'
import { Slates } from '../../src/service/slates.ts'
import { SrtCaller } from '../../src/service/srt-caller.ts'
import { sharedSettings } from '../../src/service/stream-defaults.ts'
import { Streams } from '../../src/service/streams.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { VirtualTime } from '../support/virtual-time.ts'
import type { SimulatedDispatcher } from './simulated-webhooks.ts'

export const WEBHOOK_URLS = ['http://one/', 'http://two/'] as const

/**
 * As long as a lease. A node that Redis does not hear, and that dies before its lease lapses, has listed no segment whose number
 * Redis does not know; it may have listed shorter ones, and parts.
 */
export const SEGMENT_SEC = 2

const TICK_MS = 250
const PROBE_MS = 300
const PROBE = 'probe'

const config = completeSettings({
  ...{ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32), clusterSecret: 'c'.repeat(32) },
  ...{ redisUrl: 'redis://redis', reconnectGraceSec: 6 },
  defaultWebhookUrls: WEBHOOK_URLS.join(','),
  hls: { segmentSec: SEGMENT_SEC, playlistSegments: 4, formats: 'ts', lingerSec: 1 },
  cache: { maxMib: 64 },
  public: { host: 'millrace', url: 'http://millrace' },
})
const settings = new Settings(config)
const logger = createLogger('silent')
const urls = new PublicUrls(config, { httpPort: config.http.port, srtPort: config.srt.port })
const shared = {
  ...{ config, settings, logger, urls, archive: undefined, calls: nodeCallsOf(settings)! },
  slates: new Slates(''),
  srtCaller: new SrtCaller({ allowed: parseAllowList('')!, onWarning: () => undefined }),
  readPlaybackSecrets: () => [],
  expectCaller: () => undefined,
}

/** What nodes have around them. */
export interface Surroundings {
  readonly time: VirtualTime
  registryOf(node: SimulatedNode): NodeLinks['registry']
  webhooksOf(node: SimulatedNode): SimulatedDispatcher
  call(node: SimulatedNode, request: NodeRequest): Promise<unknown>
  /** Takes a command of Redis. */
  command(node: SimulatedNode, args: readonly Argument[]): Promise<unknown>
}

export class SimulatedNode {
  readonly name: string
  readonly url: string
  readonly member: ClusterMember
  readonly streams: Streams
  readonly admission: Admission
  isDead = false
  #isPaused = false
  #backlog: (() => void)[] = []
  #onCommand: Parameters<NodeLinks['open']>[1] | undefined

  constructor(name: string, url: string, around: Surroundings) {
    this.name = name
    this.url = url
    const { time } = around
    const { clock } = time
    const timers = time.timersOf((task) => this.run(task))
    const webhooks = around.webhooksOf(this)
    const urlsOf = ({ id }: LiveStream) => urls.playback(id, ['ts'])
    const notifier = createNotifier(logger, webhooks, {
      urlsOf,
      announceEnd: (...end) => this.member.announceEnd(...end),
    })
    let epochs = 0
    const createEpoch = () => `${name}x${epochs++}`
    this.streams = new Streams({
      ...{ ...sharedSettings(settings, clock), createEpoch, createSalt: () => 0 },
      cache: new SegmentCache({ maxBytes: config.cache.maxMib * 1024 * 1024 }),
      onStream: (stream) => notifier.follow(stream),
      onResumed: (stream) => notifier.resumed(stream),
      onViewers: () => undefined,
    })
    const records = new Records({
      ...{ urlsOf, hasPlaybackSecret: false, audienceOf: () => ({ viewers: 0 }) },
      ownPolicyOf: (stream) => this.streams.ownPolicyOf(stream),
      keysOf: (stream) => this.streams.keysOf(stream),
      ownershipOf: (streamId) => this.member.ownershipOf(streamId),
      ...{ pullOf: () => undefined, pushesOf: () => [], archiveOf: () => undefined },
      readLoad: () => undefined,
    })
    this.member = new ClusterMember(
      { ...shared, streams: this.streams, records, notifier, webhooks },
      {
        ...{ node: name, createEpoch, clock, steadyClock: clock, timers, backup: undefined },
        ...{ registry: around.registryOf(this), outboxes: webhooks.outboxes },
        isRegistryReady: () => true,
        sendCommand: (...sent) =>
          sendCommand({ command: (args) => around.command(this, args) }, ...sent),
        call: (request) => around.call(this, request),
        probe: async (to) => {
          const request = { url: to, call: PROBE, body: {}, timeoutMs: PROBE_MS }
          return around.call(this, request).then(
            () => undefined,
            (error: unknown) => error,
          )
        },
        // Edges are simulated.
        playback: {} as NodeLinks['playback'],
        sharesPort: false,
        othersGoOn: true,
        open: (_, onCommand) => (this.#onCommand = onCommand),
        close: async () => undefined,
      },
    )
    this.admission = createAdmission({
      streams: this.member.admission,
      streamOfPort: (port) => this.member.ownerOf(port),
      readJwtSecrets: () => settings.secrets.jwt,
      maxPublishers: config.maxPublishers,
      isOverloaded: () => false,
      ...{ clock, sleep: timers.sleep, onRejected: () => undefined },
    })
    this.member.start(url)
    timers.every(TICK_MS, () => this.streams.tick())
  }

  get isAwake(): boolean {
    return !this.isDead && !this.#isPaused
  }

  /** Answers a call of another node. */
  async answer(call: string, body: unknown): Promise<object> {
    return call === PROBE ? {} : this.member.routes[call]!(body)
  }

  /** Takes a command of another node. */
  obey(command: unknown): void {
    this.run(() => void this.#onCommand?.(command).catch(() => undefined))
  }

  /** Runs code of the node, once it is awake. */
  run(task: () => void): void {
    if (this.isAwake) task()
    else if (!this.isDead) this.#backlog.push(task)
  }

  pause(): void {
    this.#isPaused = true
  }

  wake(): void {
    this.#isPaused = false
    for (const task of this.#backlog.splice(0)) this.run(task)
  }
}
