/**
 * SRT packet timestamps (draft-sharabayko-srt 3): microseconds in 32 bits, which wrap every 71 min 35 s.
 *
 * @module
 */

/**
 * Unwraps timestamps by the signed distance of each to the previous one. Correct for steps of up to 35 minutes in
 * either direction, so packets may be reordered or late.
 */
export class TimestampUnwrapper {
  #last: number

  /** @param first  first timestamp (u32), which unwraps to itself */
  constructor(first: number) {
    this.#last = first
  }

  /** @returns `timestamp` plus the multiple of 2^32 that brings it nearest to the previous result */
  unwrap(timestamp: number): number {
    this.#last += (timestamp - this.#last) | 0
    return this.#last
  }
}
