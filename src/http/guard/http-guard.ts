/**
 * Limits on the cost of HTTP clients: connections, waiting requests, memory in sockets, and time to close.
 *
 *     connection ──► ConnectionTable: admitted, or 503 and closed
 *     bytes ──► RequestGate: one request at a time
 *     reply ──► ReaderProgress, held memory: checked once a second, the slowest are disconnected
 *
 * @module
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import type { HttpCounters, HttpReport } from '../../contract/service-report.ts'
import type { Logger } from '../../logger.ts'
import type { PlaybackSource } from '../../contract/streams.ts'
import { ConnectionTable } from './connection-table.ts'
import { GuardedConnection } from './guarded-connection.ts'
import { guardedReplies, type GuardedReply } from './guarded-reply.ts'
import { GuardLog } from './guard-log.ts'
import { heldBytes, slowestOver } from './held-memory.ts'
import { maxOpenConnections } from './open-files.ts'
import { MAX_REFUSED, RefusedConnections } from './refused-connections.ts'
import { sourceOf } from './source-address.ts'
import { TurnQueue } from './turn-queue.ts'

export interface HttpLimits {
  /** Maximum number of open connections; the limit of open files caps it. */
  readonly maxConnections: number
  /** Maximum memory of replies that wait in sockets, in MiB. Segments that are in the cache do not count. */
  readonly maxBufferedMib: number
}

export interface HttpGuardOptions {
  readonly limits: HttpLimits
  /** Source of cached files, whose memory does not count while a reply waits. */
  readonly playback: PlaybackSource
  readonly clock: Pick<Clock, 'nowUs'>
  readonly logger: Logger
}

/** Share of all connections that one source may have. */
const SOURCE_SHARE = 1 / 4

/**
 * Maximum idle time. It exceeds keep-alive plus request timeout (70 s), so it closes only connections whose clients
 * send bytes, but no complete request.
 */
const MAX_IDLE_MS = 75_000

const SWEEP_MS = 1000

/** Maximum number of requests parsed per turn of the event loop: 16 small replies take 1 ms. */
const MAX_REQUESTS_PER_TURN = 16

/**
 * Maximum size of large bodies per turn of the event loop: the kernel copies 4 MiB in 1 to 3 ms. Without the limit, 600
 * requests for a segment held the loop for 10 ms per turn.
 */
const MAX_BODY_BYTES_PER_TURN = 4 * 1024 * 1024

/** Calling order: create the server with `ServerResponse`, `protect` it before it listens, `endWithin` to close. */
export class HttpGuard {
  readonly ServerResponse: typeof ServerResponse
  readonly #options: HttpGuardOptions
  readonly #maxConnections: number
  readonly #table: ConnectionTable<Socket>
  readonly #connections = new Map<Socket, GuardedConnection>()
  readonly #refused = new RefusedConnections()
  readonly #turns = new TurnQueue(MAX_REQUESTS_PER_TURN)
  readonly #log: GuardLog
  #bufferedBytes = 0

  constructor(options: HttpGuardOptions) {
    this.#options = options
    this.#log = new GuardLog(options.logger)
    const { maxConnections } = options.limits
    this.#maxConnections = Math.min(maxConnections, maxOpenConnections())
    if (this.#maxConnections < maxConnections) {
      options.logger.warn(
        `HTTP_MAX_CONNECTIONS is ${maxConnections}, open files allow ${this.#maxConnections}. ` +
          'Further viewers get 503. Raise LimitNOFILE or ulimit -n.',
      )
    }
    this.#table = new ConnectionTable({
      maxConnections: this.#maxConnections,
      maxPerSource: Math.ceil(this.#maxConnections * SOURCE_SHARE),
    })
    const watcher = {
      begin: (reply: GuardedReply) => this.#begin(reply),
      finish: (reply: GuardedReply) => this.#finish(reply),
    }
    this.ServerResponse = guardedReplies(watcher, new TurnQueue(MAX_BODY_BYTES_PER_TURN))
  }

  report(): HttpReport {
    const { size: connections } = this.#table
    return { connections, bufferedBytes: this.#bufferedBytes, ...this.#log.counters }
  }

  /** Puts the guard between the server and its connections. */
  protect(server: Server): void {
    const [serve] = server.listeners('connection') as [(socket: Socket) => void]
    server.off('connection', serve).on('connection', (socket: Socket) => {
      if (!this.#admit(socket)) return
      serve.call(server, socket)
      this.#connections.set(socket, new GuardedConnection(socket, this.#turns))
    })
    // Node closes connections beyond this number without creating a socket.
    server.maxConnections = this.#maxConnections + MAX_REFUSED
    server.on('drop', () => this.#log.count('refused'))
    const sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref()
    server.once('close', () => clearInterval(sweeper))
  }

  /** Disconnects the remaining clients of a closing server after `ms` milliseconds. */
  endWithin(server: Server, ms: number): void {
    const deadline = setTimeout(() => {
      this.#refused.destroy()
      for (const socket of this.#connections.keys()) socket.destroy()
    }, ms).unref()
    server.once('close', () => clearTimeout(deadline))
  }

  get #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  #admit(socket: Socket): boolean {
    const source = sourceOf(socket.remoteAddress ?? '')
    const admission = this.#table.admit(socket, source, this.#nowMs)
    if (!admission.admitted) {
      this.#log.count(admission.limit === 'all' ? 'refused' : 'refusedPerAddress')
      this.#refused.refuse(socket, this.#nowMs)
      return false
    }
    if (admission.displaced !== undefined) this.#cut(admission.displaced, 'displaced')
    socket.once('close', () => {
      this.#table.remove(socket)
      this.#connections.delete(socket)
    })
    return true
  }

  #begin(reply: GuardedReply): void {
    const { socket } = reply.req
    this.#table.markBusy(socket)
    this.#connections.get(socket)?.gate.begin(reply)
  }

  #finish(reply: GuardedReply): void {
    const { socket } = reply.req
    const gate = this.#connections.get(socket)?.gate
    gate?.finish()
    if (gate?.replies.length === 0) this.#table.markIdle(socket, this.#nowMs)
  }

  #sweep(): void {
    const nowMs = this.#nowMs
    this.#refused.sweep(nowMs)
    for (const socket of this.#table.idleFor(MAX_IDLE_MS, nowMs)) this.#cut(socket, 'expired')
    const holders = []
    for (const connection of this.#connections.values()) {
      if (connection.gate.replies.length === 0) continue
      const { socket } = connection
      if (connection.isSlow(nowMs)) this.#cut(socket, 'slow')
      else holders.push({ socket, ...connection.holder(this.#options.playback, nowMs) })
    }
    for (const { socket } of slowestOver(
      holders,
      this.#options.limits.maxBufferedMib * 1024 * 1024,
    )) {
      this.#cut(socket, 'overMemory')
    }
    this.#bufferedBytes = heldBytes(holders.filter(({ socket }) => !socket.destroyed))
    this.#log.report(this.#options.clock.nowUs())
  }

  /** Disconnects with a reset, so that the kernel discards its part of the reply as well. */
  #cut(socket: Socket, reason: keyof HttpCounters): void {
    this.#log.count(reason)
    socket.resetAndDestroy()
  }
}
