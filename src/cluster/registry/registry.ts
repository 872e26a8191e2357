/**
 * Registry of the cluster: which streams run, which node owns each, and what a new owner needs to go on. The protocol is
 * in the Lua scripts; this file encodes their arguments and decodes their answers.
 *
 * @module
 */
import { isStreamId } from '../../auth/stream-id.ts'
import { MillraceError } from '../../errors.ts'
import type { StopReason, StreamState } from '../../api/records.ts'
import type { SequenceNumbers } from '../../hls/cut/segment-plan.ts'
import type { TargetDurations } from '../../hls/target-durations.ts'
import { PORT_REFUSALS } from '../../service/stream-ports.ts'
import type { Redis } from './redis.ts'
import {
  chunks,
  decodeHandover,
  decodeList,
  decodeNode,
  decodeNodes,
  decodePorts,
  decodeStream,
  type Answer,
  type Handover,
  type NodeRecord,
  type RegisteredNode,
  type RegisteredPort,
  type RegisteredStream,
  type UncheckedOptions,
  type WindowEntry,
} from './registered.ts'
import { runScript, type ScriptName } from './scripts.ts'
import { unavailable } from './unavailable.ts'

/** Rules of a registry, in Redis or in memory. */
export interface RegistryRules {
  /** Clock that sequence numbers of new streams come from, so that they never go back under one URL. */
  readonly sequenceClock: SequenceClock
  /** Time without renewal after which a node counts as dead, in milliseconds. */
  readonly leaseMs?: number
  /** Time for which a node must have held its lease before it adopts streams, in milliseconds; default: two leases. */
  readonly settleMs?: number
  /** Max number of running streams for each node; as many more may be stopped and listed. */
  readonly maxStreams?: number
  /**
   * Max number of streams with revoked keys; above that, the oldest revocations count for all streams. The same of keys that
   * are revoked alone; above that, older keys of the stream of one are refused with it.
   */
  readonly maxFloors?: number
}

export interface RegistrySettings extends RegistryRules {
  readonly redis: Pick<Redis, 'command'>
}

/** See `SequenceStarts`. */
export interface SequenceClock {
  readonly originMs: number
  readonly mediaPerSec: number
  readonly discontinuitiesPerSec: number
}

const LEASE_MS = 2000
const MAX_STREAMS = 100_000
const MAX_FLOORS = 100_000
const MAX_NODES = 1000
/** Time for which an owner that was away learns that its stream was stopped: it gives up what is unknown after that. */
export const RETAIN_MS = 2 * 60 * 60 * 1000

/** Bounds of what one call may write. Webhook URLs alone may have 32 KiB. */
const MAX_OPTIONS_CHARACTERS = 65_536
const MAX_NODE_CHARACTERS = 4096
const MAX_HEAD_CHARACTERS = 65_536
const MAX_ENTRY_CHARACTERS = 16_384
export const MAX_ENTRIES = 2000

export interface ClaimOptions {
  readonly node: string
  /** Identifies this claim: one that is sent again is granted once. */
  readonly epoch: string
  /** Fence of the stream as the node has read it. */
  readonly seenFence: number
  /**
   * Numbers to skip because they may have been used: 1,000 by a node that does not know of the stream that it owns. The
   * registry itself skips those of another owner that it has lost sight of. A stopped stream skips none.
   */
  readonly skip?: number
  /** Whether to claim a stopped stream, too, as long as it lingers. Default: false. */
  readonly lingering?: boolean
}

export type Claimed =
  | ({ readonly outcome: 'granted' } & Handover)
  /** `owned`: by a node whose lease holds, or has lapsed just now; `changed`: the fence is another one by now. */
  | { readonly outcome: 'owned' | 'changed' | 'stopped'; readonly stream: RegisteredStream }
  | { readonly outcome: 'unknown' }

/** Right of an owner to write. */
export interface Ownership {
  readonly node: string
  readonly fence: number
}

