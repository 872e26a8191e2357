/**
 * Connections that there may be: so many in all, a share of them from one address; at either limit the
 * longest idle gives way.
 *
 * @module
 */

export interface ConnectionLimits {
  readonly maxConnections: number
  /** Share of one source; what has no source counts in all alone. */
  readonly maxPerSource: number
}

export type Admission<Connection> =
  /** `displaced` is to be closed: it has left the table already. */
  | { readonly admitted: true; readonly displaced?: Connection }
  | { readonly admitted: false; readonly limit: 'all' | 'source' }

/**
 * A connection that has asked for nothing yet may still be on its way to its request, and a player comes back every
 * second or two: neither gives way before this.
 */
const MIN_IDLE_MS = 2000

/**
 * `admit` first; then `markBusy` and `markIdle` as requests come and are answered; `remove` at the end. A connection is idle
 * from its admission on. Times are milliseconds of one clock that never goes back.
 */
export class ConnectionTable<Connection> {
  readonly #limits: ConnectionLimits
  readonly #sources = new Map<Connection, string | undefined>()
  readonly #sourceCounts = new Map<string, number>()
  /** Since when; the longest idle first, since whoever becomes idle is entered anew. */
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
    const ofSource = source === undefined ? 0 : (this.#sourceCounts.get(source) ?? 0)
    if (ofSource >= this.#limits.maxPerSource) return 'source'
    return this.size >= this.#limits.maxConnections ? 'all' : undefined
  }

  /** Among the connections of one source, or of all where it is undefined. */
  #longestIdle(source: string | undefined, nowMs: number): Connection | undefined {
    for (const connection of this.idleFor(MIN_IDLE_MS, nowMs)) {
      if (source === undefined || this.#sources.get(connection) === source) return connection
    }
    return undefined
  }

  /** The connection has a request that is not answered. */
  markBusy(connection: Connection): void {
    this.#idleSinceMs.delete(connection)
  }

  /** The connection has no such request any more. */
  markIdle(connection: Connection, nowMs: number): void {
    if (this.#sources.has(connection)) this.#idleSinceMs.set(connection, nowMs)
  }

  /** Connections that have been idle for `ms`, the longest idle first. */
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
