/**
 * Who may have a connection, so that URLs that do not answer, however many, never delay one that does.
 *
 * A try begins in one of a few places and leaves it with its answer, or when its time there is over, for the next one;
 * then only its connection is left, until its timeout. So whoever comes waits for a place, not for a timeout.
 *
 * @module
 */

/** What is known of a URL: its last event was delivered; nothing; its last try failed. */
export type Standing = 'proven' | 'new' | 'failing'

/**
 * Places by standing, the first served first. With a timeout of 5 s, URLs that are silent hold up to 20 connections a
 * place: 440 for those that never answered, of 26 KB each (88 KB with TLS).
 */
const PLACES: Readonly<Record<Standing, number>> = { proven: 48, new: 20, failing: 2 }
export const PLACE_TIME_MS = 250

/** Connections in all; to one origin; of these, those whose URL is not proven. */
export const MAX_CONNECTIONS = 512
export const MAX_CONNECTIONS_PER_ORIGIN = 32
const MAX_UNPROVEN_PER_ORIGIN = 16

export interface Slot {
  /** Leaves the place to another and keeps the connection. */
  readonly leavePlace: () => void
  /** Gives place and connection back; to be called once. */
  readonly release: () => void
}

interface Claim {
  readonly origin: string
  readonly standing: Standing
  readonly grant: () => void
}

/**
 * Hands out places and connections. Of claims of one standing the newest goes first: in a flood of URLs that never
 * answer the claims that wait are the flood, and a healthy URL shall not wait behind it.
 */
export class ConnectionSlots {
  readonly #places: Record<Standing, number> = { ...PLACES }
  /** In use, by origin. */
  readonly #connections = new Map<string, number>()
  #total = 0
  /** Claims that wait for a place, the newest last. */
  readonly #waiting: Readonly<Record<Standing, Claim[]>> = { proven: [], new: [], failing: [] }
  /** Those that met an origin without a free connection wait here, where nobody has to pass them. */
  readonly #blocked: Readonly<Record<Standing, Map<string, Claim[]>>> = {
    proven: new Map(),
    new: new Map(),
    failing: new Map(),
  }

  /**
   * Waits for a place and a connection.
   *
   * @throws the reason of `signal` when it aborts first
   */
  acquire(origin: string, standing: Standing, signal: AbortSignal): Promise<Slot> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const withdraw = () => {
        this.#withdraw(claim)
        reject(signal.reason as Error)
      }
      const grant = () => {
        signal.removeEventListener('abort', withdraw)
        resolve(this.#occupy(origin, standing))
      }
      const claim = { origin, standing, grant }
      signal.addEventListener('abort', withdraw)
      this.#waiting[standing].push(claim)
      this.#serve(standing)
    })
  }

  #occupy(origin: string, standing: Standing): Slot {
    let hasPlace = true
    const leavePlace = () => {
      if (!hasPlace) return
      hasPlace = false
      this.#places[standing]++
      this.#serve(standing)
    }
    this.#places[standing]--
    this.#total++
    this.#connections.set(origin, this.#connectionsTo(origin) + 1)
    return {
      leavePlace,
      release: () => {
        this.#total--
        const left = this.#connectionsTo(origin) - 1
        if (left > 0) this.#connections.set(origin, left)
        else this.#connections.delete(origin)
        leavePlace()
        this.#unblock(origin)
      },
    }
  }

  #serve(standing: Standing): void {
    const waiting = this.#waiting[standing]
    while (this.#places[standing] > 0 && this.#total < MAX_CONNECTIONS) {
      const claim = waiting.pop()
      if (claim === undefined) return
      if (this.#hasRoom(claim)) claim.grant()
      else this.#block(claim)
    }
  }

  #block(claim: Claim): void {
    const { origin, standing } = claim
    const blocked = this.#blocked[standing].get(origin)
    if (blocked === undefined) this.#blocked[standing].set(origin, [claim])
    else blocked.push(claim)
  }

  /** A connection is free: of each standing one claim of this origin may have its turn, as may those of others. */
  #unblock(origin: string): void {
    for (const standing of ['proven', 'new', 'failing'] as const) {
      const blocked = this.#blocked[standing].get(origin)
      if (blocked !== undefined && this.#hasRoom({ origin, standing })) {
        this.#waiting[standing].push(...blocked.splice(-1))
        if (blocked.length === 0) this.#blocked[standing].delete(origin)
      }
      this.#serve(standing)
    }
  }

  #withdraw(claim: Claim): void {
    const { origin, standing } = claim
    const waiting = this.#waiting[standing]
    const index = waiting.indexOf(claim)
    if (index >= 0) {
      waiting.splice(index, 1)
      // It may have been the one that was to use a free connection.
      this.#unblock(origin)
      return
    }
    const blocked = this.#blocked[standing].get(origin)
    blocked?.splice(blocked.indexOf(claim), 1)
    if (blocked?.length === 0) this.#blocked[standing].delete(origin)
  }

  #hasRoom({ origin, standing }: Pick<Claim, 'origin' | 'standing'>): boolean {
    const max = standing === 'proven' ? MAX_CONNECTIONS_PER_ORIGIN : MAX_UNPROVEN_PER_ORIGIN
    return this.#connectionsTo(origin) < max
  }

  #connectionsTo(origin: string): number {
    return this.#connections.get(origin) ?? 0
  }
}
