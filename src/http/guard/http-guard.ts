/**
 * Limits on the cost of HTTP clients: connections, waiting requests, memory in sockets, and time to close.
 *
 *     connection ──► ConnectionTable: admitted, or 503 and closed ──► TlsHandshakes, with TLS
 *     bytes ──► RequestGate: one request at a time, or guardStreams: a limited number
 *     response ──► ReaderProgress, held memory: checked once a second, the slowest are disconnected
 *
 * @module
 */
import type { Server, ServerResponse } from 'node:http'
import type {
  Http2SecureServer,
  Http2ServerResponse,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { Server as TlsServer, type TLSSocket } from 'node:tls'
import type { Clock } from '../../timing/clock.ts'
import type { HttpCounters, HttpReport } from './http-report.ts'
import type { Logger } from '../../logger.ts'
import { limitPieces, PieceAllowance } from './body-pieces.ts'
import { ConnectionTable, type ConnectionLimits } from './connection-table.ts'
import { GuardedConnection } from './guarded-connection.ts'
import {
  guardedHttp2Responses,
  hasSentRequest,
  type GuardedHttp2Response,
} from './guarded-http2-response.ts'
import { guardedResponses, type GuardedResponse } from './guarded-response.ts'
import { GuardedSession } from './guarded-session.ts'
import { GuardLog } from './guard-log.ts'
import { heldBytes, slowestOver, type UncachedMemory } from './held-memory.ts'
import { guardStreams } from './http2-streams.ts'
import { stopReading, takeListener, tcpSocketOf } from './node-insides.ts'
import { maxOpenConnections } from './open-files.ts'
import { MAX_REFUSED, RefusedConnections } from './refused-connections.ts'
import { sourceOf } from './source-address.ts'
import { TlsHandshakes } from './tls-handshakes.ts'
import { MAX_REQUESTS_PER_TURN, TurnQueue } from '../turn-queue.ts'

export interface HttpLimits {
  /** Maximum number of open connections; the limit of open files caps it. */
  readonly maxConnections: number
  /** Maximum memory of responses that wait in sockets, in MiB. Segments that are in the cache do not count. */
  readonly maxBufferedMib: number
}

export interface HttpGuardOptions {
  readonly limits: HttpLimits
  /** Default: no body of a response is cached. */
  readonly uncachedMemory?: UncachedMemory
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

/** Maximum number of idle connections closed per sweep: 500 take about 15 ms. */
const MAX_EXPIRED_PER_SWEEP = 500

/**
 * Maximum size of large bodies per turn of the event loop: the kernel copies 4 MiB in 1 to 3 ms. Without the limit, 600
 * requests for a segment held the loop for 10 ms per turn.
 */
const MAX_BODY_BYTES_PER_TURN = 4 * 1024 * 1024

/** Calling order: create the server with `ServerResponse`, `protect` it before it listens, `endWithin` to close. */
export class HttpGuard {
  readonly ServerResponse: typeof ServerResponse
  readonly Http2ServerResponse: typeof Http2ServerResponse
  #isEnding = false
  readonly #options: HttpGuardOptions
  readonly #uncachedMemory: UncachedMemory
  readonly #limits: ConnectionLimits
  /** Admitted TCP connections. */
  readonly #table: ConnectionTable<Socket>
  /** Connections that speak HTTP, by TCP socket. */
  readonly #clients = new Map<Socket, GuardedConnection | GuardedSession>()
  readonly #refused = new RefusedConnections()
  readonly #turns = new TurnQueue(MAX_REQUESTS_PER_TURN)
  /** Number of HTTP/1.1 responses that the kernel has not accepted. */
  #open = 0
  #onAllSent: (() => void) | undefined
  readonly #log: GuardLog
  #bufferedBytes = 0

  constructor(options: HttpGuardOptions) {
    this.#options = options
    const { uncachedMemory = (_url, bodies) => bodies.map(({ buffer }) => buffer) } = options
    this.#uncachedMemory = uncachedMemory
    this.#log = new GuardLog(options.logger)
    const wanted = options.limits.maxConnections
    const maxConnections = Math.min(wanted, maxOpenConnections())
    if (maxConnections < wanted) {
      options.logger.warn(
        `HTTP_MAX_CONNECTIONS is ${wanted}, open files allow ${maxConnections}. ` +
          'Further viewers get 503. Raise LimitNOFILE or ulimit -n.',
      )
    }
    this.#limits = { maxConnections, maxPerSource: Math.ceil(maxConnections * SOURCE_SHARE) }
    this.#table = new ConnectionTable(this.#limits)
    const watcher = {
      begin: (response: GuardedResponse) => this.#begin(response),
      finish: (response: GuardedResponse) => this.#finish(response),
    }
    const largeBodies = new TurnQueue(MAX_BODY_BYTES_PER_TURN)
    this.ServerResponse = guardedResponses(watcher, largeBodies)
    this.Http2ServerResponse = guardedHttp2Responses(
      (response) => this.#beginStream(response),
      largeBodies,
    )
  }

  report(): HttpReport {
    const { size: connections } = this.#table
    return { connections, bufferedBytes: this.#bufferedBytes, ...this.#log.counters }
  }

  /** Puts the guard between the server and its connections. */
  protect(server: Server | Http2SecureServer): void {
    const serve = takeListener(server, 'connection')
    if (server instanceof TlsServer) {
      const handshakes = new TlsHandshakes({
        shake: (socket) => serve.call(server, socket),
        refuse: (socket) => this.#refused.refuse(socket, this.#nowMs, 'HTTPS_REQUIRED'),
      })
      server.on('connection', (socket: Socket) => {
        if (!this.#isEnding && this.#admit(socket)) handshakes.await(socket)
        else socket.destroy()
      })
      this.#protectTls(server)
    } else {
      server.on('connection', (socket: Socket) => {
        if (this.#isEnding) socket.destroy()
        else if (this.#admit(socket)) {
          serve.call(server, socket)
          this.#follow(socket, socket)
        } else this.#refused.refuse(socket, this.#nowMs, 'TOO_MANY_HTTP_CONNECTIONS')
      })
    }
    // Node closes connections beyond this number without creating a socket.
    server.maxConnections = this.#limits.maxConnections + MAX_REFUSED
    server.on('drop', () => this.#log.count('refused'))
    const sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref()
    server.once('close', () => clearInterval(sweeper))
  }

  /** Follows connections after the TLS handshake, which has chosen HTTP/2 or HTTP/1.1. */
  #protectTls(server: Http2SecureServer): void {
    const serve = takeListener(server, 'secureConnection')
    server.on('secureConnection', (secure: TLSSocket) => {
      serve.call(server, secure)
      const socket = tcpSocketOf(secure)
      if (socket === undefined || secure.alpnProtocol === 'h2') return
      this.#follow(socket, secure)
    })
    server.on('session', (session: ServerHttp2Session) => {
      const socket = tcpSocketOf(session.socket)
      if (socket === undefined) return
      this.#clients.set(socket, new GuardedSession(session, socket, this.#turns, this.#nowMs))
    })
    guardStreams(server, this.#limits, {
      sessionOf: (stream) => this.#sessionOf(stream),
      onReset: (session) => {
        if (!session.mayReset(this.#nowMs)) this.#cutSession(session, 'flooding')
      },
      onRequest: ({ socket, isBusy }) => {
        // A stream that ends before its turn has no response, with which the connection would become idle again.
        if (isBusy) this.#table.markBusy(socket)
      },
      onTooManyPieces: (session) => this.#cutSession(session, 'flooding'),
      onRefused: () => this.#log.count('refusedStreams'),
      nowMs: () => this.#nowMs,
    })
  }

  /**
   * Takes no more connections for a closing server, ends those of HTTP/2, and disconnects the remaining clients after `ms`
   * milliseconds.
   */
  endWithin(server: Server | Http2SecureServer, ms: number): void {
    this.#isEnding = true
    for (const client of this.#clients.values()) {
      if (client instanceof GuardedSession) client.end()
    }
    const deadline = setInterval(() => this.destroy(), ms).unref()
    server.once('close', () => clearInterval(deadline))
  }

  /** Resolves when the kernel has all responses of HTTP/1.1, or when their connections have closed. */
  async allSent(): Promise<void> {
    if (this.#open > 0) await new Promise<void>((resolve) => (this.#onAllSent = resolve))
  }

  #countOpen(added: number): void {
    this.#open += added
    if (this.#open === 0) this.#onAllSent?.()
  }

  /** Cuts all connections. */
  destroy(): void {
    this.#refused.destroy()
    for (const socket of this.#table) socket.destroy()
  }

  get #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  /** @param parsed  see `GuardedConnection` */
  #follow(socket: Socket, parsed: Socket): void {
    this.#clients.set(socket, new GuardedConnection(socket, parsed, this.#turns))
  }

  #admit(socket: Socket): boolean {
    const source = sourceOf(socket.remoteAddress)
    const admission = this.#table.admit(socket, source, this.#nowMs)
    if (!admission.admitted) {
      this.#log.count(admission.limit === 'all' ? 'refused' : 'refusedPerAddress')
      return false
    }
    if (admission.displaced !== undefined) this.#cut(admission.displaced, 'displaced')
    socket.once('close', () => {
      const client = this.#clients.get(socket)
      if (client instanceof GuardedConnection) this.#countOpen(-client.gate.responses.length)
      this.#table.remove(socket)
      this.#clients.delete(socket)
    })
    return true
  }

  #begin(response: GuardedResponse): void {
    const { client, socket } = this.#clientOf(response.req.socket)
    const { body } = response
    if (body === undefined) this.#table.markBusy(socket)
    else {
      // A connection whose request is incomplete may be displaced.
      limitPieces(body, new PieceAllowance(), {
        onEnd: () => this.#table.markBusy(socket),
        onTooMany: () => this.#cut(socket, 'flooding'),
      })
    }
    if (!(client instanceof GuardedConnection)) return
    client.gate.begin(response)
    this.#countOpen(1)
  }

  #finish({ req }: GuardedResponse): void {
    const { client, socket } = this.#clientOf(req.socket)
    if (!(client instanceof GuardedConnection)) return
    client.gate.finish()
    this.#countOpen(-1)
    if (!client.isBusy) this.#table.markIdle(socket, this.#nowMs)
  }

  /** @param parsed  TCP socket, or the TLS socket on it */
  #clientOf(parsed: Socket) {
    const socket = tcpSocketOf(parsed) ?? parsed
    return { socket, client: this.#clients.get(socket) }
  }

  /** @returns function to call when the stream has ended */
  #beginStream(response: GuardedHttp2Response): () => void {
    const session = this.#sessionOf(response.stream)
    if (session === undefined) return () => undefined
    if (hasSentRequest(response.stream)) this.#table.markBusy(session.socket)
    session.begin(response, this.#nowMs)
    return () => {
      session.finish(response)
      if (!session.isBusy) this.#table.markIdle(session.socket, this.#nowMs)
    }
  }

  /** @returns undefined for a connection that has ended or is cut */
  #sessionOf({ session }: ServerHttp2Stream): GuardedSession | undefined {
    const socket = tcpSocketOf(session?.socket)
    const client = socket && this.#clients.get(socket)
    return client instanceof GuardedSession ? client : undefined
  }

  #sweep(): void {
    const nowMs = this.#nowMs
    this.#refused.sweep(nowMs)
    let expired = 0
    for (const socket of this.#table.idleFor(MAX_IDLE_MS, nowMs)) {
      if (expired++ === MAX_EXPIRED_PER_SWEEP) break
      this.#cut(socket, 'expired')
    }
    const holders = []
    for (const client of this.#clients.values()) {
      this.#endLate(client, nowMs)
      const { socket } = client
      if (!client.isBusy || this.#isCut(socket)) continue
      holders.push({ socket, ...client.holder(this.#uncachedMemory, nowMs) })
    }
    const maxBytes = this.#options.limits.maxBufferedMib * 1024 * 1024
    for (const { socket } of slowestOver(holders, maxBytes)) this.#cut(socket, 'overMemory')
    this.#bufferedBytes = heldBytes(holders.filter(({ socket }) => !this.#isCut(socket)))
    this.#log.report(this.#options.clock.nowUs())
  }

  /** Disconnects slow readers and floods; HTTP/2: ends only the streams that are read too slowly. */
  #endLate(client: GuardedConnection | GuardedSession, nowMs: number): void {
    if (client instanceof GuardedSession) {
      for (let slow = client.cancelLate(nowMs); slow > 0; slow--) this.#log.count('slow')
      if (client.isFlooding(nowMs)) this.#cutSession(client, 'flooding')
      else if (client.isStuck) this.#cutSession(client, 'slow')
    } else if (client.isBusy && client.isSlow(nowMs)) {
      this.#cut(client.socket, 'slow')
    }
  }

  #isCut(socket: Socket): boolean {
    return socket.destroyed || !this.#clients.has(socket)
  }

  #cut(socket: Socket, reason: keyof HttpCounters): void {
    const client = this.#clients.get(socket)
    if (client instanceof GuardedSession) this.#cutSession(client, reason)
    else {
      this.#log.count(reason)
      disconnect(socket)
    }
  }

  #cutSession(session: GuardedSession, reason: keyof HttpCounters): void {
    const { socket } = session
    // Nothing more of it is handled.
    if (!this.#clients.delete(socket)) return
    this.#table.remove(socket)
    this.#log.count(reason)
    stopReading(socket)
    // nghttp2 may be reading, see http2-streams.ts.
    setImmediate(() => {
      // Where Node has begun to close the connection, a reset would leave it open.
      if (session.isDestroyed) socket.destroy()
      else disconnect(socket)
      session.destroy()
    })
  }
}

/** Disconnects with a reset, so that the kernel discards its part of the response as well; a Unix socket has none. */
function disconnect(socket: Socket): void {
  if (socket.remoteAddress === undefined) socket.destroy()
  else socket.resetAndDestroy()
}
