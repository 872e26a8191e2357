/**
 * Receiver of SRTLA: stands between a socket and an `Endpoint`, and makes one peer of the lines of each sender.
 *
 *   line ─► registered? ─► KEEPALIVE: echo
 *                       ─► SRT: to the endpoint, from the address of the group; an ACK for every ten data packets
 *   endpoint ─► ACK: to all lines; all else: to the line of the latest packet
 *
 *   REG1 ─► REG2 with an id; nothing is stored
 *   REG2 ─► id of a group? valid? ─► room for a group? for a line? ─► REG3
 *
 * Inputs: `handleDatagram`, `transmit`, `tick` while `busy`.
 *
 * @module
 */
import { INDUCTION_LEVELS, networkOf, SourceLimiter } from '../handshake/source-limiter.ts'
import type { LineStats, SrtlaStats } from '../stats.ts'
import { ControlType, controlType, HEADER_BYTES, isControl } from '../wire/packet.ts'
import { GroupIds, type RemoteAddress } from './group-ids.ts'
import { LineGroup, type Line } from './line-group.ts'
import {
  decodeRegistration,
  decodeSenderReport,
  encodeSrtla,
  SrtlaType,
  srtlaType,
} from './packet.ts'

const MAX_GROUPS = 200

/**
 * Limits of new groups by the address that asked for them, which is proved. At `MAX_GROUPS` a newcomer takes the place of the
 * oldest group without a connection: at the limit of all, a sender that registers has a second to connect.
 */
const FOUNDING_LEVELS = [
  { groupOf: (address: string) => address, perSec: 2, burst: 16 },
  { groupOf: networkOf, perSec: 4, burst: 32 },
  { groupOf: () => 'all', perSec: 100 },
]

/** Interval at which lines and groups are looked at. */
const TICK_US = 250_000

interface SrtlaHost {
  /** Transmits a datagram to a line. */
  send(datagram: Buffer, port: number, address: string): void
  /** Passes on a packet of SRT, from the address of its group. */
  deliver(datagram: Buffer, port: number, address: string, nowUs: number): void
  /** Whether the group at this address has a connection. */
  isInUse(port: number, address: string): boolean
}

interface SrtlaReceiverOptions {
  readonly random: (bytes: number) => Buffer
  readonly host: SrtlaHost
}

