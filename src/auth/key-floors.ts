/**
 * Revoked stream keys: by stream, the second before which keys count for nothing, however good their signature.
 *
 * @module
 */
import { STREAM_KEY_LIFETIME_SEC, type StreamKeyClaims } from './stream-key.ts'

/** Revocations of two hours that are remembered by stream. */
const MAX_FLOORS = 100_000

/** `revoke` the keys of a stream, `isRevoked` for each key, `issueTime` for a new one. Times are wall clock milliseconds. */
export class KeyFloors {
  /** Claim `iat` of the oldest key that is good, by stream id; the one revoked first stands in front. */
  readonly #floors = new Map<string, number>()
  /** Where more were revoked than are remembered: then keys of other streams are refused rather than revoked ones taken. */
  #floorOfAllSec = 0

  /** Makes all keys of the stream invalid that were issued so far. */
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

  /** When a key that is issued now is dated: in the second of a revocation, to the next, since `iat` counts in seconds. */
  issueTime(streamId: string, wallMs: number): Date {
    return new Date(Math.max(wallMs, this.#floorSec(streamId) * 1000))
  }

  #floorSec(streamId: string): number {
    return Math.max(this.#floors.get(streamId) ?? 0, this.#floorOfAllSec)
  }
}
