/**
 * Listening side of one UDP socket, without the socket: dispatches datagrams to the handshake and to connections, and
 * drives their timers.
 *
 * Inputs: `handleDatagram`, `decide` after each `EndpointHost.request`, `tick` every 10 ms while `busy`, `close`.
 *
 * @module
 */
import type { Attempt } from '../handshake/attempt.ts'
import {
  HandshakeResponder,
  type Acceptance,
  type ResponderHost,
  type ResponderOptions,
  type Decision,
} from '../handshake/handshake-responder.ts'
import { ReceiveQueue } from '../receive/receive-queue.ts'
import type { LineStats, ListenerStats } from '../stats.ts'
import { GroupType } from '../wire/extension.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  MAX_DATAGRAM_BYTES,
} from '../wire/packet.ts'
import { Connection } from './connection.ts'
import { groupKey, type SocketGroup, type SocketGroups } from './socket-group.ts'
import { SocketTable } from './socket-table.ts'
import { ReadProgress } from '../read-progress.ts'
import type { Datagram } from '../transmitter.ts'

/**
 * Sending to a caller: buffer for 1 s, the least age of a dropped packet, at 80 Mbit/s, and a bandwidth that bursts do not
 * exceed.
 */
const SEND_BUFFER_PACKETS = 8192
const MAX_SEND_BPS = 1e9

/** Interval of ticks for idle connections, and of `HandshakeResponder.sweep`. */
const IDLE_TICK_US = 250_000

interface EndpointOptions extends Omit<ResponderOptions, 'host' | 'acceptsGroups'> {
  /** Groups of all endpoints of the listener, and the port of this one; absent: members of groups are rejected. */
  readonly groups?: { readonly registry: SocketGroups; readonly localPort: number }
  /** Silence of a peer after which its connection ends with `timeout`. */
  readonly idleTimeoutUs: number
  /** Present if peers are bonded: lines of the one at this address. */
  readonly linesOf?: (port: number, address: string) => readonly LineStats[]
  readonly host: EndpointHost
}

/** Owner of the socket; receives the outputs of the endpoint. */
interface EndpointHost extends Pick<ResponderHost, 'request' | 'refuse' | 'expire'> {
  transmit(datagram: Datagram, port: number, address: string): void
  /** A peer has a connection, or is to have one soon, until `forget`, which comes some time after its end. */
  connect?(port: number, address: string): void
  forget?(port: number, address: string): void
  /** Reports an exception thrown by a sink or by this code; its connection then ends. */
  fail(error: unknown): void
}