/**
 * What the owner has done since its last acknowledged call, with all that was not acknowledged. A number is reserved when its
 * segment opens; the owner goes on without Redis, with numbers that are not reserved.
 */
export interface Advance {
  /** Grows with each call under a fence, from 1. A call that Redis has seen already, or a later one, has no effect. */
  readonly serial: number
  /** Segments that have opened, as the gaps that they are if they never close, and segments that have closed. */
  readonly entries: readonly WindowEntry[]
  /** Number of the first segment of the window. */
  readonly first: number
  /** Lowest numbers that no segment has, opened ones included. */
  readonly free: SequenceNumbers
  readonly targets?: TargetDurations
  readonly renditions?: unknown
  readonly status?: Exclude<StreamState, 'STOPPED'>
  /**
   * Whether another node may claim the stream although this one lives. Once this is accepted, this one opens segments
   * only under a new claim.
   */
  readonly isYielded?: boolean
  /** Since when the node's lease had held, as the last `renewNode` before this call has answered. */
  readonly leaseSinceMs?: number
}

export type Advanced =
  /** `free` is higher than the owner's if viewers of another owner have seen higher numbers: it skips them. */
  | { readonly outcome: 'accepted'; readonly free: SequenceNumbers }
  /** Another node owns the stream, or it has been stopped: this one closes its encoder. */
  | { readonly outcome: 'stale' | 'stopped'; readonly stream: RegisteredStream }
  /** Redis has lost the claim: the owner calls `restore`, which answers this if the stream may have been stopped. */
  | { readonly outcome: 'lost' }

/** A whole stream, from its owner. */
export interface Restoration extends Advance {
  readonly status: Exclude<StreamState, 'STOPPED'>
  readonly epoch: string
  readonly run: number
  readonly startedAtMs: number
  readonly keyExpiresAtMs: number
  readonly options: UncheckedOptions
  /** See `RegisteredStream`. */
  readonly keys: RegisteredStream['keys']
  /** Time since the registry was last known to have the stream, in milliseconds. */
  readonly awayMs: number
}

export interface StartOptions {
  readonly options: UncheckedOptions
  /** Options that keep the value that they were given first, until the stream stops. */
  readonly kept?: UncheckedOptions
  /** Expiry of the key that is issued. */
  readonly keyExpiresAtMs: number
  /** Time of issue of the key, by the clock of the node. Default: that of Redis. */
  readonly keyIssuedAtMs?: number
  /** Whether a key for the backup encoder is issued as well. Default: false. */
  readonly backup?: boolean
  /** Port that the stream is to have to itself until it stops. Default: none, or the one that it has. */
  readonly publishPort?: number
  /** Whether the options or the settings say who may publish at `publishPort`. Default: those of the running stream must. */
  readonly isProtected?: boolean
}

export interface StopOptions {
  readonly reason: StopReason
  /** Run to stop; default: whichever runs. */
  readonly run?: number
  /** The owner, if it is the one that stops the stream; default: somebody else does. */
  readonly by?: Ownership
  /** Revokes the stream keys issued so far, even of an unknown stream. Default: false. */
  readonly revoke?: boolean
  readonly lingerMs: number
}

export type Stopped =
  | { readonly outcome: 'stopped' | 'changed' | 'stale'; readonly stream: RegisteredStream }
  | { readonly outcome: 'unknown' }

export interface OwnedOptions {
  /** Id before the first one. Default: from the start. */
  readonly after?: string
  readonly limit: number
  /** Whether to list stopped streams that linger, in place of running ones. Default: false. */
  readonly lingering?: boolean
}

export interface Orphan {
  readonly id: string
  readonly fence: number
  readonly owner: NodeRecord
  /**
   * Whether the registry has all numbers that the owner has used, since it was known to be gone when its lease had never
   * lapsed. Otherwise it may live, cut off from Redis, and go on: a claim skips the numbers that it may use.
   */
  readonly isGone: boolean
}

