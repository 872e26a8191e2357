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
  readonly grant: () => void
}

/**
 * Hands out places and connections. Of claims of one standing the newest goes first: in a flood of URLs that never
 * answer the claims that wait are the flood, and a healthy URL shall not wait behind it.
 */
export class ConnectionSlots {
  readonly #claims: Readonly<Record<Standing, Claim[]>> = { proven: [], new: [], failing: [] }
  readonly #places: Record<Standing, number> = { ...PLACES }
  readonly #connections = new Map<string, number>()
  #total = 0

  /**
   * Waits for a place and a connection.
   *
   * @throws the reason of `signal` when it aborts first
   */
  acquire(origin: string, standing: Standing, signal: AbortSignal): Promise<Slot> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const claims = this.#claims[standing]
      const withdraw = () => {
        claims.splice(claims.indexOf(claim), 1)
        reject(signal.reason as Error)
      }
      const claim = {
        origin,
        grant: () => {
          signal.removeEventListener('abort', withdraw)
          resolve(this.#occupy(origin, standing))
        },
      }
      signal.addEventListener('abort', withdraw)
      claims.push(claim)
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
        // Of any standing may be a claim that waited for the connection.
        for (const each of ['proven', 'new', 'failing'] as const) this.#serve(each)
      },
    }
  }

  #serve(standing: Standing): void {
    const claims = this.#claims[standing]
    const max = standing === 'proven' ? MAX_CONNECTIONS_PER_ORIGIN : MAX_UNPROVEN_PER_ORIGIN
    for (let index = claims.length - 1; index >= 0; index--) {
      if (this.#places[standing] === 0 || this.#total >= MAX_CONNECTIONS) return
      const { origin, grant } = claims[index]!
      if (this.#connectionsTo(origin) >= max) continue
      claims.splice(index, 1)
      grant()
    }
  }

  #connectionsTo(origin: string): number {
    return this.#connections.get(origin) ?? 0
  }
}
