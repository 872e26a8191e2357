/**
 * How fast a reader takes what waits for it, and whether that is still of use to anybody.
 *
 * @module
 */

/**
 * Bytes a second that a reader must take while bytes wait for it: 32 kbit/s, less than the leanest stream of sound needs.
 */
export const MIN_BYTES_PER_SEC = 4 * 1024

/**
 * Over how long the rate is measured. The kernel takes no more until a third of its send buffer is free, which may be
 * 1.3 MB of 4 MB: it then takes nothing for 41 s while a phone loads 32 kB/s.
 */
export const RATE_WINDOW_MS = 60_000

/** Shorter windows tell nothing: the kernel takes bytes in steps. */
const MIN_RATE_SPAN_MS = 1000

/** Told by `observe` every second or so. Times are milliseconds of one clock that never goes back. */
export class ReaderProgress {
  #windowStartMs: number | undefined
  #sentAtStart = 0
  #lastBytesPerSec = Infinity

  /**
   * @param sentBytes  what the kernel has taken since the connection began
   * @param waitingBytes  what it has not taken yet; 0 begins anew: a paused player is no slow one
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

  /** Rate in this window, or in the last one where this is younger than a second; Infinity where there was none. */
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
