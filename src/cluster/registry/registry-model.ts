/**
 * Registry in memory: that of several ingest processes, and of simulated clusters. It does what the scripts do in Redis, and
 * `model.test.ts` holds it equal to them: their comments say why.
 *
 * @module
 */
import type { StreamState } from '../../api/records.ts'
import { MillraceError } from '../../errors.ts'
import { PORT_REFUSALS } from '../../service/stream-ports.ts'
import {
  completeRules,
  MAX_ENTRIES,
  RETAIN_MS,
  type Advance,
  type Advanced,
  type Claimed,
  type ClaimOptions,
  type Orphan,
  type OwnedOptions,
  type Ownership,
  type Registry,
  type RegistryRules,
  type Restoration,
  type StartOptions,
  type Stopped,
  type StopOptions,
} from './registry.ts'
import type {
  Handover,
  NodeRecord,
  RegisteredNode,
  RegisteredPort,
  RegisteredStream,
  UncheckedOptions,
} from './registered.ts'
import { OutboxModel } from './outbox-model.ts'
import { CLOCKS_MS, MAX_KEYS, RevocationModel, timesOf } from './revocation-model.ts'
import { unavailable } from './unavailable.ts'

interface StoredStream extends Omit<RegisteredStream, 'id' | 'owner' | 'ownerUrl'> {
  readonly owner: string
  readonly serial: number
  /** Since when the owner's lease had held when it reported its numbers; `''` if that is unknown. */
  readonly since: number | ''
  /** Server that has all that is known of the stream. */
  readonly server: string
  readonly first: number
  readonly media: number
  readonly discontinuity: number
  readonly targets?: Advance['targets']
  readonly renditions?: unknown
  readonly keyIssuedAtMs: number
  readonly expiresAtMs: number
}

/** A node's record without its id. */
interface NodeFields {
  readonly url: string
  readonly [name: string]: unknown
}

interface Page {
  readonly after?: string
  readonly limit: number
}

/** Calls of the registry in Redis, answered at once. */
type Calls<T> = {
  [Name in keyof T]: T[Name] extends (...args: infer Args) => Promise<infer Answer>
    ? (...args: Args) => Answer
    : never
}

export interface ModelOptions extends RegistryRules {
  /** Reads the clock of the registry, in milliseconds since 1970. */
  readonly nowMs: () => number
  /** Id of the server: another one may have lost writes. */
  readonly server: () => string
  /** Max number of running streams of all nodes; default: `maxStreams` for each. */
  readonly maxTotal?: number
}

/** Numbers that an owner may have used without the registry. */
const UNSEEN = 1000

/**
 * Its public methods are those of `Registry`. The fields are what the scripts keep in Redis; tests read them, and put back
 * earlier ones after a failover.
 */
export class RegistryModel implements Calls<Registry> {
  readonly #nowMs: () => number
  readonly #server: () => string
  readonly #rules: Required<RegistryRules>
  readonly #maxTotal: number | undefined
  /** All nodes, and the end of the latest lease of each. */
  nodes = new Map<string, { record: NodeFields; deadlineMs: number }>()
  /** Nodes that were known to be gone when their leases still held, and since when these had held. */
  gone = new Map<string, number>()
  /** Leases that hold, by node. */
  leases = new Map<string, { sinceMs: number; untilMs: number; server: string }>()
  streams = new Map<string, StoredStream>()
  /** Entries of the windows of streams, the first of which has the number `first` of the stream. */
  windows = new Map<string, readonly unknown[]>()
  /** Time before which neither a record of a stream nor a window expires. */
  nextExpiryMs = Infinity
  /** Streams that run, and stopped ones until they are swept. */
  listed = new Set<string>()
  /** End of the linger of listed streams that have stopped. */
  stopped = new Map<string, number>()
  /** READY streams that nobody has claimed, and the expiry of their last key. */
  unclaimed = new Map<string, number>()
  /** Streams by the port that they have to themselves, and those that had one: see `#streamAt`. */
  ports = new Map<string, string>()
  /** Since when the registry has been in use. */
  bornMs: number | undefined
  /** Stopped streams that the node of this id serves. */
  lingering = new Map<string, Set<string>>()
  readonly revocations: RevocationModel
  readonly outboxes: OutboxModel

