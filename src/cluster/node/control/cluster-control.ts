/**
 * Calls of the API on any node of a cluster: the registry is changed first, then the owner of the stream is told, which
 * answers with the record.
 *
 * @module
 */
import type { Archive } from '../../../archive/archive.ts'
import type { CallNode } from '../call-node.ts'
import type { SendCommand } from '../../registry/node-commands.ts'
import type { RegisteredStream } from '../../registry/registered.ts'
import type { Registry } from '../../registry/registry.ts'
import type { StreamControl } from '../../../api/control.ts'
import {
  checkSource,
  type ClipReport,
  type ClusterNode,
  type EncoderSource,
  type StartedStream,
  type StreamPage,
  type StreamRecord,
} from '../../../api/records.ts'
import {
  MAX_PAGE_STREAMS,
  type ClipRequest,
  type KickRequest,
  type ListRequest,
  type StartRequest,
  type StopRequest,
} from '../../../api/requests.ts'
import { MillraceError, NO_STREAM } from '../../../errors.ts'
import { makeClip } from '../../../service/archiving.ts'
import type { NodeRoutes } from '../../../service/node-routes.ts'
import type { Records } from '../../../service/records.ts'
import {
  startAndAnnounce,
  type KeyedStream,
  type StartStreamOptions,
} from '../../../service/start-stream.ts'
import type { Streams } from '../../../service/streams.ts'
import { startRegistered, type StartRegisteredOptions } from './start-registered.ts'
import type { RegisteredPorts } from '../registered/registered-ports.ts'
import type { RegisteredStreams } from '../registered/registered-streams.ts'
import {
  askRecords,
  parseRecordRequest,
  RECORDS,
  storedRecord,
  type StoredRecordOptions,
} from './remote-records.ts'