/** All calls throw `REGISTRY_UNAVAILABLE`; what was asked may then have been done, and may be asked again. */
export class Registry {
  readonly #redis: Pick<Redis, 'command'>
  readonly #rules: Required<RegistryRules>

  constructor({ redis, ...rules }: RegistrySettings) {
    this.#redis = redis
    this.#rules = completeRules(rules)
  }

  /** Renews the lease of a node; call it several times a lease. @returns since when it has held, by the clock of Redis */
  async renewNode({ node, ...record }: NodeRecord): Promise<number> {
    const text = bounded(JSON.stringify(record), MAX_NODE_CHARACTERS)
    return Number(await this.#run('renew-node', [node, text, this.#rules.leaseMs]))
  }

  /**
   * Ends the lease of a node, so that others adopt its streams at once: a node that goes away, or one whose URL refuses
   * connections. With `deadlineMs` a lease that has been renewed since then goes on. @returns whether no lease is left
   */
  async leaveNode(
    node: string,
    { deadlineMs }: { readonly deadlineMs?: number } = {},
  ): Promise<boolean> {
    return (await this.#run('leave-node', [node, deadlineMs ?? ''])) === 1
  }

  /** Nodes whose lease holds, and those that have streams to be adopted. */
  async listNodes(): Promise<RegisteredNode[]> {
    return decodeNodes(
      (await this.#run('list-nodes', [MAX_NODES, this.#rules.leaseMs])) as unknown[],
    )
  }

  async listLiveNodes(): Promise<RegisteredNode[]> {
    return (await this.listNodes()).filter(({ isLive }) => isLive)
  }

  /**
   * Starts a stream, or changes the options of a running one: those that are not given stay.
   *
   * @throws {MillraceError} `TOO_MANY_STREAMS`, `BODY_INVALID` for a port that another stream has, or nobody protects
   */
  async start(
    id: string,
    { options, kept = {}, keyExpiresAtMs, keyIssuedAtMs, ...asked }: StartOptions,
  ): Promise<RegisteredStream> {
    const { backup = false, publishPort, isProtected = false } = asked
    const { originMs, mediaPerSec, discontinuitiesPerSec } = this.#rules.sequenceClock
    const clock = [originMs, mediaPerSec, discontinuitiesPerSec]
    const keptFields = encodeOptions(kept)
    const fields = [keptFields.length / 2, ...keptFields, ...encodeOptions(options)]
    const issued = [keyIssuedAtMs ?? '', backup ? 1 : 0]
    const port = [publishPort ?? '', isProtected ? 1 : 0]
    const args = [
      id,
      keyExpiresAtMs,
      this.#rules.maxStreams,
      ...clock,
      ...issued,
      ...port,
      ...fields,
    ]
    const answer = await this.#answer('start', args)
    const [word, known] = answer
    if (word === 'OTHER') throw PORT_REFUSALS.other(Number(known))
    if (word === 'TAKEN') throw PORT_REFUSALS.taken(publishPort!)
    if (word === 'OPEN') throw PORT_REFUSALS.open()
    const stream = decodeStream(id, answer)
    if (stream === undefined) throw new MillraceError('TOO_MANY_STREAMS')
    return stream
  }

  /** Changes options of a stream; undefined: no such stream. */
  async update(id: string, options: UncheckedOptions): Promise<RegisteredStream | undefined> {
    return decodeStream(id, await this.#answer('update', [id, ...encodeOptions(options)]))
  }

  async claim(id: string, { node, epoch, seenFence, ...options }: ClaimOptions): Promise<Claimed> {
    const { skip = 0, lingering = false } = options
    const limits = [skip, this.#rules.settleMs, lingering ? 1 : 0]
    const answer = await this.#answer('claim', [id, node, epoch, seenFence, ...limits])
    const [word] = answer
    if (word === 'OK') return { outcome: 'granted', ...decodeHandover(id, answer) }
    // A node that has not renewed its lease would lose the stream at once.
    if (word === 'UNLEASED') throw unavailable()
    const stream = decodeStream(id, answer)
    if (stream === undefined) return { outcome: 'unknown' }
    const outcome = word === 'STOPPED' ? 'stopped' : word === 'OWNED' ? 'owned' : 'changed'
    return { outcome, stream }
  }

  /** Takes what the owner has done, at once for a whole segment boundary. */
  async advance(id: string, { node, fence }: Ownership, advance: Advance): Promise<Advanced> {
    const { serial, status = '', isYielded = false, first, free, entries } = advance
    const numbers = [first, free.media, free.discontinuity]
    const tables = [encodeOptional(advance.targets), encodeOptional(advance.renditions)]
    const claim = [id, node, fence, serial, status, isYielded ? 1 : 0]
    const listed = entries.flatMap(({ mediaSequence, value }) => [
      mediaSequence,
      encodeEntry(value),
    ])
    const since = advance.leaseSinceMs ?? ''
    const args = [...claim, ...numbers, ...tables, MAX_ENTRIES, since, ...listed]
    const answer = await this.#answer('advance', args)
    return decodeAdvanced(id, answer)
  }

  /** Gives the stream of an owner back to a Redis that has lost it, unless that knows better, or has forgotten a stop. */
  async restore(id: string, { node, fence }: Ownership, stream: Restoration): Promise<Advanced> {
    const { serial, status, free, entries, epoch, run, startedAtMs, keyExpiresAtMs } = stream
    const listed = entries.slice(-MAX_ENTRIES)
    const first = listed[0]?.mediaSequence ?? stream.first
    const numbers = [first, free.media, free.discontinuity]
    const tables = [encodeOptional(stream.targets), encodeOptional(stream.renditions)]
    const claim = [id, node, fence, serial, status]
    const past = [epoch, run, startedAtMs, keyExpiresAtMs]
    const times = [stream.awayMs, RETAIN_MS, listed.length]
    const window = listed.map(({ value }) => encodeEntry(value))
    const options = encodeOptions(stream.options)
    const keys = Object.entries(stream.keys).flat()
    const lists = [...window, keys.length / 2, ...keys, ...options]
    const args = [...claim, ...numbers, ...tables, ...past, ...times, ...lists]
    const answer = await this.#answer('restore', args)
    return decodeAdvanced(id, answer)
  }

  /** Stops a stream from any node. */
  async stop(id: string, { reason, lingerMs, ...options }: StopOptions): Promise<Stopped> {
    const { run = '', by, revoke = false } = options
    const times = [lingerMs, Math.max(lingerMs, RETAIN_MS)]
    const revocation = [revoke ? 1 : 0, this.#rules.maxFloors]
    const who = [by?.node ?? '', by?.fence ?? '']
    const answer = await this.#answer('stop', [id, reason, run, ...who, ...times, ...revocation])
    const stream = decodeStream(id, answer)
    if (stream === undefined) return { outcome: 'unknown' }
    if (answer[0] === 'OK') return { outcome: 'stopped', stream }
    return { outcome: answer[0] === 'STALE' ? 'stale' : 'changed', stream }
  }

  /** Notes that an encoder has connected with a key. */
  async useKey(id: string, keyId: string): Promise<void> {
    await this.#run('use-key', [id, keyId])
  }

  /**
   * Revokes one key, even of an unknown stream.
   *
   * @returns the stream; undefined for an unknown one
   */
  async revokeKey(id: string, keyId: string): Promise<RegisteredStream | undefined> {
    return decodeStream(id, await this.#answer('revoke-key', [id, keyId, this.#rules.maxFloors]))
  }

  /** @returns undefined for a stream that was never started, or whose stop has been forgotten */
  async get(id: string): Promise<RegisteredStream | undefined> {
    return decodeStream(id, await this.#answer('get', [id]))
  }

  /** Streams in the order of their ids, stopped ones while they linger. */
  async list({
    after = '',
    limit,
    status = '',
  }: {
    readonly after?: string
    readonly limit: number
    readonly status?: StreamState | ''
  }): Promise<RegisteredStream[]> {
    return decodeList((await this.#run('list', [after, limit, status])) as unknown[])
  }

  /** Running streams that a node owns, or stopped ones that linger, whether it knows of them or not. */
  async owned(node: string, { after = '', limit, lingering = false }: OwnedOptions) {
    const list = (await this.#run('owned', [node, after, limit, lingering ? 1 : 0])) as unknown[]
    return chunks(list, 2).map(([id, fence]) => ({ id: String(id), fence: Number(fence) }))
  }

  /**
   * Streams of nodes without a lease, running or lingering. As long as `node` has not held its own for `settleMs`, only those
   * with `isGone`.
   *
   * @param options.limit  for each owner, of running streams and of lingering ones
   */
  async orphans(
    node: string,
    { after = '', limit }: { readonly after?: string; readonly limit: number },
  ): Promise<Orphan[]> {
    const list = await this.#run('orphans', [node, this.#rules.settleMs, limit, after])
    return chunks(list as unknown[], 5).map(([id, fence, owner, record, gone]) => ({
      id: String(id),
      fence: Number(fence),
      owner: decodeNode(String(owner), String(record)),
      isGone: gone === 1,
    }))
  }

  /** READY streams without an owner whose keys have expired: they end at the node that claims them. */
  async overdue(limit: number): Promise<{ id: string; run: number }[]> {
    const list = (await this.#run('overdue', [limit])) as unknown[]
    return chunks(list, 2).map(([id, run]) => ({ id: String(id), run: Number(run) }))
  }

  /** Ports that running streams have to themselves. */
  async listPorts(): Promise<RegisteredPort[]> {
    return decodePorts((await this.#run('ports', [])) as unknown[])
  }

  /** @param args  begin with the id of the stream */
  async #answer(name: ScriptName, args: readonly (string | number)[]): Promise<Answer> {
    if (!isStreamId(args[0])) throw new MillraceError('STREAM_NOT_FOUND')
    return (await this.#run(name, args)) as Answer
  }

  #run(name: ScriptName, args: readonly (string | number)[]): Promise<unknown> {
    return runScript(this.#redis, name, args)
  }
}

/** Fills in the defaults. */
export function completeRules({
  sequenceClock,
  leaseMs = LEASE_MS,
  settleMs = 2 * leaseMs,
  maxStreams = MAX_STREAMS,
  maxFloors = MAX_FLOORS,
}: RegistryRules): Required<RegistryRules> {
  return { sequenceClock, leaseMs, settleMs, maxStreams, maxFloors }
}

function decodeAdvanced(id: string, answer: Answer): Advanced {
  const [word, media, discontinuity] = answer
  if (word === 'OK') {
    const free = { media: Number(media), discontinuity: Number(discontinuity) }
    return { outcome: 'accepted', free }
  }
  const stream = decodeStream(id, answer)
  if (stream === undefined) return { outcome: 'lost' }
  return { outcome: word === 'STOPPED' ? 'stopped' : 'stale', stream }
}

function encodeOptions(options: UncheckedOptions): string[] {
  const fields = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [name, JSON.stringify(value)],
  )
  bounded(fields.join(''), MAX_OPTIONS_CHARACTERS)
  return fields
}

function encodeEntry(value: unknown): string {
  return bounded(JSON.stringify(value), MAX_ENTRY_CHARACTERS)
}

function encodeOptional(value: unknown): string {
  return value === undefined ? '' : bounded(JSON.stringify(value), MAX_HEAD_CHARACTERS)
}

function bounded(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  throw new RangeError(`${text.length} characters for the registry, at most ${maxCharacters}`)
}
