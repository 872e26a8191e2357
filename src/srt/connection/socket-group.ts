/**
 * Socket groups of libsrt ("bonding"): connections of one sender that share its sequence numbers, so that a packet may come
 * over any of them. In a broadcast group each packet is sent over all; in a backup group over one, until it fails.
 *
 *   member ─► Connection: keys, ACK, NAK ─┐
 *   member ─► Connection: keys, ACK, NAK ─┴─► ReceiveQueue: in order, each packet once ─► sink
 *
 * To the sink, a group is one connection: it opens with the first member and ends with the last.
 *
 * @module
 */
import { createHmac } from 'node:crypto'
import type { Attempt } from '../handshake/attempt.ts'
import { ReceiveQueue, type ReceiveQueueOptions } from '../receive/receive-queue.ts'
import type { SrtStats } from '../stats.ts'
import type { CloseReason, PayloadSink, SrtConnection } from '../types.ts'
import { GROUP_ID_BIT } from '../wire/extension.ts'
import type { Connection } from './connection.ts'
import { MAX_SOCKET_ID } from './socket-table.ts'

/** Max number of lines of a group: SRTLA has as many. */
const MAX_MEMBERS = 8

/** Max time since the latest data packet of a member that is in use, compared with that of the group. */
const IN_USE_US = 1_000_000

/** Counts of the members that add up to those of the group; the others are those of the queue. */
const SUMMED = [
  'pktRcvRetransTotal',
  'pktRcvUndecryptTotal',
  'pktRcvFilterExtraTotal',
  'pktSentACKTotal',
  'pktSentNAKTotal',
  'pktNAKWithheldTotal',
] as const

type Totals = Readonly<Record<(typeof SUMMED)[number], number>>

interface SocketGroupOptions extends Omit<ReceiveQueueOptions, 'sink'> {
  /** This side's id of the group. */
  readonly id: number
  /** A `GroupType`. */
  readonly type: number
  readonly sink: PayloadSink
  /** The last member has ended. */
  readonly onEnd: () => void
}

/** Calling order: `createMemberSink` for each member, whose connection opens and ends it. */
export class SocketGroup implements SrtConnection {
  readonly id: number
  readonly type: number
  readonly latencyMs: number
  readonly queue: ReceiveQueue
  readonly #options: SocketGroupOptions
  /** Members by number of their line, oldest first. */
  readonly #members = new Map<number, Connection>()
  /** The oldest member; after the end, the last one. */
  #oldest: Connection | undefined
  /** Counts of the members that have ended. */
  #endedTotals: Totals = sumOf([])

  constructor(options: SocketGroupOptions) {
    this.id = options.id
    this.type = options.type
    this.latencyMs = options.delivery.latencyUs / 1000
    this.queue = new ReceiveQueue(options)
    this.#options = options
  }

  get isFull(): boolean {
    return this.#members.size === MAX_MEMBERS
  }

  createMemberSink(): Pick<PayloadSink, 'open' | 'end'> {
    let line = 1
    while (this.#members.has(line)) line++
    return {
      open: (connection) => this.#open(line, connection as Connection),
      end: (reason) => this.#end(line, reason),
    }
  }

  #open(line: number, member: Connection): void {
    this.#members.set(line, member)
    if (this.#oldest !== undefined) return
    this.#oldest = member
    this.#options.sink.open(this)
  }

  #end(line: number, reason: CloseReason): void {
    const member = this.#members.get(line)
    if (member === undefined) return
    this.#members.delete(line)
    this.#endedTotals = sumOf([this.#endedTotals, member.stats()])
    const [oldest] = this.#members.values()
    this.#oldest = oldest ?? member
    if (oldest !== undefined) return
    this.#options.onEnd()
    this.#options.sink.end(reason)
  }

  get remoteAddress(): string {
    return this.#oldest!.remoteAddress
  }

  get remotePort(): number {
    return this.#oldest!.remotePort
  }

  get peerVersion(): string {
    return this.#oldest!.peerVersion
  }

  get lastReceivedUs(): number {
    return this.#latest(({ lastReceivedUs }) => lastReceivedUs)
  }

  get lastDataUs(): number {
    return this.#latest(({ lastDataUs }) => lastDataUs)
  }

  #latest(timeOf: (member: Connection) => number): number {
    let latestUs = timeOf(this.#oldest!)
    for (const member of this.#members.values()) latestUs = Math.max(latestUs, timeOf(member))
    return latestUs
  }

  /** The oldest member that brings data packets, after the end the last one: the others may be idle. */
  get #inUse(): Connection {
    const sinceUs = this.lastDataUs - IN_USE_US
    return (
      [...this.#members.values()].find(({ lastDataUs }) => lastDataUs >= sinceUs) ?? this.#oldest!
    )
  }

  stats(): SrtStats {
    const members = [...this.#members]
    return {
      ...this.#inUse.stats(),
      ...sumOf([this.#endedTotals, ...members.map(([, member]) => member.stats())]),
      ...this.queue.stats(),
      msRcvTsbPdDelay: this.latencyMs,
      lines: members.map(([line, member]) => ({ line, ...member.lineStats() })),
    }
  }

  /** @returns false: a group sends nothing */
  send(): boolean {
    return false
  }

  senderStats(): undefined {
    return undefined
  }

  finish(): void {
    this.close()
  }

  close(): void {
    for (const member of this.#members.values()) member.close()
  }
}

function sumOf(totals: readonly Totals[]): Totals {
  const sums = SUMMED.map((name) => [name, totals.reduce((sum, each) => sum + each[name], 0)])
  return Object.fromEntries(sums) as Totals
}

/**
 * Groups of a listener, whose members may call any of its addresses and ports. A group exists as long as a connection: a
 * caller that is not accepted leaves nothing behind.
 */
export class SocketGroups {
  readonly #secret: Buffer
  readonly #groups = new Map<string, SocketGroup>()

  constructor(random: (bytes: number) => Buffer) {
    this.#secret = random(32)
  }

  /** @param key  see `groupKey` */
  find(key: string): SocketGroup | undefined {
    return this.#groups.get(key)
  }

  /** @returns the group with this key; a new one with these options if there is none */
  join(key: string, options: Omit<SocketGroupOptions, 'id' | 'onEnd'>): SocketGroup {
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const onEnd = () => this.#groups.delete(key)
    const group = new SocketGroup({ ...options, id: this.#idOf(key), onEnd })
    this.#groups.set(key, group)
    return group
  }

  /** The same id as ever for a key: libsrt refuses a response with another than the first for its group. */
  #idOf(key: string): number {
    const hash = createHmac('sha256', this.#secret).update(key).digest()
    return GROUP_ID_BIT | (hash.readUInt32BE() & MAX_SOCKET_ID)
  }
}

/**
 * What members of a group have in common: a sender may choose the id of another's group, and does not know the other's
 * stream id. Where the port says which stream it is, the port.
 */
export function groupKey({ agreement, streamId }: Attempt, localPort: number): string {
  return `${agreement.group?.groupId} ${streamId === '' ? localPort : ''} ${streamId}`
}
