/**
 * Reading rate of a client while responses wait for it.
 *
 * @module
 */

/** Minimum rate of a reader with waiting bytes: 32 kbit/s, below any audio stream. */
export const MIN_BYTES_PER_SEC = 4 * 1024

/**
 * Window over which the rate is measured. The kernel accepts bytes again only when a third of its send buffer is free,
 * at most 1.3 MB of 4 MB: a phone that loads 32 kB/s needs 41 s for that.
 */
export const RATE_WINDOW_MS = 60_000

/** Minimum age of a window for its rate to count, since the kernel accepts bytes in bursts. */
const MIN_RATE_SPAN_MS = 1000

/** Inputs: `observe` about once a second. Times are in milliseconds of a monotonic clock. */
export class ReaderProgress {
  #windowStartMs: number | undefined
  #sentAtStart = 0
  #lastBytesPerSec = Infinity

  /**
   * @param sentBytes  bytes that the kernel has accepted since the connection began
   * @param waitingBytes  bytes that the kernel has not accepted yet; 0 ends the window: a paused player is not slow
   * @returns whether a whole window has ended in which the reader was too slow
   */
  observe(sentBytes: number, waitingBytes: number, nowMs: number): boolean {
    if (waitingBytes === 0) this.#end(sentBytes, nowMs)
    else if (this.#windowStartMs === undefined) this.#begin(sentBytes, nowMs)
    else if (nowMs - this.#windowStartMs >= RATE_WINDOW_MS) {
      const isSlow = this.bytesPerSec(sentBytes, nowMs) < MIN_BYTES_PER_SEC
      this.#end(sentBytes, nowMs)
      this.#begin(sentBytes, nowMs)
      return isSlow
    }
    return false
  }

  /**
   * Rate in the current window or, in the first second of a window, the last known rate; Infinity before any is known.
   */
  bytesPerSec(sentBytes: number, nowMs: number): number {
    const elapsedMs = nowMs - (this.#windowStartMs ?? nowMs)
    if (elapsedMs < MIN_RATE_SPAN_MS) return this.#lastBytesPerSec
    return ((sentBytes - this.#sentAtStart) * 1000) / elapsedMs
  }

  #end(sentBytes: number, nowMs: number): void {
    this.#lastBytesPerSec = this.bytesPerSec(sentBytes, nowMs)
    this.#windowStartMs = undefined
  }

  #begin(sentBytes: number, nowMs: number): void {
    this.#windowStartMs = nowMs
    this.#sentAtStart = sentBytes
  }
}
