/**
 * What the registry knows of nodes and streams, and how its scripts answer.
 *
 * @module
 */
import type { StopReason, StreamState } from '../../api/records.ts'
import type { SequenceNumbers } from '../../hls/cut/segment-plan.ts'
import type { TargetDurations } from '../../hls/target-durations.ts'

/** A node as others see it. */
export interface NodeRecord {
  readonly node: string
  /** URL at which other nodes reach it. */
  readonly url: string
  /** Anything else that a node tells of itself, such as its load. */
  readonly [name: string]: unknown
}

export interface RegisteredNode extends NodeRecord {
  /** Whether its lease holds; otherwise it has streams to be adopted. */
  readonly isLive: boolean
  /** Number of running streams that it owns. */
  readonly ownedStreams: number
  /** End of its lease by the clock of Redis, in milliseconds since 1970. */
  readonly deadlineMs: number
  /** Time since its last renewal, in milliseconds, while the lease holds. */
  readonly silentMs: number
}

/** Options that a stream was started with, by name; `decodeOptions` checks them. */
export type UncheckedOptions = Readonly<Record<string, unknown>>

export interface RegisteredStream {
  readonly id: string
  /** Identifies what is between a start and a stop; a later run has a higher number. */
  readonly run: number
  readonly status: StreamState
  readonly reason?: StopReason
  readonly owner?: string
  /** How to reach the owner; undefined without one, or once it is forgotten. */
  readonly ownerUrl?: string
  /** Number of the latest claim; 0 without any. */
  readonly fence: number
  readonly epoch: string
  /** Whether another node may claim the stream although its owner lives. */
  readonly isYielded: boolean
  readonly options: UncheckedOptions
  readonly startedAtMs: number
  readonly keyExpiresAtMs: number
  /** Time of issue in seconds since 1970 below which stream keys are revoked; not in lists. */
  readonly keyFloorSec?: number
  /** Ids of stream keys that are revoked alone; not in lists, and absent without any. */
  readonly revokedKeys?: readonly string[]
  /** Stream keys that were issued or used in this run: time of the latest use in ms, 0 without any, by key id; empty in lists. */
  readonly keys: Readonly<Record<string, number>>
  /** Time of issue of the keys of this call, in seconds since 1970: of `start` alone. */
  readonly issuedAtSec?: number
  readonly stoppedAtMs?: number
  /** End of the time for which a stopped stream is still served. Its record outlasts it, so that no key revives it. */
  readonly lingersUntilMs?: number
}

/** Port that a stream has to itself, for an encoder that sends no stream key. */
export interface RegisteredPort {
  readonly port: number
  readonly streamId: string
  /** Those that say who may publish there. */
  readonly options: UncheckedOptions
}

/** Segments at one boundary in all renditions; the registry does not look into it. */
export interface WindowEntry {
  readonly mediaSequence: number
  readonly value: unknown
}

/** A stream as its next owner continues it, with its playlists. */
export interface Handover {
  readonly stream: RegisteredStream
  readonly free: SequenceNumbers
  readonly targets?: TargetDurations
  readonly renditions?: unknown
  readonly entries: readonly WindowEntry[]
}

type Fields = ReadonlyMap<string, string>

/** A word and what belongs to it: see the scripts. */
export type Answer = readonly [word: string, ...rest: unknown[]]

/** @returns undefined if the answer has no record */
export function decodeStream(id: string, [, record, node]: Answer): RegisteredStream | undefined {
  return Array.isArray(record)
    ? describe(id, pairs(record as string[]), typeof node === 'string' ? node : '')
    : undefined
}