  constructor({ nowMs, server, maxTotal, ...rules }: ModelOptions) {
    this.#nowMs = nowMs
    this.#server = server
    this.#rules = completeRules(rules)
    this.#maxTotal = maxTotal
    this.revocations = new RevocationModel(this.#rules.maxFloors)
    this.outboxes = new OutboxModel({
      nowMs: () => this.#now(),
      server,
      holdsLease: (node) => this.leases.has(node),
      isSettled: (node) => this.#isSettled(node, nowMs()),
      isKnownToBeGone: (node) => this.gone.has(node),
    })
  }

  /** Forgets what time has ended; all calls do so first. */
  expire(): void {
    const nowMs = this.#nowMs()
    for (const [node, { untilMs }] of this.leases) if (untilMs <= nowMs) this.leases.delete(node)
    if (nowMs >= this.nextExpiryMs) this.#expireStreams(nowMs)
    this.outboxes.expire(nowMs)
  }

  /** Forgets windows at the end of their streams' linger, and records later. */
  #expireStreams(nowMs: number): void {
    this.nextExpiryMs = Infinity
    for (const [id, { lingersUntilMs = Infinity, expiresAtMs }] of this.streams) {
      if (lingersUntilMs <= nowMs) this.windows.delete(id)
      if (expiresAtMs <= nowMs) this.streams.delete(id)
      for (const atMs of [lingersUntilMs, expiresAtMs])
        if (atMs > nowMs) this.nextExpiryMs = Math.min(this.nextExpiryMs, atMs)
    }
  }

  renewNode({ node, ...record }: NodeRecord): number {
    const nowMs = this.#now()
    const { leaseMs } = this.#rules
    const server = this.#server()
    const lease = this.leases.get(node)
    const sinceMs = lease?.server === server ? lease.sinceMs : nowMs
    this.leases.set(node, { sinceMs, untilMs: nowMs + leaseMs, server })
    this.nodes.set(node, { record, deadlineMs: nowMs + leaseMs })
    this.gone.delete(node)
    this.bornMs ??= nowMs
    return sinceMs
  }