export class SrtlaReceiver {
  readonly #host: SrtlaHost
  readonly #ids: GroupIds
  readonly #registrations = new SourceLimiter(INDUCTION_LEVELS)
  readonly #foundings = new SourceLimiter(FOUNDING_LEVELS)
  /** Groups by id, oldest first. */
  readonly #groups = new Map<string, LineGroup>()
  /** Groups and lines by address and port. */
  readonly #peers = new Map<string, LineGroup>()
  readonly #lines = new Map<string, Line>()
  readonly #counters = {
    datagrams: 0,
    founded: 0,
    refused: 0,
    limited: 0,
    unregistered: 0,
    malformed: 0,
  }
  #tickUs = -Infinity

  constructor({ random, host }: SrtlaReceiverOptions) {
    this.#host = host
    this.#ids = new GroupIds(random)
  }

  /** Whether `tick` has anything to wait for. */
  get busy(): boolean {
    return this.#groups.size > 0
  }

  get stats(): SrtlaStats {
    return { ...this.#counters, groups: this.#groups.size, lines: this.#lines.size }
  }

  /** @param datagram  from the socket; belongs to the endpoint if it is a packet of SRT */
  handleDatagram(datagram: Buffer, port: number, address: string, nowUs: number): void {
    const type = srtlaType(datagram)
    const remote = { address, port }
    const line = this.#lines.get(keyOf(remote))
    if (line !== undefined && type === undefined && datagram.length >= HEADER_BYTES) {
      this.#forward(line, datagram, nowUs)
      return
    }
    this.#counters.datagrams++
    if (type === SrtlaType.REG1 || type === SrtlaType.REG2) {
      const id = decodeRegistration(datagram)
      // A forged source port may be 0: sending a response to it would throw.
      if (id === undefined || port === 0) this.#counters.malformed++
      else if (type === SrtlaType.REG1) this.#invite(id, remote, nowUs)
      else this.#register(id, remote, nowUs)
    } else if (line === undefined) this.#counters.unregistered++
    else if (type === SrtlaType.KEEPALIVE) this.#echo(line, datagram, nowUs)
    else this.#counters.malformed++
  }

  #forward(line: Line, datagram: Buffer, nowUs: number): void {
    const { group } = line
    line.heardUs = nowUs
    group.latest = line
    const ack = line.count(datagram)
    if (ack !== undefined) this.#host.send(ack, line.port, line.address)
    this.#host.deliver(datagram, group.port, group.address, nowUs)
  }

  #echo(line: Line, datagram: Buffer, nowUs: number): void {
    if (!line.keepalives.take(nowUs)) {
      this.#counters.limited++
      return
    }
    line.heardUs = nowUs
    line.report = decodeSenderReport(datagram) ?? line.report
    this.#host.send(datagram, line.port, line.address)
  }

  #invite(request: Buffer, remote: RemoteAddress, nowUs: number): void {
    if (!this.#registrations.admit(remote.address, nowUs)) this.#counters.limited++
    else this.#send(SrtlaType.REG2, remote, this.#ids.issue(request, remote, nowUs))
  }

  #register(id: Buffer, remote: RemoteAddress, nowUs: number): void {
    const name = id.toString('latin1')
    const known = this.#groups.get(name)
    // An unknown id costs a hash.
    if (known === undefined && !this.#registrations.admit(remote.address, nowUs)) {
      this.#counters.limited++
      return
    }
    const founder = known ?? this.#ids.founderOf(id, nowUs)
    if (founder === undefined) {
      this.#send(SrtlaType.NGP, remote)
      return
    }
    const isJoined = this.#join(known ?? this.#found(name, founder, nowUs), remote, nowUs)
    if (!isJoined) this.#counters.refused++
    this.#send(isJoined ? SrtlaType.REG3 : SrtlaType.ERR, remote)
  }

  /** @returns undefined if there is no room */
  #found(name: string, founder: RemoteAddress, nowUs: number): LineGroup | undefined {
    if (!this.#foundings.admit(founder.address, nowUs) || !this.#makeRoom()) return undefined
    let { port } = founder
    while (this.#peers.has(keyOf({ ...founder, port }))) port = (port % 0xffff) + 1
    const group = new LineGroup({ ...founder, port }, nowUs)
    this.#groups.set(name, group)
    this.#peers.set(keyOf(group), group)
    this.#counters.founded++
    return group
  }

  /** @returns false if all groups are in use */
  #makeRoom(): boolean {
    if (this.#groups.size < MAX_GROUPS) return true
    for (const [name, group] of this.#groups) {
      if (this.#host.isInUse(group.port, group.address)) continue
      this.#remove(name, group)
      return true
    }
    return false
  }

  /** @returns false if the group has no room, or the address belongs to another group */
  #join(group: LineGroup | undefined, remote: RemoteAddress, nowUs: number): boolean {
    const key = keyOf(remote)
    const line = this.#lines.get(key) ?? group?.join(remote, nowUs)
    if (line === undefined || line.group !== group) return false
    line.heardUs = nowUs
    this.#lines.set(key, line)
    return true
  }

  #remove(name: string, group: LineGroup): void {
    this.#groups.delete(name)
    this.#peers.delete(keyOf(group))
    for (const line of group.lines) this.#lines.delete(keyOf(line))
  }

  /** Sends a packet of the endpoint to the lines of the group at this address. */
  transmit(datagram: Buffer, port: number, address: string): void {
    const group = this.#peers.get(keyOf({ address, port }))
    if (group?.latest === undefined) return
    const isAck = isControl(datagram) && controlType(datagram) === ControlType.ACK
    for (const line of isAck ? group.lines : [group.latest]) {
      this.#host.send(datagram, line.port, line.address)
    }
  }

  /** @returns lines of the group at this address */
  linesOf(port: number, address: string): LineStats[] {
    const { lines = [] } = this.#peers.get(keyOf({ address, port })) ?? {}
    return lines.map((line) => line.stats())
  }

  /** Removes silent lines, and groups without lines; to be called every 250 ms or more often. */
  tick(nowUs: number): void {
    if (nowUs < this.#tickUs) return
    this.#tickUs = nowUs + TICK_US
    for (const [name, group] of this.#groups) {
      for (const line of group.tick(nowUs)) this.#lines.delete(keyOf(line))
      if (group.isGone(nowUs)) this.#remove(name, group)
    }
  }

  #send(
    type: Parameters<typeof encodeSrtla>[0],
    { address, port }: RemoteAddress,
    id?: Buffer,
  ): void {
    this.#host.send(encodeSrtla(type, id), port, address)
  }
}

function keyOf({ address, port }: RemoteAddress): string {
  return `${address} ${port}`
}
