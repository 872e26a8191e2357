/**
 * Revoked stream keys: for each stream, the time of issue (claim `iat`) below which keys are refused.
 *
 * @module
 */
import { STREAM_KEY_LIFETIME_SEC, type StreamKeyClaims } from './stream-key.ts'

/** Maximum number of remembered floors. A floor is obsolete after two hours, when the revoked keys have expired. */
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
    this.raise(streamId, Math.max(nowSec, this.#floorSec(streamId)) + 1, nowSec)
  }

  /** Revokes all keys of the stream issued before `floorSec`, as another node has done. */
  raise(streamId: string, floorSec: number, nowSec: number): void {
    if (floorSec <= this.#floorSec(streamId)) return
    this.#floors.delete(streamId)
    this.#floors.set(streamId, floorSec)
    for (const [id, oldestSec] of this.#floors) {
      const isObsolete = oldestSec + STREAM_KEY_LIFETIME_SEC <= nowSec
      if (!isObsolete && this.#floors.size <= MAX_FLOORS) break
      if (!isObsolete) this.#floorOfAllSec = Math.max(this.#floorOfAllSec, oldestSec)
      this.#floors.delete(id)
    }
  }

  isRevoked({ streamId, issuedAtSec }: StreamKeyClaims): boolean {
    return issuedAtSec < this.#floorSec(streamId)
  }

  /** Time of issue for a new key: `wallMs` or, if that is below the floor of the stream, the floor. */
  issueTime(streamId: string, wallMs: number): Date {
    return new Date(Math.max(wallMs, this.#floorSec(streamId) * 1000))
  }

  #floorSec(streamId: string): number {
    return Math.max(this.#floors.get(streamId) ?? 0, this.#floorOfAllSec)
  }
}