  leaveNode(node: string, { deadlineMs }: { readonly deadlineMs?: number } = {}): boolean {
    const nowMs = this.#now()
    const lease = this.leases.get(node)
    if (lease === undefined) return true
    if (deadlineMs !== undefined && this.nodes.get(node)?.deadlineMs !== deadlineMs) return false
    this.leases.delete(node)
    const known = this.nodes.get(node)
    this.nodes.set(node, { record: known?.record ?? { url: '' }, deadlineMs: nowMs })
    if (lease.server === this.#server()) this.gone.set(node, lease.sinceMs)
    return true
  }

  listNodes(): RegisteredNode[] {
    const nowMs = this.#now()
    return this.#nodesByDeadline()
      .toReversed()
      .flatMap(([node, { record, deadlineMs }]) => {
        const isLive = this.leases.has(node)
        if (isLive || this.#owned(node).length > 0 || this.#lingeringOf(node).size > 0) {
          const silentMs = Math.max(0, nowMs - (deadlineMs - this.#rules.leaseMs))
          const ownedStreams = this.#owned(node).length
          return [{ node, ...record, isLive, ownedStreams, deadlineMs, silentMs }]
        }
        this.#forgetNode(node)
        return []
      })
  }

  listLiveNodes(): RegisteredNode[] {
    return this.listNodes().filter(({ isLive }) => isLive)
  }

  start(id: string, { options, kept = {}, publishPort, ...key }: StartOptions): RegisteredStream {
    const nowMs = this.#now()
    const { keyIssuedAtMs: issuedAtMs = nowMs } = key
    const lifetimeSec = Math.max(0, Math.floor((key.keyExpiresAtMs - issuedAtMs) / 1000))
    const floorMs = this.revocations.floorOf(id) * 1000
    const firstSec = Math.floor(Math.max(issuedAtMs, floorMs) / 1000)
    let issuedAtSec = firstSec
    const keyIds = () =>
      ['main', 'backup'].map((source) => `${issuedAtSec}-${lifetimeSec}-${source}`)
    while (keyIds().some((each) => this.revocations.has(id, each))) issuedAtSec++
    const lateMs = Math.max(0, floorMs - nowMs) + (issuedAtSec - firstSec) * 1000
    const keyExpiresAtMs = key.keyExpiresAtMs + lateMs
    const { sequenceClock: clock, maxStreams } = this.#rules
    this.#sweep(nowMs)
    let stream = this.streams.get(id)
    const issuedBeforeMs = stream?.keyIssuedAtMs ?? 0
    if (publishPort !== undefined) this.#checkPort(id, publishPort, key.isProtected === true)
    if (stream === undefined || stream.status === 'STOPPED') {
      const live = [...this.nodes.values()].filter(({ deadlineMs }) => deadlineMs > nowMs)
      const max = this.#maxTotal ?? maxStreams * Math.max(1, live.length)
      if (this.listed.size - this.stopped.size >= max) throw new MillraceError('TOO_MANY_STREAMS')
      const excess = Math.max(0, this.stopped.size - max)
      for (const first of this.#stoppedFirst().slice(0, Math.min(excess, 10))) this.#forget(first)
      stream = this.streams.get(id)
      const sec = (nowMs - clock.originMs) / 1000
      const isUsed = (stream?.owner ?? '') !== ''
      const isLost = stream !== undefined && stream.server !== this.#server()
      const unseen = UNSEEN * (Number(isUsed) + Number(isLost))
      const used = (stream?.media ?? 0) + unseen
      const usedDiscontinuities = (stream?.discontinuity ?? 0) + unseen / 100
      const media = Math.max(used, Math.ceil(sec * clock.mediaPerSec))
      const discontinuity = Math.ceil(sec * clock.discontinuitiesPerSec)
      this.#unlist(id)
      this.windows.delete(id)
      this.listed.add(id)
      stream = {
        run: Math.max((stream?.run ?? 0) + 1, nowMs),
        fence: stream?.fence ?? 0,
        discontinuity: Math.max(usedDiscontinuities, discontinuity),
        status: 'READY',
        owner: '',
        epoch: '',
        serial: 0,
        since: '',
        server: this.#server(),
        isYielded: false,
        first: media,
        media,
        startedAtMs: nowMs,
        keyExpiresAtMs,
        keyIssuedAtMs: 0,
        options: {},
        keys: {},
        expiresAtMs: Infinity,
      }
      this.unclaimed.set(id, keyExpiresAtMs)
    } else if (keyExpiresAtMs > stream.keyExpiresAtMs) {
      stream = { ...stream, keyExpiresAtMs }
      if (stream.owner === '') this.unclaimed.set(id, keyExpiresAtMs)
    }
    const keyIssuedAtMs = Math.max(issuedAtMs, issuedAtSec * 1000, issuedBeforeMs)
    this.streams.set(id, {
      ...stream,
      keyIssuedAtMs,
      options: {
        ...kept,
        ...stream.options,
        ...(publishPort !== undefined && { publishPort }),
        ...options,
      },
    })
    if (publishPort !== undefined) this.ports.set(String(publishPort), id)
    for (const keyId of keyIds().slice(0, key.backup === true ? 2 : 1)) this.#putKey(id, keyId, 0)
    return { ...this.#describe(id)!, issuedAtSec }
  }

  useKey(id: string, keyId: string): void {
    if (this.streams.has(id)) this.#putKey(id, keyId, this.#now())
  }

  revokeKey(id: string, keyId: string): RegisteredStream | undefined {
    const nowMs = this.#now()
    this.revocations.revoke(id, keyId, nowMs)
    const stream = this.streams.get(id)
    const { [keyId]: _, ...keys } = stream?.keys ?? {}
    if (stream !== undefined) this.streams.set(id, { ...stream, keys })
    return this.#describe(id)
  }

  update(id: string, options: UncheckedOptions): RegisteredStream | undefined {
    this.#now()
    const stream = this.streams.get(id)
    if (stream === undefined) return undefined
    this.streams.set(id, { ...stream, options: { ...stream.options, ...options } })
    return this.#describe(id)
  }

  claim(id: string, { node, epoch, seenFence, ...options }: ClaimOptions): Claimed {
    let { skip = 0 } = options
    const { lingering = false } = options
    const nowMs = this.#now()
    const stream = this.streams.get(id)
    if (stream === undefined) return { outcome: 'unknown' }
    const refuse = (outcome: 'stopped' | 'changed' | 'owned'): Claimed => ({
      outcome,
      stream: this.#describe(id)!,
    })
    const lingers = lingering && (stream.lingersUntilMs ?? 0) > nowMs
    if (stream.status === 'STOPPED' && !lingers) return refuse('stopped')
    const { owner, fence, status } = stream
    if (owner === node && stream.epoch === epoch) return this.#grant(id)
    if (fence !== seenFence) return refuse('changed')
    if (!this.leases.has(node)) throw unavailable()
    const isFree = owner === '' || owner === node || stream.isYielded
    const isKnown = isFree || this.#knowsNumbers(id, owner)
    const mayTake = isKnown || this.#isSettled(node, nowMs)
    if (!isFree && (this.leases.has(owner) || !mayTake)) return refuse('owned')
    let { first, media, discontinuity, server } = stream
    if (status !== 'STOPPED') {
      server = this.#server()
      if (!isKnown) skip = Math.max(skip, UNSEEN)
      if (stream.server !== server) skip += UNSEEN
      if (skip > 0 || first + this.#window(id).length !== media) {
        media += skip
        first = media
        discontinuity += Math.ceil(skip / 100)
        this.windows.delete(id)
      }
    }
    this.streams.set(id, {
      ...stream,
      fence: Math.max(fence + 1, nowMs),
      first,
      media,
      discontinuity,
      server,
      owner: node,
      epoch,
      serial: 0,
      isYielded: false,
      since: this.leases.get(node)!.sinceMs,
      status: status === 'STREAMING' ? 'INTERRUPTED' : status,
    })
    this.unclaimed.delete(id)
    if (status === 'STOPPED') {
      this.lingering.get(owner)?.delete(id)
      this.#lingeringOf(node).add(id)
    }
    return this.#grant(id)
  }

  advance(id: string, { node, fence }: Ownership, advance: Advance): Advanced {
    this.#now()
    const stream = this.streams.get(id)
    if (stream === undefined || stream.fence < fence) return { outcome: 'lost' }
    const { serial, entries, free, targets, renditions, leaseSinceMs } = advance
    const { status = stream.status, isYielded = false } = advance
    const isStale = stream.fence > fence || stream.owner !== node
    const isStopped = stream.status === 'STOPPED'
    const stopped = (): Advanced => ({ outcome: 'stopped', stream: this.#describe(id)! })
    if (isStale || (isStopped && (stream.lingersUntilMs ?? 0) <= this.#now())) {
      this.#raise(id, free)
      return isStale ? { outcome: 'stale', stream: this.#describe(id)! } : stopped()
    }
    if (serial <= stream.serial) {
      return isStopped ? stopped() : { outcome: 'accepted', free: freeOf(stream) }
    }
    let { first } = stream
    let values = [...this.#window(id)]
    for (const { mediaSequence, value } of entries) {
      const at = mediaSequence - first
      if (at > values.length) {
        values = []
        first = mediaSequence
      }
      if (at >= 0) values[mediaSequence - first] = value
    }
    const excess = Math.max(advance.first - first, values.length - MAX_ENTRIES, 0)
    const out = Math.min(excess, values.length)
    values = values.slice(out)
    first += out
    if (values.length === 0) first = Math.max(first, advance.first)
    const next: StoredStream = {
      ...stream,
      serial,
      status: isStopped ? stream.status : status,
      isYielded,
      first,
      media: Math.max(stream.media, free.media, first + values.length),
      discontinuity: Math.max(stream.discontinuity, free.discontinuity),
      ...(stream.targets === undefined && targets !== undefined && { targets }),
      ...(renditions !== undefined && { renditions }),
      ...(leaseSinceMs !== undefined &&
        leaseSinceMs !== stream.since &&
        this.leases.get(node)?.sinceMs === leaseSinceMs && {
          since: leaseSinceMs,
          server: this.#server(),
        }),
    }
    this.streams.set(id, next)
    this.#setWindow(id, values)
    return isStopped ? stopped() : { outcome: 'accepted', free: freeOf(next) }
  }

  restore(id: string, { node, fence }: Ownership, whole: Restoration): Advanced {
    this.#now()
    const old = this.streams.get(id)
    const { serial, status, epoch, run, startedAtMs, keyExpiresAtMs, options } = whole
    const { free, targets, renditions } = whole
    if (old !== undefined) {
      const isStopped = old.status === 'STOPPED' && old.run === run
      const isLower = old.fence > fence || (old.fence === fence && old.owner !== node)
      if (isStopped || isLower || old.run > run) {
        this.#raise(id, free)
        return { outcome: isStopped ? 'stopped' : 'stale', stream: this.#describe(id)! }
      }
    } else if (
      whole.awayMs > RETAIN_MS - CLOCKS_MS &&
      whole.awayMs < this.#now() - (this.bornMs ?? 0)
    ) {
      return { outcome: 'lost' }
    }
    const listed = whole.entries.slice(-MAX_ENTRIES)
    const first = listed[0]?.mediaSequence ?? whole.first
    const next: StoredStream = {
      run,
      fence,
      epoch,
      serial,
      status,
      startedAtMs,
      keyExpiresAtMs,
      options,
      first,
      owner: node,
      isYielded: false,
      since: '',
      expiresAtMs: Infinity,
      server: this.#server(),
      keyIssuedAtMs: old?.keyIssuedAtMs ?? 0,
      keys: { ...whole.keys, ...old?.keys },
      media: Math.max(free.media, old?.media ?? 0, first + listed.length),
      discontinuity: Math.max(free.discontinuity, old?.discontinuity ?? 0),
      ...(targets !== undefined && { targets }),
      ...(renditions !== undefined && { renditions }),
    }
    this.#unlist(id)
    this.unclaimed.delete(id)
    this.listed.add(id)
    this.streams.set(id, next)
    this.#setWindow(
      id,
      listed.map(({ value }) => value),
    )
    const { publishPort, ...others } = options
    if (publishPort !== undefined) {
      const port = JSON.stringify(publishPort)
      const other = this.#streamAt(port)
      if (other !== undefined && other !== id) this.streams.set(id, { ...next, options: others })
      else this.ports.set(port, id)
    }
    return { outcome: 'accepted', free: freeOf(next) }
  }

  stop(id: string, { reason, run, by, ...times }: StopOptions): Stopped {
    const { lingerMs, revoke = false } = times
    const nowMs = this.#now()
    this.#sweep(nowMs)
    const stream = this.streams.get(id)
    if (revoke) this.revocations.revokeAll(id, Math.max(nowMs, stream?.keyIssuedAtMs ?? 0))
    if (stream === undefined) return { outcome: 'unknown' }
    const answer = <O extends string>(outcome: O) => ({ outcome, stream: this.#describe(id)! })
    if (run !== undefined && stream.run !== run) return answer('changed')
    if (stream.status === 'STOPPED') return answer('stopped')
    const { owner, fence } = stream
    if (by !== undefined && (owner !== by.node || fence !== by.fence)) return answer('stale')
    const lingersUntilMs = nowMs + lingerMs
    const ended = { status: 'STOPPED', reason, stoppedAtMs: nowMs, lingersUntilMs } as const
    const expiresAtMs = nowMs + Math.max(lingerMs, fence === 0 ? CLOCKS_MS : RETAIN_MS)
    this.streams.set(id, { ...stream, ...ended, expiresAtMs })
    this.unclaimed.delete(id)
    this.stopped.set(id, lingersUntilMs)
    if (owner !== '') this.#lingeringOf(owner).add(id)
    const urls = stream.options['webhookUrls']
    const webhookUrls = urls === undefined ? '' : JSON.stringify(urls)
    this.outboxes.end({ streamId: id, run: stream.run }, { owner, reason, webhookUrls })
    this.nextExpiryMs = Math.min(this.nextExpiryMs, lingersUntilMs)
    return answer('stopped')
  }

  get(id: string): RegisteredStream | undefined {
    this.#now()
    return this.#describe(id)
  }

  list({
    after = '',
    limit,
    status = '',
  }: Page & { status?: StreamState | '' }): RegisteredStream[] {
    this.#sweep(this.#now())
    // A stopped stream's record may expire before it is swept.
    const statusOf = (id: string) => this.streams.get(id)?.status ?? 'STOPPED'
    const ids = [...this.listed].filter((id) => status === '' || statusOf(id) === status)
    return page(ids, after, limit).flatMap((id) => {
      const stream = this.#describe(id)
      if (stream === undefined) {
        this.#unlist(id)
        return []
      }
      const { ownerUrl: _1, keyFloorSec: _2, revokedKeys: _3, ...listed } = stream
      return [{ ...listed, keys: {} }]
    })
  }

  owned(
    node: string,
    { after = '', limit, lingering = false }: OwnedOptions,
  ): { id: string; fence: number }[] {
    this.#now()
    const ids = lingering ? [...this.#lingeringOf(node)] : this.#owned(node)
    return page(ids, after, limit).map((id) => ({ id, fence: this.streams.get(id)?.fence ?? 0 }))
  }

  orphans(node: string, { after = '', limit }: Page): Orphan[] {
    const nowMs = this.#now()
    this.#sweep(nowMs)
    if (!this.leases.has(node)) return []
    const isSettled = this.#isSettled(node, nowMs)
    const lapsed = this.#nodesByDeadline().filter(([, { deadlineMs }]) => deadlineMs <= nowMs)
    return lapsed.slice(0, 16).flatMap(([owner, { record }]) => {
      if (this.leases.has(owner)) return []
      const ids = page(this.#owned(owner), after, limit)
      for (const id of page([...this.#lingeringOf(owner)], after, limit)) {
        if ((this.streams.get(id)?.lingersUntilMs ?? 0) > nowMs) ids.push(id)
        else this.#lingeringOf(owner).delete(id)
      }
      if (ids.length === 0 && after === '') this.#forgetNode(owner)
      return ids.flatMap((id) => {
        const isGone = this.#knowsNumbers(id, owner)
        const { fence } = this.streams.get(id)!
        const orphan = { id, fence, owner: { ...record, node: owner }, isGone }
        return isGone || isSettled ? [orphan] : []
      })
    })
  }

  overdue(limit: number): { id: string; run: number }[] {
    const nowMs = this.#now()
    return [...this.unclaimed]
      .filter(([, atMs]) => atMs <= nowMs)
      .toSorted(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([id]) => ({ id, run: this.streams.get(id)?.run ?? 0 }))
  }

  listPorts(): RegisteredPort[] {
    this.#now()
    for (const port of this.ports.keys())
      if (this.#streamAt(port) === undefined) this.ports.delete(port)
    return [...this.ports]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([port, streamId]) => {
        const { allowFrom, encryption } = this.streams.get(streamId)!.options
        const options = {
          ...(allowFrom !== undefined && { allowFrom }),
          ...(encryption !== undefined && { encryption }),
        }
        return { port: Number(port), streamId, options }
      })
  }

  #checkPort(id: string, port: number, isProtected: boolean): void {
    const stream = this.streams.get(id)
    const running = stream?.status === 'STOPPED' ? undefined : stream
    const { publishPort: known = port, encryption, allowFrom } = running?.options ?? {}
    const isOwn = (each: unknown) => (this.#streamAt(String(each)) ?? id) === id
    // Another stream may have been given the port that the record still has.
    if (known !== port && isOwn(known)) throw PORT_REFUSALS.other(Number(known))
    if (!isOwn(port)) throw PORT_REFUSALS.taken(port)
    const isOpen = !isProtected && encryption === undefined && allowFrom === undefined
    if (isOpen) throw PORT_REFUSALS.open()
  }

  #streamAt(port: string): string | undefined {
    const id = this.ports.get(port) ?? ''
    const stream = this.streams.get(id)
    const has =
      stream?.status !== 'STOPPED' && JSON.stringify(stream?.options['publishPort']) === port
    return has ? id : undefined
  }

  #now(): number {
    this.expire()
    return this.#nowMs()
  }

  #knowsNumbers(id: string, owner: string): boolean {
    const since = this.gone.get(owner)
    return since !== undefined && since === this.streams.get(id)?.since
  }

  #isSettled(node: string, nowMs: number): boolean {
    const lease = this.leases.get(node)
    return lease !== undefined && nowMs - lease.sinceMs >= this.#rules.settleMs
  }

  #nodesByDeadline() {
    return [...this.nodes].toSorted(
      ([a, { deadlineMs: x }], [b, { deadlineMs: y }]) => x - y || (a < b ? -1 : 1),
    )
  }

  #owned(node: string): string[] {
    const streams = [...this.streams].filter(
      ([, { owner, status }]) => owner === node && status !== 'STOPPED',
    )
    return streams.map(([id]) => id)
  }

  #forgetNode(node: string): void {
    this.nodes.delete(node)
    this.gone.delete(node)
  }

  #sweep(nowMs: number): void {
    const over = this.#stoppedFirst().filter((id) => this.stopped.get(id)! <= nowMs)
    for (const id of over.slice(0, 10)) this.#forget(id)
  }

  /** Stopped streams that are listed, by the end of their linger. */
  #stoppedFirst(): string[] {
    return [...this.stopped]
      .toSorted(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1))
      .map(([id]) => id)
  }

  #forget(id: string): void {
    this.#unlist(id)
    const stream = this.streams.get(id)
    if (stream === undefined) return
    const { targets: _1, renditions: _2, ...rest } = stream
    this.streams.set(id, { ...rest, options: {}, keys: {} })
  }

  #lingeringOf(node: string): Set<string> {
    const ids = this.lingering.get(node) ?? new Set<string>()
    this.lingering.set(node, ids)
    return ids
  }

  #unlist(id: string): void {
    this.lingering.get(this.streams.get(id)?.owner ?? '')?.delete(id)
    this.listed.delete(id)
    this.stopped.delete(id)
  }

  #raise(id: string, { media, discontinuity }: Advance['free']): void {
    const stream = this.streams.get(id)!
    this.streams.set(id, {
      ...stream,
      media: Math.max(media, stream.media),
      discontinuity: Math.max(discontinuity, stream.discontinuity),
    })
  }

  #putKey(id: string, keyId: string, usedMs: number): void {
    const stream = this.streams.get(id)!
    const nowMs = this.#now()
    const latestMs = Math.max(usedMs, stream.keys[keyId] ?? 0)
    const keys = Object.entries({ ...stream.keys, [keyId]: latestMs })
      .filter(([each]) => timesOf(each).expiresMs > nowMs)
      .toSorted((a, b) => touchedMs(a) - touchedMs(b) || (a[0] < b[0] ? -1 : 1))
      .slice(-MAX_KEYS)
    this.streams.set(id, { ...stream, keys: Object.fromEntries(keys) })
  }

  #window(id: string): readonly unknown[] {
    return this.windows.get(id) ?? []
  }

