/**
 * Revoked stream keys: for each stream, the time of issue (claim `iat`) below which keys are refused.
 *
 * @module
 */
import type { StreamKeyClaims } from './stream-key.ts'

/** Maximum number of remembered floors: no time ends one, since issuers other than Millrace may write any `exp`. */
const MAX_FLOORS = 100_000

/** Inputs: `revoke` for each revocation, `issueTime` for each new key, `isRevoked` for each verified key. */
export class KeyFloors {
  /** Lowest accepted `iat` by stream id, in the order of revocation. */
  readonly #floors = new Map<string, number>()
  /**
   * Lowest accepted `iat` of all streams. Floors beyond MAX_FLOORS are removed and raise this one: valid keys of other
   * streams may then be refused, but no revoked key is accepted.
   */
  #floorOfAllSec = 0

  /** Revokes all keys of the stream issued so far. */
  revoke(streamId: string, wallMs: number): void {
    const nowSec = Math.floor(wallMs / 1000)
    this.raise(streamId, Math.max(nowSec, this.#floorSec(streamId)) + 1)
  }

  /** Revokes all keys of the stream issued before `floorSec`, as another node has done. */
  raise(streamId: string, floorSec: number): void {
    if (floorSec <= this.#floorSec(streamId)) return
    this.#floors.delete(streamId)
    this.#floors.set(streamId, floorSec)
    for (const [oldest, oldestSec] of this.#floors) {
      if (this.#floors.size <= MAX_FLOORS) break
      this.#floorOfAllSec = Math.max(this.#floorOfAllSec, oldestSec)
      this.#floors.delete(oldest)
    }
  }

  /** A key without time of issue is revoked by any revocation: it may be older. */
  isRevoked({ streamId, issuedAtSec }: StreamKeyClaims): boolean {
    return (issuedAtSec ?? 0) < this.#floorSec(streamId)
  }

  /** Time of issue for a new key: `wallMs` or, if that is below the floor of the stream, the floor. */
  issueTime(streamId: string, wallMs: number): Date {
    return new Date(Math.max(wallMs, this.#floorSec(streamId) * 1000))
  }

  #floorSec(streamId: string): number {
    return Math.max(this.#floors.get(streamId) ?? 0, this.#floorOfAllSec)
  }
}
