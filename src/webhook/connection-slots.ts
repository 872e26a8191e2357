/**
 * Connections of webhooks, shared so that silent receivers, however many, do not delay a receiver that responds.
 *
 * An attempt starts in one of a few places. It leaves the place after PLACE_TIME_MS, or earlier when it ends. Later
 * it occupies only its connection. So below the connection limits an attempt waits for a place, never for the timeout
 * of another attempt.
 *
 * @module
 */

/** History of a URL: its last event was delivered, it has no history, or its last attempt failed. */
export type Standing = 'proven' | 'new' | 'failing'

/**
 * Number of places by standing. With a timeout of 5 s, silent URLs hold up to 20 connections per place: 440 connections
 * for new and failing URLs, at 26 KB of memory each (88 KB with TLS).
 */
const PLACES: Readonly<Record<Standing, number>> = { proven: 48, new: 20, failing: 2 }
export const PLACE_TIME_MS = 250

/** Maximum number of connections in total, and to one origin. */
export const MAX_CONNECTIONS = 512
export const MAX_CONNECTIONS_PER_ORIGIN = 32

/** Number of connections to one origin, of all its URLs, from which on new and failing URLs of the origin wait. */
const MAX_UNPROVEN_PER_ORIGIN = 16

export interface Slot {
  /** Frees the place, but not the connection. */
  readonly leavePlace: () => void
  /** Frees the connection, and the place if it is still occupied. Call it once. */
  readonly release: () => void
}

interface Claim {
  readonly origin: string
  readonly standing: Standing
  readonly grant: () => void
}

/**
 * Grants places and connections. Within a standing the newest claim comes first: in a flood of URLs that never respond,
 * most waiting claims are for these URLs, and a healthy URL must not wait behind them.
 */
export class ConnectionSlots {
  readonly #places: Record<Standing, number> = { ...PLACES }
  /** Number of connections by origin. */
  readonly #connections = new Map<string, number>()
  #total = 0
  /** Claims that wait for a place; the last one is granted first. */
  readonly #waiting: Readonly<Record<Standing, Claim[]>> = { proven: [], new: [], failing: [] }
  /** Claims whose origin has no free connection, by origin; separate, so that `#serve` does not visit them. */
  readonly #blocked: Readonly<Record<Standing, Map<string, Claim[]>>> = {
    proven: new Map(),
    new: new Map(),
    failing: new Map(),
  }

  /**
   * Waits for a place and a connection.
   *
   * @throws the reason of `signal` if it aborts first
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

  /** For each standing: lets one claim that this origin blocked wait for a place again, then serves the standing. */
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
      // `#unblock` may have chosen this claim for a free connection: another claim takes its turn.
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