interface ControlOptions
  extends
    StartRegisteredOptions,
    Omit<StoredRecordOptions, 'urls' | 'wallMs'>,
    Omit<StartStreamOptions, 'start'> {
  /** Id of this node. */
  readonly node: string
  readonly registry: Pick<
    Registry,
    'start' | 'update' | 'stop' | 'revokeKey' | 'get' | 'list' | 'listNodes' | 'listLiveNodes'
  >
  readonly call: CallNode
  readonly sendCommand: SendCommand
  readonly streams: Pick<Streams, 'find' | 'room'>
  readonly registered: Pick<RegisteredStreams, 'refresh'>
  readonly ports: Pick<RegisteredPorts, 'invalidate'>
  readonly records: Pick<Records, 'of' | 'pageOf'>
  readonly lingerSec: number
  /** Undefined without one. */
  readonly archive: Archive | undefined
  /** Claims a stream that no node owns. */
  readonly claim: (streamId: string) => Promise<void>
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
    const { registry, node, registered } = this.#options
    const stream = await registry.get(streamId)
    if (stream?.owner === node) registered.refresh(stream)
  }

  async startStream(request: StartRequest): Promise<StartedStream> {
    if (this.#options.isDraining()) throw new MillraceError('SHUTTING_DOWN')
    return startAndAnnounce(request, { ...this.#options, start: (checked) => this.#start(checked) })
  }

  async #start(request: StartRequest): Promise<KeyedStream> {
    if (request.pullUrl) await this.#checkRoom(request.streamId)
    const { registered, shared, ...issued } = await startRegistered(request, this.#options)
    // Its encoder may call at once. Other nodes know the port within a second.
    if (shared.publishPort !== undefined) this.#options.ports.invalidate()
    // No encoder calls a node that would claim it.
    if (shared.pullUrl && registered.owner === undefined) await this.#options.claim(registered.id)
    const { status } = (await this.#tell(registered)) ?? registered
    const { webhookUrls = this.#options.webhookUrls, media } = shared
    const stream = { id: registered.id, status, webhookUrls }
    return { stream, formats: media?.formats ?? this.#options.formats, ...issued }
  }

  /** In the registry, a stream that this node cannot claim would wait for a source that nobody calls. */
  async #checkRoom(streamId: string): Promise<void> {
    const { registry, streams } = this.#options
    if (streams.room > 0) return
    if ((await registry.get(streamId))?.owner !== undefined) return
    throw new MillraceError('TOO_MANY_STREAMS')
  }

  async stopStream(streamId: string, { revoke = false }: StopRequest = {}): Promise<StreamRecord> {
    const { registry, lingerSec } = this.#options
    const stopped = await registry.stop(streamId, {
      reason: 'api',
      lingerMs: lingerSec * 1000,
      revoke,
    })
    if (stopped.outcome === 'unknown' || this.#isForgotten(stopped.stream)) {
      throw new MillraceError('STREAM_NOT_FOUND', revoke ? { message: NO_STREAM.keysRevoked } : {})
    }
    const { stream } = stopped
    return (await this.#tell(stream)) ?? this.#stored(stream)
  }

  async revokeKey(streamId: string, keyId: string): Promise<StreamRecord> {
    const registered = await this.#options.registry.revokeKey(streamId, keyId)
    if (registered === undefined || this.#isForgotten(registered))
      throw new MillraceError('STREAM_NOT_FOUND', { message: NO_STREAM.keyRevoked })
    return (await this.#tell(registered)) ?? this.#stored(registered)
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

  async switchSource(streamId: string, preferredSource: EncoderSource): Promise<StreamRecord> {
    checkSource(await this.status(streamId), preferredSource)
    const { registry, clock, node } = this.#options
    const switched = `${node}-${clock.wallMs()}`
    const registered = this.#known(await registry.update(streamId, { preferredSource, switched }))
    return (await this.#tell(registered)) ?? this.#stored(registered)
  }

  clip(streamId: string, request: ClipRequest): Promise<ClipReport> {
    return makeClip(this.#options.archive, streamId, request)
  }

  async status(streamId: string): Promise<StreamRecord> {
    const { registry, call } = this.#options
    const local = this.#local(streamId)
    // A stopped stream may have been started again on another node.
    if (local !== undefined && local.status !== 'STOPPED') return local
    try {
      const registered = this.#known(await registry.get(streamId))
      if (this.#isOwn(registered)) return local ?? this.#stored(registered)
      const request = { streamIds: [streamId], refresh: false }
      const responses = await askRecords(call, registered.ownerUrl, request)
      return responses?.get(streamId) ?? this.#stored(registered)
    } catch (error) {
      if (local !== undefined && isAway(error)) return local
      throw error
    }
  }

  async list({ limit = MAX_PAGE_STREAMS, ...filter }: ListRequest = {}): Promise<StreamPage> {
    const { registry, records } = this.#options
    const found = await registry.list({ ...filter, limit: limit + 1 })
    const page = found.slice(0, limit)
    const responses = await this.#askAll(page)
    const streams = page.map(
      (stream) =>
        (this.#isOwn(stream) ? this.#local(stream.id) : responses.get(stream.id)) ??
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
    const { registry, call } = this.#options
    const others = streams.filter((each) => each.owner !== undefined && !this.#isOwn(each))
    if (others.length === 0) return new Map()
    const nodes = await registry.listLiveNodes()
    const responses = await Promise.all(
      nodes.map(async ({ node, url }) => {
        const streamIds = others.filter(({ owner }) => owner === node).map(({ id }) => id)
        if (streamIds.length === 0) return undefined
        return askRecords(call, url, { streamIds, refresh: false })
      }),
    )
    return new Map(responses.flatMap((response) => [...(response ?? [])]))
  }

  /**
   * Tells the owner that the registry has changed, by a command if it does not answer.
   *
   * @returns its record; undefined without an owner that answers
   */
  async #tell(registered: RegisteredStream): Promise<StreamRecord | undefined> {
    const { call, sendCommand } = this.#options
    const { id, owner, ownerUrl } = registered
    if (owner === undefined) return undefined
    if (this.#isOwn(registered)) {
      this.#options.registered.refresh(registered)
      return this.#local(id)
    }
    const responses = await askRecords(call, ownerUrl, { streamIds: [id], refresh: true })
    if (responses === undefined) {
      // It is in the registry already: an owner that lives learns of it with its next segment at the latest.
      await sendCommand(owner, { refresh: id }).catch(() => undefined)
    }
    return responses?.get(id)
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
