/**
 * A bad network on loopback, between two real peers: a client sends to the relay's port, the relay to the target,
 * and back. Fates come from a seed (`impairment.ts`); only the moment of delivery depends on the machine.
 *
 *   client ─► relay.port ─[forward]──► one socket per client ─► target
 *   client ◄─ relay.port ◄─[backward]─ one socket per client ◄─ target
 *
 * @module
 */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { Impairment, type LinkCounters, type LinkOptions } from './impairment.ts'

/** Loopback addresses that may be used. */
export type Loopback = '127.0.0.1' | '::1'

const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024
const MAX_CLIENTS = 1024

export type Direction = 'forward' | 'backward'

export interface RelayOptions {
  /** UDP port on `host` that the relay stands in front of. */
  readonly targetPort: number
  /** Address of target, relay and clients; default 127.0.0.1. */
  readonly host?: Loopback
  /** The n-th client (from 0) gets the fates of `seed + n`. */
  readonly seed?: number
  /** Impairments from the clients to the target. */
  readonly forward?: LinkOptions
  /** Impairments from the target to the clients. */
  readonly backward?: LinkOptions
  /** Sees every datagram as it arrives at the relay, before its fate. */
  readonly tap?: (direction: Direction, datagram: Buffer) => void
  /** Alters a datagram in place, after `tap`; one for which it returns false is dropped and not counted. */
  readonly alter?: (direction: Direction, datagram: Buffer) => boolean
}

/** Sums over all clients of one direction. `blackholed` datagrams count nowhere else. */
export interface DirectionCounters extends LinkCounters {
  blackholed: number
}

export interface UdpRelay {
  /** Port that clients send to. */
  readonly port: number
  counters(direction: Direction): DirectionCounters
  /** Gives each client a new source port towards the target, as a NAT that lost its mappings. */
  rebind(): void
  /** Drops datagrams of both directions for this time; a second call replaces the rest of the first. */
  blackhole(durationMs: number): void
  /** Closes the sockets; drops datagrams that are still delayed. */
  close(): Promise<void>
}

/** Starts a relay on a free port. */
export function startRelay(options: RelayOptions): UdpRelay {
  return new Relay(options)
}

interface Client {
  readonly port: number
  readonly links: Readonly<Record<Direction, Link>>
  upstream: Socket
}

class Relay implements UdpRelay {
  readonly port: number
  readonly #host: Loopback
  readonly #front: Socket
  readonly #options: RelayOptions
  readonly #clients = new Map<number, Client>()
  readonly #delayLine = new DelayLine()
  readonly #blackholed = { forward: 0, backward: 0 }
  #darkUntilMs = 0

