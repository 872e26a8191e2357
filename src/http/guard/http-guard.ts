/**
 * What strangers may cost an HTTP server: connections, requests that wait, memory in sockets, and time at its end.
 *
 *     connection ──► ConnectionTable: admitted, or 503 and closed
 *     bytes ──► RequestGate: one request at a time
 *     reply ──► ReaderProgress, held memory: looked at once a second, the slow are cut
 *
 * @module
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import type { Logger } from '../../logger.ts'
import type { PlaybackSource } from '../../contract/streams.ts'
import { ConnectionTable } from './connection-table.ts'
import { GuardedConnection } from './guarded-connection.ts'
import { guardedReplies, type GuardedReply } from './guarded-reply.ts'
import { GuardLog, type GuardCounts } from './guard-log.ts'
import { heldBytes, slowestOver } from './held-memory.ts'
import { maxOpenConnections } from './open-files.ts'
import { MAX_REFUSED, RefusedConnections } from './refused-connections.ts'
import { sourceOf } from './source-address.ts'
import { TurnQueue } from './turn-queue.ts'

export interface HttpLimits {
  /** There are fewer where the limit of open files does not allow them. */
  readonly maxConnections: number
  /** Memory of what waits in sockets and the cache does not hold. */
  readonly maxBufferedMib: number
}

export interface HttpGuardOptions {
  readonly limits: HttpLimits
  /** What it still has costs no memory where it waits. */
  readonly playback: PlaybackSource
  readonly clock: Pick<Clock, 'nowUs'>
  readonly logger: Logger
}

export interface HttpGuardStats extends GuardCounts {
  readonly connections: number
  /** Memory that waits in sockets, without what the cache holds; seen once a second. */
  readonly heldBytes: number
}

/** Part of all connections that one source may have. */
const SOURCE_SHARE = 1 / 4

/** Longer than the keep-alive timeout and a request: only who sends bytes that are no request comes to it. */
const MAX_IDLE_MS = 75_000

const SWEEP_MS = 1000

/** 16 take 1 ms, as long as the replies are small. */
const MAX_REQUESTS_PER_TURN = 16

/** The kernel copies them in 1 to 3 ms. Before, 600 connections that asked for a segment each held the loop for 10 ms a turn. */
const MAX_BODY_BYTES_PER_TURN = 4 * 1024 * 1024

/** `ServerResponse` goes into the options of the server; `protect` before it listens, `endWithin` when it closes. */
export class HttpGuard {
  readonly ServerResponse: typeof ServerResponse
  readonly #options: HttpGuardOptions
  readonly #maxConnections: number
  readonly #table: ConnectionTable<Socket>
  readonly #connections = new Map<Socket, GuardedConnection>()
  readonly #refused = new RefusedConnections()
  readonly #turns = new TurnQueue(MAX_REQUESTS_PER_TURN)
  readonly #log: GuardLog
  #heldBytes = 0

  constructor(options: HttpGuardOptions) {
    this.#options = options
    this.#log = new GuardLog(options.logger)
    const { maxConnections } = options.limits
    this.#maxConnections = Math.min(maxConnections, maxOpenConnections())
    if (this.#maxConnections < maxConnections) {
      options.logger.warn(
        `HTTP_MAX_CONNECTIONS is ${maxConnections}, open files allow ${this.#maxConnections}. ` +
          'Viewers beyond get 503. Raise LimitNOFILE or ulimit -n.',
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

  /** Asked by whoever shows figures; costs nothing. */
  stats(): HttpGuardStats {
    return { ...this.#log.counts, connections: this.#table.size, heldBytes: this.#heldBytes }
  }

  /** Stands between the server and its connections from now on. */
  protect(server: Server): void {
    const [serve] = server.listeners('connection') as [(socket: Socket) => void]
    server.off('connection', serve).on('connection', (socket: Socket) => {
      if (!this.#admit(socket)) return
      serve.call(server, socket)
      this.#connections.set(socket, new GuardedConnection(socket, this.#turns))
    })
    // Beyond these Node closes what it accepts without making a socket of it.
    server.maxConnections = this.#maxConnections + MAX_REFUSED
    server.on('drop', () => this.#log.count('refusedAll'))
    const sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref()
    server.once('close', () => clearInterval(sweeper))
  }

  /** Cuts, after `ms`, what is still connected to the server, which closes and accepts nothing any more. */
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
      this.#log.count(admission.limit === 'all' ? 'refusedAll' : 'refusedSource')
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
    this.#heldBytes = heldBytes(holders.filter(({ socket }) => !socket.destroyed))
    this.#log.report(nowMs)
  }

  /** With a reset: the kernel forgets what it has of the reply as well. */
  #cut(socket: Socket, kind: keyof GuardCounts): void {
    this.#log.count(kind)
    socket.resetAndDestroy()
  }
}