/** @param answer  of `claim.lua` */
export function decodeHandover(id: string, answer: Answer): Handover {
  const [, record, node, list] = answer as [string, string[], string, string[]]
  const fields = pairs(record)
  const first = numberOf(fields, 'first')
  const targets = fields.get('targets')
  const renditions = fields.get('renditions')
  return {
    stream: describe(id, fields, node),
    free: { media: numberOf(fields, 'media'), discontinuity: numberOf(fields, 'discontinuity') },
    ...(targets !== undefined && { targets: JSON.parse(targets) as TargetDurations }),
    ...(renditions !== undefined && { renditions: JSON.parse(renditions) as unknown }),
    entries: list.map((entry, index) => ({
      mediaSequence: first + index,
      value: JSON.parse(entry) as unknown,
    })),
  }
}

/** @param list  id, record and so on */
export function decodeList(list: readonly unknown[]): RegisteredStream[] {
  return chunks(list, 2).map(([id, record]) => describe(String(id), pairs(record as string[]), ''))
}

/** @param list  of `list-nodes.lua` */
export function decodeNodes(list: readonly unknown[]): RegisteredNode[] {
  return chunks(list, 6).map(([node, record, isLive, ownedStreams, deadlineMs, silentMs]) => ({
    ...decodeNode(String(node), String(record)),
    isLive: isLive === 1,
    ownedStreams: Number(ownedStreams),
    deadlineMs: Number(deadlineMs),
    silentMs: Number(silentMs),
  }))
}

/** @param list  of `ports.lua` */
export function decodePorts(list: readonly unknown[]): RegisteredPort[] {
  return (chunks(list, 4) as string[][]).map(([port, streamId = '', ...options]) => {
    const [allowFrom, encryption] = options.map((text) =>
      text === '' ? undefined : (JSON.parse(text) as unknown),
    )
    return {
      port: Number(port),
      streamId,
      options: {
        ...(allowFrom !== undefined && { allowFrom }),
        ...(encryption !== undefined && { encryption }),
      },
    }
  })
}

export function decodeNode(node: string, record: string): NodeRecord {
  const value = record === '' ? {} : (JSON.parse(record) as Partial<NodeRecord>)
  return { ...value, node, url: value.url ?? '' }
}

/** Splits a flat list into rows. */
export function chunks(list: readonly unknown[], size: number): unknown[][] {
  const rows: unknown[][] = []
  for (let at = 0; at < list.length; at += size) rows.push(list.slice(at, at + size))
  return rows
}

function pairs(list: readonly string[]): Fields {
  return new Map(chunks(list, 2) as [string, string][])
}

function describe(id: string, fields: Fields, node: string): RegisteredStream {
  const owner = fields.get('owner') ?? ''
  const reason = fields.get('reason')
  const own = (prefix: string) =>
    [...fields]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(2), JSON.parse(value) as unknown])
  const revokedKeys = fields.get('revokedKeys')
  const { url } = decodeNode(owner, node)
  return {
    id,
    run: numberOf(fields, 'run'),
    status: fields.get('status') as StreamState,
    ...(reason !== undefined && { reason: reason as StopReason }),
    ...(owner !== '' && { owner }),
    ...(url !== '' && { ownerUrl: url }),
    fence: numberOf(fields, 'fence'),
    epoch: fields.get('epoch') ?? '',
    isYielded: fields.get('yielded') === '1',
    options: Object.fromEntries(own('s.')) as UncheckedOptions,
    keys: Object.fromEntries(own('k.')) as Record<string, number>,
    startedAtMs: numberOf(fields, 'startedAt'),
    keyExpiresAtMs: numberOf(fields, 'keyExpiresAt'),
    ...(fields.has('keyFloor') && { keyFloorSec: numberOf(fields, 'keyFloor') }),
    ...(revokedKeys !== undefined && { revokedKeys: revokedKeys.split(' ') }),
    ...(fields.has('issuedAtSec') && { issuedAtSec: numberOf(fields, 'issuedAtSec') }),
    ...(fields.has('stoppedAt') && { stoppedAtMs: numberOf(fields, 'stoppedAt') }),
    ...(fields.has('lingersUntil') && { lingersUntilMs: numberOf(fields, 'lingersUntil') }),
  }
}

function numberOf(fields: Fields, name: string): number {
  return Number(fields.get(name) ?? 0)
}
