/**
 * Calls of the API on any node of a cluster: the registry is changed first, then the owner of the stream is told, which
 * answers with the record.
 *
 * @module
 */
import type { NodeCalls } from '../../cluster/node-calls.ts'
import type { Redis } from '../../cluster/redis.ts'
import { sendCommand } from '../../cluster/registry/node-commands.ts'
import type { RegisteredStream } from '../../cluster/registry/records.ts'
import type { Registry } from '../../cluster/registry/registry.ts'
import { STREAM_KEY_LIFETIME_SEC } from '../../auth/stream-key.ts'
import { checkStartRequest, MAX_PAGE_STREAMS } from '../../contract/schema.ts'
import type {
  ClusterNode,
  KickRequest,
  ListRequest,
  StartedStream,
  StartRequest,
  StopRequest,
  StreamControl,
  StreamPage,
  StreamRecord,
} from '../../contract/streams.ts'
import { MillraceError } from '../../errors.ts'
import type { NodeRoutes } from '../../http/node-routes.ts'
import { issuedKey } from '../issued-key.ts'
import type { Notifier } from '../notifications.ts'
import type { PublicUrls } from '../public-urls.ts'
import type { Records } from '../records.ts'
import type { Streams } from '../streams.ts'
import type { WebhookDispatcher } from '../../webhook/dispatcher.ts'
import { startRegistered, type IssueOptions } from './issue-key.ts'
import { askRecords, parseRecordRequest, RECORDS } from './record-calls.ts'
import { storedRecord, type StoredRecordOptions } from './stored-record.ts'

/** What the service has of its cluster. */
export type ClusterLink = Pick<ControlOptions, 'node' | 'registry' | 'redis' | 'isDraining'>

export interface ControlOptions extends IssueOptions, Omit<StoredRecordOptions, 'urls' | 'wallMs'> {
  /** Id of this node. */
  readonly node: string
  readonly registry: Pick<
    Registry,
    'start' | 'update' | 'stop' | 'get' | 'list' | 'listNodes' | 'listLiveNodes'
  >
  readonly redis: Pick<Redis, 'command'>
  /** Signs calls at other nodes; undefined: they are told by commands alone. */
  readonly calls: NodeCalls | undefined
  readonly streams: Pick<Streams, 'find' | 'refresh'>
  readonly records: Pick<Records, 'of' | 'pageOf'>
  readonly notifier: Pick<Notifier, 'ready'>
  readonly webhooks: Pick<WebhookDispatcher, 'check'>
  readonly urls: Pick<PublicUrls, 'publish' | 'playback'>
  readonly lingerSec: number
  /** Whether this node goes away. */
  readonly isDraining: () => boolean
}

export class ClusterControl implements StreamControl {
  /** Calls of other nodes at this one. */
  readonly routes: NodeRoutes
  readonly #options: ControlOptions