  #setWindow(id: string, values: readonly unknown[]): void {
    if (values.length === 0) this.windows.delete(id)
    else this.windows.set(id, values)
  }

  #grant(id: string): { outcome: 'granted' } & Handover {
    const { first, targets, renditions, ...stream } = this.streams.get(id)!
    return {
      outcome: 'granted',
      stream: this.#describe(id)!,
      free: freeOf(stream),
      ...(targets !== undefined && { targets }),
      ...(renditions !== undefined && { renditions }),
      entries: this.#window(id).map((value, index) => ({ mediaSequence: first + index, value })),
    }
  }

  #describe(id: string): RegisteredStream | undefined {
    const stored = this.streams.get(id)
    if (stored === undefined) return undefined
    const { owner, serial: _1, first: _2, media: _3, discontinuity: _4, ...rest } = stored
    const { targets: _5, renditions: _6, expiresAtMs: _7, since: _8, server: _9, ...shown } = rest
    const { keyIssuedAtMs: _10, ...stream } = shown
    const url = this.nodes.get(owner)?.record.url
    const keyFloorSec = this.revocations.floorOf(id)
    const revokedKeys = this.revocations.keysOf(id)
    return {
      id,
      ...stream,
      ...(keyFloorSec > 0 && { keyFloorSec }),
      ...(revokedKeys.length > 0 && { revokedKeys }),
      ...(owner !== '' && { owner }),
      ...(typeof url === 'string' && url !== '' && { ownerUrl: url }),
    }
  }
}

/** Time at which a key was issued, or used for the last time. */
function touchedMs([keyId, usedMs]: readonly [string, number]): number {
  return Math.max(timesOf(keyId).issuedMs, usedMs)
}

function freeOf({ media, discontinuity }: { media: number; discontinuity: number }) {
  return { media, discontinuity }
}

function page(ids: readonly string[], after: string, limit: number): string[] {
  return ids
    .filter((id) => id > after)
    .toSorted((a, b) => (a < b ? -1 : 1))
    .slice(0, limit)
}
