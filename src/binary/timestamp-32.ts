/**
 * A 32-bit clock that wraps every 71 min 35 s: SRT packet timestamps in microseconds (draft-sharabayko-srt 3).
 *
 * @module
 */

/**
 * Continues a wrapping timestamp without end, by its signed distance to the one before. Sound for steps under
 * 35 minutes in either direction, so packets may come reordered or late.
 */
export class TimestampUnwrapper {
  #last: number

  /** @param first  the timestamp (u32) that stands for itself */
  constructor(first: number) {
    this.#last = first
  }

  /** @returns `timestamp` plus the multiple of 2^32 that brings it nearest to the last one seen */
  unwrap(timestamp: number): number {
    this.#last += (timestamp - this.#last) | 0
    return this.#last
  }
}