  constructor(options: ControlOptions) {
    this.#options = options
    this.routes = {
      [RECORDS]: async (body) => {
        const { streamIds, refresh } = parseRecordRequest(body)
        if (refresh) for (const id of streamIds) await this.refresh(id)
        return { records: streamIds.flatMap((id) => this.#local(id) ?? []) }
      },
    }
  }

  /** Brings a stream of this node in line with the registry, because another node has changed it there. */
  async refresh(streamId: string): Promise<void> {
    const { registry, node, streams } = this.#options
    const registered = await registry.get(streamId)
    if (registered?.owner === node) streams.refresh(registered)
  }

  async startStream(request: StartRequest): Promise<StartedStream> {
    const { webhooks, urls, notifier, webhookUrls, formats, isDraining } = this.#options
    if (isDraining()) throw new MillraceError('SHUTTING_DOWN')
    checkStartRequest(request)
    webhooks.check(request.webhookUrls ?? [])
    const { registered, settings, key, passphrase } = await startRegistered(request, this.#options)
    const { id: streamId } = registered
    const issued = issuedKey(key, passphrase, urls)
    const { status } = (await this.#tell(registered)) ?? registered
    const addressee = {
      id: streamId,
      status,
      webhookUrls: settings.webhookUrls ?? webhookUrls,
    }
    notifier.ready(addressee, issued)
    const played = urls.playback(streamId, settings.media?.formats ?? formats)
    return { streamId, status, ...issued, ...played }
  }

  async stopStream(streamId: string, { revoke = false }: StopRequest = {}): Promise<StreamRecord> {
    const { registry, lingerSec } = this.#options
    const stopped = await registry.stop(streamId, {
      reason: 'api',
      lingerMs: lingerSec * 1000,
      ...(revoke && { revokeMs: STREAM_KEY_LIFETIME_SEC * 1000 }),
    })
    if (stopped.outcome === 'unknown' || this.#isForgotten(stopped.stream)) {
      const message = 'no such stream; the keys issued for it so far are revoked'
      throw new MillraceError('STREAM_NOT_FOUND', revoke ? { message } : {})
    }
    const { stream } = stopped
    return (await this.#tell(stream)) ?? this.#stored(stream)
  }

  async kick(streamId: string, { banSec = 0 }: KickRequest = {}): Promise<StreamRecord> {
    const { registry, clock, node } = this.#options
    const wallMs = clock.wallMs()
    const registered = this.#known(
      await registry.update(streamId, {
        kick: `${node}-${wallMs}`,
        bannedUntilMs: wallMs + banSec * 1000,
      }),
    )
    return (await this.#tell(registered)) ?? this.#stored(registered)
  }

  async status(streamId: string): Promise<StreamRecord> {
    const { registry, calls } = this.#options
    const local = this.#local(streamId)
    // A stopped stream may have been started again on another node.
    if (local !== undefined && local.status !== 'STOPPED') return local
    try {
      const registered = this.#known(await registry.get(streamId))
      if (this.#isOwn(registered)) return local ?? this.#stored(registered)
      const request = { streamIds: [streamId], refresh: false }
      const answers = await askRecords(calls, registered.ownerUrl, request)
      return answers?.get(streamId) ?? this.#stored(registered)
    } catch (error) {
      if (local !== undefined && isAway(error)) return local
      throw error
    }
  }

  async list({ limit = MAX_PAGE_STREAMS, ...filter }: ListRequest = {}): Promise<StreamPage> {
    const { registry, records } = this.#options
    const found = await registry.list({ ...filter, limit: limit + 1 })
    const page = found.slice(0, limit)
    const answers = await this.#askAll(page)
    const streams = page.map(
      (stream) =>
        (this.#isOwn(stream) ? this.#local(stream.id) : answers.get(stream.id)) ??
        this.#stored(stream),
    )
    return records.pageOf(streams, found.length > limit ? page.at(-1)?.id : undefined)
  }

  async nodes(): Promise<ClusterNode[]> {
    const nodes = await this.#options.registry.listNodes()
    return nodes
      .toSorted((one, other) => (one.url < other.url ? -1 : 1))
      .map(({ node, url, role, isLive, ownedStreams }) => {
        return { node, url, role: String(role), live: isLive, streams: ownedStreams }
      })
  }

  /** Asks the owners of streams for their records, all at once. */
  async #askAll(streams: readonly RegisteredStream[]): Promise<ReadonlyMap<string, StreamRecord>> {
    const { registry, calls } = this.#options
    const others = streams.filter((each) => each.owner !== undefined && !this.#isOwn(each))
    if (others.length === 0) return new Map()
    const nodes = await registry.listLiveNodes()
    const answers = await Promise.all(
      nodes.map(async ({ node, url }) => {
        const streamIds = others.filter(({ owner }) => owner === node).map(({ id }) => id)
        if (streamIds.length === 0) return undefined
        return askRecords(calls, url, { streamIds, refresh: false })
      }),
    )
    return new Map(answers.flatMap((answer) => [...(answer ?? [])]))
  }

  /**
   * Tells the owner that the registry has changed, by a command if it does not answer.
   *
   * @returns its record; undefined without an owner that answers
   */
  async #tell(registered: RegisteredStream): Promise<StreamRecord | undefined> {
    const { redis, calls, streams } = this.#options
    const { id, owner, ownerUrl } = registered
    if (owner === undefined) return undefined
    if (this.#isOwn(registered)) {
      streams.refresh(registered)
      return this.#local(id)
    }
    const answers = await askRecords(calls, ownerUrl, { streamIds: [id], refresh: true })
    if (answers === undefined) {
      // It is in the registry already: an owner that lives learns of it with its next segment at the latest.
      await sendCommand(redis, owner, { refresh: id }).catch(() => undefined)
    }
    return answers?.get(id)
  }

  #isOwn({ owner }: Pick<RegisteredStream, 'owner'>): boolean {
    return owner === this.#options.node
  }

  #local(streamId: string): StreamRecord | undefined {
    const { streams, records } = this.#options
    const stream = streams.find(streamId)
    return stream && records.of(stream)
  }

  #stored(registered: RegisteredStream): StreamRecord {
    const wallMs = this.#options.clock.wallMs()
    return storedRecord(registered, { ...this.#options, wallMs })
  }

  /** @throws {MillraceError} `STREAM_NOT_FOUND` */
  #known(registered: RegisteredStream | undefined): RegisteredStream {
    if (registered !== undefined && !this.#isForgotten(registered)) return registered
    throw new MillraceError('STREAM_NOT_FOUND')
  }

  /** Whether the linger of a stopped stream is over. */
  #isForgotten({ status, lingersUntilMs = 0 }: RegisteredStream): boolean {
    return status === 'STOPPED' && lingersUntilMs <= this.#options.clock.wallMs()
  }
}

function isAway(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'REGISTRY_UNAVAILABLE'
}