  constructor(options: RelayOptions) {
    this.#host = options.host ?? '127.0.0.1'
    this.#front = openSocket(this.#host)
    this.port = this.#front.address().port
    this.#options = options
    this.#front.on('message', (datagram, { port }) => {
      const client = this.#clients.get(port) ?? this.#admit(port)
      if (client === undefined) return
      this.#carry('forward', client, datagram, (bytes) =>
        client.upstream.send(bytes, options.targetPort, this.#host),
      )
    })
  }

  counters(direction: Direction): DirectionCounters {
    const sum = { ...new Impairment(0).counters, blackholed: this.#blackholed[direction] }
    for (const { links } of this.#clients.values()) {
      const { counters } = links[direction].impairment
      for (const name of Object.keys(counters) as (keyof LinkCounters)[]) {
        sum[name] += counters[name]
      }
    }
    return sum
  }

  rebind(): void {
    for (const client of this.#clients.values()) {
      client.upstream.close()
      client.upstream = openSocket(this.#host)
      this.#returnTo(client)
    }
  }

  blackhole(durationMs: number): void {
    this.#darkUntilMs = performance.now() + durationMs
  }

  async close(): Promise<void> {
    this.#delayLine.clear()
    const sockets = [this.#front, ...Array.from(this.#clients.values(), ({ upstream }) => upstream)]
    await Promise.all(sockets.map((socket) => new Promise<void>((done) => socket.close(done))))
  }

  #admit(port: number): Client | undefined {
    if (this.#clients.size === MAX_CLIENTS) return undefined
    const { forward, backward } = this.#options
    const seed = (this.#options.seed ?? 1) + this.#clients.size
    const links = {
      forward: new Link(new Impairment(seed, forward)),
      // Another sequence than forward's, and the same in every run.
      backward: new Link(new Impairment(~seed, backward)),
    }
    const client: Client = { port, links, upstream: openSocket(this.#host) }
    this.#returnTo(client)
    this.#clients.set(port, client)
    return client
  }

  #returnTo(client: Client): void {
    client.upstream.on('message', (datagram, { port }) => {
      if (port !== this.#options.targetPort) return
      this.#carry('backward', client, datagram, (bytes) =>
        this.#front.send(bytes, client.port, this.#host),
      )
    })
  }

  #carry(
    direction: Direction,
    client: Client,
    datagram: Buffer,
    send: (datagram: Buffer) => void,
  ): void {
    this.#options.tap?.(direction, datagram)
    if (this.#options.alter?.(direction, datagram) === false) return
    const nowMs = performance.now()
    if (nowMs < this.#darkUntilMs) {
      this.#blackholed[direction]++
      return
    }
    for (const { dueMs, bytes } of client.links[direction].push(datagram, nowMs)) {
      if (dueMs <= nowMs && this.#delayLine.isEmpty) send(bytes)
      else this.#delayLine.push(dueMs, () => send(bytes))
    }
  }
}

/** One direction of one client: schedules deliveries according to fates. */
class Link {
  readonly impairment: Impairment
  #lastDueMs = 0

  constructor(impairment: Impairment) {
    this.impairment = impairment
  }

  push(datagram: Buffer, nowMs: number): { dueMs: number; bytes: Buffer }[] {
    return this.impairment.push(datagram).map(({ delayMs, ordered, datagram: bytes }) => {
      if (!ordered) return { dueMs: nowMs + delayMs, bytes }
      this.#lastDueMs = Math.max(nowMs + delayMs, this.#lastDueMs)
      return { dueMs: this.#lastDueMs, bytes }
    })
  }
}

/** Runs actions at their millisecond, in the order pushed within one; a single timer while any is pending. */
class DelayLine {
  readonly #slots = new Map<number, (() => void)[]>()
  #nextSlot = 0
  #timer: NodeJS.Timeout | undefined

  get isEmpty(): boolean {
    return this.#slots.size === 0
  }

  push(dueMs: number, action: () => void): void {
    if (this.isEmpty) this.#nextSlot = Math.floor(performance.now())
    const slot = Math.max(Math.ceil(dueMs), this.#nextSlot)
    const actions = this.#slots.get(slot)
    if (actions === undefined) this.#slots.set(slot, [action])
    else actions.push(action)
    this.#timer ??= setTimeout(() => this.#turn(), 1)
  }

  clear(): void {
    this.#slots.clear()
    clearTimeout(this.#timer)
  }

  #turn(): void {
    this.#timer = undefined
    for (const nowMs = performance.now(); this.#nextSlot <= nowMs; this.#nextSlot++) {
      for (const action of this.#slots.get(this.#nextSlot) ?? []) action()
      this.#slots.delete(this.#nextSlot)
    }
    if (!this.isEmpty) this.#timer = setTimeout(() => this.#turn(), 1)
  }
}

/** Creates a socket that is bound when this returns. */
function openSocket(host: Loopback): Socket {
  const family = isIPv6(host) ? 6 : 4
  const socket = createSocket({
    type: `udp${family}`,
    recvBufferSize: SOCKET_BUFFER_BYTES,
    // Every address here is a literal; answering at once makes `bind` and each `send` synchronous.
    lookup: (hostname, _options, callback) => callback(null, hostname, family),
  })
  // Loopback reports a closed port as an error; to the peers it is loss like any other.
  socket.on('error', () => undefined)
  return socket.bind(0, host)
}
