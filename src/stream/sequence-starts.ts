/**
 * First media and discontinuity sequence numbers of new streams. Under one URL the numbers never decrease (RFC 8216bis
 * 6.2.1), not even after a restart of the process, which saves no state. So the first numbers come from the wall clock,
 * which counts faster than streams usually do.
 *
 * @module
 */

import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'

/** Wall-clock time of number 0. Until 2043, media sequence numbers fit players that read signed 32-bit numbers. */
const ORIGIN_MS = Date.UTC(2026, 10, 1)

/** Media sequence numbers per second: `HLS_SEGMENT_SEC` allows 2, and discontinuities cut segments short. */
const MEDIA_PER_SEC = 4

/**
 * Discontinuity sequence numbers per second: one per ten minutes. At each reload, hls.js 1.7 iterates over an array as
 * long as the number: 240 million entries took 12 s, 100,000 take 4 ms.
 */
const DISCONTINUITIES_PER_SEC = 1 / 600

/** Clock of sequence numbers, for numbers that several processes choose. */
export const SEQUENCE_CLOCK = {
  originMs: ORIGIN_MS,
  mediaPerSec: MEDIA_PER_SEC,
  discontinuitiesPerSec: DISCONTINUITIES_PER_SEC,
}

/** Maximum number of stream ids whose numbers are ahead of the clock. */
const MAX_AHEAD = 10_000

/** Calling order: `next` when a stream begins, `leave` when it is forgotten. Times: wall clock, in milliseconds. */
export class SequenceStarts {
  /** Lowest unused numbers by stream id, for streams that were ahead of the clock when forgotten; oldest first. */
  readonly #ahead = new Map<string, SequenceNumbers>()
  /** Lowest discontinuity sequence number above all numbers that the previous process took from the clock. */
  readonly #firstDiscontinuity: number
  /** Highest wall clock so far; the clock may be set back. */
  #latestMs = ORIGIN_MS

  /** @param startedMs  wall clock at the start of the process */
  constructor(startedMs: number) {
    this.#firstDiscontinuity = this.#advance(startedMs).discontinuity + 1
  }

  /**
   * Chooses the first numbers of a new stream, above all numbers that earlier streams of this id used.
   *
   * @param options.resumed  whether the previous process ran the stream; if that process began in the same ten minutes,
   *   it used the same `#firstDiscontinuity`
   */
  next(streamId: string, wallMs: number, { resumed = false } = {}): SequenceNumbers {
    const clock = this.#advance(wallMs)
    const { media, discontinuity } = this.#ahead.get(streamId) ?? clock
    return {
      media: Math.max(media, clock.media),
      discontinuity: Math.max(
        discontinuity,
        clock.discontinuity,
        this.#firstDiscontinuity + (resumed ? 1 : 0),
      ),
    }
  }

  /**
   * Records the numbers of a stream that is forgotten.
   *
   * @param free  lowest numbers that the stream has not used
   */
  leave(streamId: string, free: SequenceNumbers, wallMs: number): void {
    const { media, discontinuity } = this.#advance(wallMs)
    this.#ahead.delete(streamId)
    if (free.media <= media && free.discontinuity <= discontinuity) return
    this.#ahead.set(streamId, free)
    const [oldest = streamId] = this.#ahead.keys()
    if (this.#ahead.size > MAX_AHEAD) this.#ahead.delete(oldest)
  }

  #advance(wallMs: number): SequenceNumbers {
    this.#latestMs = Math.max(this.#latestMs, wallMs)
    const sec = (this.#latestMs - ORIGIN_MS) / 1000
    return {
      media: Math.ceil(sec * MEDIA_PER_SEC),
      discontinuity: Math.ceil(sec * DISCONTINUITIES_PER_SEC),
    }
  }
}
