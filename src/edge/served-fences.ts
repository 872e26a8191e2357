/**
 * Highest fence under which an edge has served each stream. What an earlier owner says is not served after a reply of a
 * later one: players would see the playlist go back.
 *
 * A fence is at least the time of Redis, in milliseconds. So one that is lower than another before can only come from an
 * owner that was replaced and has not noticed, or from a registry that has lost its last writes: both are over within
 * seconds, or when the clock of Redis has caught up with that of the master before it. The memory holds for longer than
 * clocks may differ, and ends, since a lower fence after that is all there is.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'

/** Time after the latest reply for which its fence counts. */
const KEPT_US = 120 * 1_000_000

/** Maximum number of streams, the one that was not served for longest is forgotten. Ids without an owner take no room. */
const MAX_STREAMS = 100_000

export class ServedFences {
  readonly #latest = new LRUCache<string, { readonly fence: number; readonly atUs: number }>({
    max: MAX_STREAMS,
  })

  /**
   * @param fence  that of a reply; 0 where fences are not used
   * @returns false for a reply that must not be served; any other one is remembered
   */
  admit(streamId: string, fence: number, nowUs: number): boolean {
    const latest = this.#latest.get(streamId)
    const isLower = latest !== undefined && fence < latest.fence
    if (isLower && nowUs - latest.atUs < KEPT_US) return false
    if (fence > 0) this.#latest.set(streamId, { fence, atUs: nowUs })
    return true
  }
}