export class Endpoint {
  readonly #options: EndpointOptions
  readonly #host: EndpointHost
  readonly #responder: HandshakeResponder
  readonly #connections: SocketTable<Connection>
  /** Connections that need a tick every 10 ms. */
  readonly #active = new Set<Connection>()
  readonly #counters = {
    datagrams: 0,
    connectionDatagrams: 0,
    malformed: 0,
    unknownSocketIds: 0,
    wrongSources: 0,
    controlPacketsDropped: 0,
    failures: 0,
  }
  readonly #progress: ReadProgress
  #idleTickUs: number

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#host = options.host
    this.#connections = new SocketTable(options.random)
    this.#progress = new ReadProgress(options.nowUs)
    this.#idleTickUs = options.nowUs
    this.#responder = new HandshakeResponder({
      ...options,
      acceptsGroups: options.groups !== undefined,
      host: {
        transmit: (datagram, port, address) => this.#host.transmit(datagram, port, address),
        request: (attempt) => this.#host.request(attempt),
        refuse: (peer, code) => this.#host.refuse?.(peer, code),
        expire: (attempt) => this.#host.expire(attempt),
        connect: (attempt, acceptance, nowUs) => this.#connect(attempt, acceptance, nowUs),
        forget: (localSocketId) => this.#forget(localSocketId),
        lapse: (port, address) => this.#host.forget?.(port, address),
      },
    })
  }

  /** Whether a tick is due every 10 ms: there are attempts, connections or rejections. */
  get busy(): boolean {
    return this.#responder.busy
  }

  get connectionCount(): number {
    return this.#connections.values().filter(({ closed }) => !closed).length
  }

  /** Whether the peer at this address has a connection. */
  isConnected(port: number, address: string): boolean {
    return this.#connections
      .values()
      .some(
        ({ closed, remotePort, remoteAddress }) =>
          !closed && remotePort === port && remoteAddress === address,
      )
  }

  get stats(): ListenerStats {
    const { rejects, malformed, ...handshakes } = this.#responder.counters
    return {
      ...handshakes,
      ...this.#counters,
      rejects: { ...rejects },
      malformed: malformed + this.#counters.malformed,
    }
  }

  /** @param datagram  owned by the endpoint from now on; payloads pushed to sinks are views into it */
  handleDatagram(datagram: Buffer, port: number, address: string, nowUs: number): void {
    this.#counters.datagrams++
    // A forged source port may be 0: sending a response to it would throw.
    if (datagram.length < HEADER_BYTES || datagram.length > MAX_DATAGRAM_BYTES || port === 0) {
      this.#counters.malformed++
      return
    }
    const socketId = destinationSocketId(datagram)
    if (socketId === 0) {
      if (isControl(datagram) && controlType(datagram) === ControlType.HANDSHAKE) {
        this.#responder.handleDatagram(datagram, port, address, nowUs)
      } else this.#counters.malformed++
      return
    }
    const connection = this.#connections.get(socketId)
    if (connection === undefined) {
      this.#counters.unknownSocketIds++
    } else if (connection.remotePort !== port || connection.remoteAddress !== address) {
      this.#counters.wrongSources++
    } else {
      this.#counters.connectionDatagrams++
      connection.handleDatagram(datagram, nowUs)
      if (connection.busy) this.#active.add(connection)
    }
  }

  /** Takes a caller whose cookie another listener at the port has verified, see `HandshakeResponder.expect`. */
  expect(port: number, address: string, nowUs: number): void {
    if (this.#responder.expect(port, address, nowUs)) this.#host.connect?.(port, address)
  }

  /** Accepts or rejects an attempt as the host decided; no effect once the attempt has expired. */
  decide(attempt: Attempt, decision: Decision, nowUs: number): void {
    this.#responder.decide(attempt, decision, nowUs)
  }

  #connect(attempt: Attempt, acceptance: Acceptance, nowUs: number) {
    const { remoteAddress, remotePort, handshake, agreement } = attempt
    const { linesOf } = this.#options
    const delivery = {
      handshakeTimestampUs: attempt.timestampUs,
      handshakeArrivedUs: attempt.arrivedUs,
      latencyUs: agreement.latencyMs * 1000,
    }
    const { windowPackets } = agreement
    const { initialSequenceNumber } = handshake
    const { sink } = acceptance
    const queueOptions = { initialSequenceNumber, delivery, windowPackets, sink, nowUs }
    const group = this.#join(attempt, queueOptions)
    const localSocketId = this.#connections.allocate()
    const connection = new Connection({
      remoteAddress,
      remotePort,
      peerSrtVersion: agreement.srtVersion,
      peerSocketId: handshake.socketId,
      initialSequenceNumber,
      latencyUs: delivery.latencyUs,
      windowPackets,
      marksRetransmissions: agreement.marksRetransmissions,
      idleTimeoutUs: this.#options.idleTimeoutUs,
      progress: this.#progress,
      startUs: attempt.arrivedUs,
      startTimestampUs: 0,
      nowUs,
      queue: group?.queue ?? new ReceiveQueue(queueOptions),
      sink: group?.createMemberSink() ?? sink,
      acksPromptly: group?.type === GroupType.BACKUP,
      receives: acceptance.sends !== true,
      ...(linesOf && { lines: () => linesOf(remotePort, remoteAddress) }),
      ...(acceptance.decryption && { decryption: acceptance.decryption }),
      ...(acceptance.sends === true && {
        sending: {
          bufferPackets: SEND_BUFFER_PACKETS,
          peerWindowPackets: handshake.flowWindowPackets,
          peerLatencyUs: agreement.peerLatencyMs * 1000,
          peerRepeatsNaks: agreement.repeatsNaks,
          maxBandwidthBps: MAX_SEND_BPS,
          ...(acceptance.encryption && { encryption: acceptance.encryption }),
        },
      }),
      send: (datagram) => this.#host.transmit(datagram, remotePort, remoteAddress),
      onMalformed: () => this.#counters.malformed++,
      onExcess: () => this.#counters.controlPacketsDropped++,
      onFailure: (error) => {
        this.#counters.failures++
        this.#host.fail(error)
        group?.close()
      },
    })
    this.#connections.set(localSocketId, connection)
    if (connection.busy) this.#active.add(connection)
    this.#host.connect?.(remotePort, remoteAddress)
    return { localSocketId, connection, ...(group && { groupId: group.id }) }
  }

  #join(
    attempt: Attempt,
    options: Omit<Parameters<SocketGroups['join']>[1], 'type'>,
  ): SocketGroup | undefined {
    const { groups } = this.#options
    const { group } = attempt.agreement
    if (groups === undefined || group === undefined) return undefined
    const key = groupKey(attempt, groups.localPort)
    return groups.registry.join(key, { ...options, type: group.type })
  }

  #forget(localSocketId: number): void {
    const { remotePort, remoteAddress } = this.#connections.get(localSocketId)!
    this.#connections.delete(localSocketId)
    this.#host.forget?.(remotePort, remoteAddress)
  }

  /** @param drained  whether the socket was found empty at some time since the previous tick */
  tick(nowUs: number, drained = true): void {
    if (this.#progress.tick(nowUs, drained)) return
    for (const connection of this.#active) {
      connection.tick(nowUs)
      if (!connection.busy) this.#active.delete(connection)
    }
    if (nowUs < this.#idleTickUs) return
    this.#idleTickUs = nowUs + IDLE_TICK_US
    for (const connection of this.#connections.values()) {
      if (!this.#active.has(connection)) connection.tick(nowUs)
    }
    this.#responder.sweep(nowUs)
  }

  /**
   * Rejects waiting and later callers, sends SHUTDOWN to every peer and ends every sink.
   *
   * @param finishUs  see `SrtConnection.finish`; default 0, at once
   */
  close(nowUs: number, finishUs = 0): void {
    this.#responder.close(nowUs)
    for (const connection of this.#connections.values()) connection.finish(finishUs)
  }
}
