/**
 * Limits on connections, in total and from one source. At a limit, a new connection displaces the longest idle one, or
 * is refused if none has been idle for 2 s. At the limit of a source, only connections of that source are displaced.
 *
 * @module
 */

export interface ConnectionLimits {
  readonly maxConnections: number
  /** Maximum number of connections of one source. Connections without a source count only toward the total. */
  readonly maxPerSource: number
}

type Admission<Connection> =
  /** `displaced` is already removed from the table; the caller closes it. */
  | { readonly admitted: true; readonly displaced?: Connection }
  | { readonly admitted: false; readonly limit: 'all' | 'source' }

/** Minimum idle time before displacement: a new client has time to send a request, a player to send its next one. */
const MIN_IDLE_MS = 2000

/**
 * Calling order: `admit`; `markBusy` and `markIdle` as requests begin and end; `remove`. A connection is idle from its
 * admission on. Times are in milliseconds of a monotonic clock.
 */
export class ConnectionTable<Connection> {
  readonly #limits: ConnectionLimits
  readonly #sources = new Map<Connection, string | undefined>()
  readonly #sourceCounts = new Map<string, number>()
  /** Time at which each idle connection became idle, the longest idle first. */
  readonly #idleSinceMs = new Map<Connection, number>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#sources.size
  }

  /** All connections, idle or not. */
  [Symbol.iterator](): IterableIterator<Connection> {
    return this.#sources.keys()
  }

  /** @param source  see `sourceOf` */
  admit(connection: Connection, source: string | undefined, nowMs: number): Admission<Connection> {
    const limit = this.#limitReached(source)
    const displaced = limit && this.#longestIdle(limit === 'source' ? source : undefined, nowMs)
    if (limit !== undefined && displaced === undefined) return { admitted: false, limit }
    if (displaced !== undefined) this.remove(displaced)
    this.#sources.set(connection, source)
    if (source !== undefined) {
      this.#sourceCounts.set(source, (this.#sourceCounts.get(source) ?? 0) + 1)
    }
    this.#idleSinceMs.set(connection, nowMs)
    return displaced === undefined ? { admitted: true } : { admitted: true, displaced }
  }

  #limitReached(source: string | undefined): 'all' | 'source' | undefined {
    const count = source === undefined ? 0 : (this.#sourceCounts.get(source) ?? 0)
    if (count >= this.#limits.maxPerSource) return 'source'
    return this.size >= this.#limits.maxConnections ? 'all' : undefined
  }

  /** @param source  undefined for all sources */
  #longestIdle(source: string | undefined, nowMs: number): Connection | undefined {
    for (const connection of this.idleFor(MIN_IDLE_MS, nowMs)) {
      if (source === undefined || this.#sources.get(connection) === source) return connection
    }
    return undefined
  }

  /** Marks a connection as busy: it has an unanswered request. */
  markBusy(connection: Connection): void {
    this.#idleSinceMs.delete(connection)
  }

  /** Marks a connection as idle: it has no unanswered request. */
  markIdle(connection: Connection, nowMs: number): void {
    if (this.#sources.has(connection)) this.#idleSinceMs.set(connection, nowMs)
  }

  /** Connections idle for at least `ms`, the longest idle first. */
  *idleFor(ms: number, nowMs: number): IterableIterator<Connection> {
    for (const [connection, sinceMs] of this.#idleSinceMs) {
      if (nowMs - sinceMs < ms) return
      yield connection
    }
  }

  remove(connection: Connection): void {
    const source = this.#sources.get(connection)
    if (!this.#sources.delete(connection)) return
    this.#idleSinceMs.delete(connection)
    if (source === undefined) return
    const left = this.#sourceCounts.get(source)! - 1
    if (left === 0) this.#sourceCounts.delete(source)
    else this.#sourceCounts.set(source, left)
  }
}
