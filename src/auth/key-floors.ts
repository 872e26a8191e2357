/**
 * Revoked stream keys: for each stream, the time of issue (claim `iat`) below which keys are refused.
 *
 * @module
 */
import { STREAM_KEY_LIFETIME_SEC, type StreamKeyClaims } from './stream-key.ts'

/** Max remembered streams with a revocation in the last two hours. */
const MAX_FLOORS = 100_000

/** Calling order: `revoke` the keys of a stream, `issueTime` for each new key, `isRevoked` for each key received. */
export class KeyFloors {
  /** Lowest accepted `iat` by stream id, in the order of revocation. */
  readonly #floors = new Map<string, number>()
  /**
   * Lowest accepted `iat` of all streams. Rises above MAX_FLOORS: better refuse valid keys than accept revoked ones.
   */
  #floorOfAllSec = 0

  /** Revokes all keys of the stream issued so far. */
  revoke(streamId: string, wallMs: number): void {
    const nowSec = Math.floor(wallMs / 1000)
    const floorSec = Math.max(nowSec, this.#floorSec(streamId)) + 1
    this.#floors.delete(streamId)
    this.#floors.set(streamId, floorSec)
    for (const [id, oldestSec] of this.#floors) {
      const isOver = oldestSec + STREAM_KEY_LIFETIME_SEC <= nowSec
      if (!isOver && this.#floors.size <= MAX_FLOORS) break
      if (!isOver) this.#floorOfAllSec = Math.max(this.#floorOfAllSec, oldestSec)
      this.#floors.delete(id)
    }
  }

  isRevoked({ streamId, issuedAtSec }: StreamKeyClaims): boolean {
    return issuedAtSec < this.#floorSec(streamId)
  }

  /**
   * Time of issue for a new key. In the second of a revocation it is the next second, since `iat` is in whole seconds.
   */
  issueTime(streamId: string, wallMs: number): Date {
    return new Date(Math.max(wallMs, this.#floorSec(streamId) * 1000))
  }

  #floorSec(streamId: string): number {
    return Math.max(this.#floors.get(streamId) ?? 0, this.#floorOfAllSec)
  }
}
