/**
 * Reading rate of a client while replies wait for it.
 *
 * @module
 */

/** Minimum rate of a reader with waiting bytes: 32 kbit/s, below any audio stream. */
export const MIN_BYTES_PER_SEC = 4 * 1024

/**
 * Window of the rate. The kernel accepts bytes again when a third of its send buffer is free, up to 1.3 of 4 MB: 41 s for
 * a phone that loads 32 kB/s.
 */
export const RATE_WINDOW_MS = 60_000

/** Shortest window with a meaningful rate, since the kernel accepts bytes in steps. */
const MIN_RATE_SPAN_MS = 1000

/** Call `observe` every second or so. Times are in milliseconds of a monotonic clock. */
export class ReaderProgress {
  #windowStartMs: number | undefined
  #sentAtStart = 0
  #lastBytesPerSec = Infinity

  /**
   * @param sentBytes  bytes that the kernel has accepted since the connection began
   * @param waitingBytes  bytes that it has not accepted yet; 0 resets the window, as for a paused player
   * @returns whether the reader was too slow over a whole window
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

  /** Rate in this window, or in the last one while this is younger than a second; Infinity without one. */
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
