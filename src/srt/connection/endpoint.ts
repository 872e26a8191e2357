/**
 * A listening socket without the socket: sorts datagrams to handshakes and connections, and keeps them all in time.
 *
 * Inputs: `handleDatagram`, `decide` for each attempt the host was asked about, `tick` every 10 ms while `busy`, `close`.
 *
 * @module
 */
import { Connection } from './connection.ts'
import {
  HandshakeResponder,
  type Acceptance,
  type Attempt,
  type Verdict,
} from '../handshake/handshake-responder.ts'
import type { Terms } from '../handshake/negotiation.ts'
import { SocketTable } from './socket-table.ts'
import { StallDetector } from './stall.ts'
import { IDLE_CHECK_US } from '../timers.ts'
import type { ListenerStats } from '../types.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  MAX_DATAGRAM_BYTES,
} from '../wire/packet.ts'

export interface EndpointOptions extends Terms {
  readonly idleTimeoutUs: number
  /** How long the host may think about a caller. */
  readonly acceptTimeoutUs: number
  readonly random: (bytes: number) => Buffer
  readonly nowUs: number
  readonly host: EndpointHost
}

/** Whoever owns the socket. */
export interface EndpointHost {
  transmit(datagram: Buffer, port: number, address: string): void
  /** A caller waits for `Endpoint.decide`. */
  request(attempt: Attempt): void
  /** The attempt is over without a decision; one that still comes has no effect. */
  expire(attempt: Attempt): void
  /** A sink threw, or this code did; the connection is closed. */
  fail(error: unknown): void
}

export class Endpoint {
  readonly #options: EndpointOptions
  readonly #host: EndpointHost
  readonly #responder: HandshakeResponder
  readonly #connections: SocketTable<Connection>
  /** Those with data under way; the others are looked at less often. */
  readonly #active = new Set<Connection>()
  readonly #counters = {
    malformed: 0,
    unknownSocketIds: 0,
    wrongSources: 0,
    controlPacketsDropped: 0,
    failures: 0,
  }
  readonly #stalls: StallDetector
  #idleCheckUs: number

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#host = options.host
    this.#connections = new SocketTable(options.random)
    this.#stalls = new StallDetector(options.nowUs)
    this.#idleCheckUs = options.nowUs
    this.#responder = new HandshakeResponder({
      ...options,
      host: {
        transmit: (datagram, port, address) => this.#host.transmit(datagram, port, address),
        request: (attempt) => this.#host.request(attempt),
        expire: (attempt) => this.#host.expire(attempt),
        connect: (attempt, acceptance, nowUs) => this.#connect(attempt, acceptance, nowUs),
        forget: (localSocketId) => this.#connections.delete(localSocketId),
      },
    })
  }

  /** There is something that a tick may move. */
  get busy(): boolean {
    return this.#responder.busy
  }

  get connectionCount(): number {
    return this.#responder.connections.filter(({ closed }) => !closed).length
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

  /** @param datagram  the endpoint's to keep; payloads handed to sinks are views into it */
  handleDatagram(datagram: Buffer, port: number, address: string, nowUs: number): void {
    // Port 0 can be forged and not be answered: the socket would throw.
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
      connection.handleDatagram(datagram, nowUs)
      if (connection.busy) this.#active.add(connection)
    }
  }

  /** The host's word on an attempt. */
  decide(attempt: Attempt, verdict: Verdict, nowUs: number): void {
    this.#responder.decide(attempt, verdict, nowUs)
  }

  #connect(attempt: Attempt, acceptance: Acceptance, nowUs: number) {
    const { remoteAddress, remotePort, handshake, agreement } = attempt
    const localSocketId = this.#connections.allocate()
    const connection = new Connection({
      remoteAddress,
      remotePort,
      peerSrtVersion: agreement.srtVersion,
      peerSocketId: handshake.socketId,
      initialSequenceNumber: handshake.initialSequenceNumber,
      delivery: {
        handshakeTimestampUs: attempt.timestampUs,
        handshakeArrivedUs: attempt.arrivedUs,
        latencyUs: agreement.latencyMs * 1000,
      },
      windowPackets: agreement.windowPackets,
      marksRetransmissions: agreement.marksRetransmissions,
      idleTimeoutUs: this.#options.idleTimeoutUs,
      startUs: attempt.arrivedUs,
      startTimestampUs: 0,
      nowUs,
      ...acceptance,
      send: (datagram) => this.#host.transmit(datagram, remotePort, remoteAddress),
      onMalformed: () => this.#counters.malformed++,
      onExcess: () => this.#counters.controlPacketsDropped++,
      onFailure: (error) => {
        this.#counters.failures++
        this.#host.fail(error)
      },
    })
    this.#connections.set(localSocketId, connection)
    return { localSocketId, connection }
  }

  tick(nowUs: number): void {
    if (this.#stalls.shouldSkip(nowUs)) return
    for (const connection of this.#active) {
      connection.tick(nowUs)
      if (!connection.busy) this.#active.delete(connection)
    }
    if (nowUs < this.#idleCheckUs) return
    this.#idleCheckUs = nowUs + IDLE_CHECK_US
    for (const connection of this.#responder.connections) {
      if (!this.#active.has(connection)) connection.tick(nowUs)
    }
    this.#responder.sweep(nowUs)
  }

  /** Sends SHUTDOWN to every peer, ends every sink, and turns newcomers away. */
  close(nowUs: number): void {
    this.#responder.close(nowUs)
    for (const connection of this.#responder.connections) connection.close()
  }
}
