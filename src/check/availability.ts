/**
 * Times until which media has to be available (RFC 8216 6.2.2; RFC 8216bis 6.2.2 for parts).
 *
 * @module
 */
import { totalSec, type MediaPlaylist } from './playlist/media-playlist.ts'

/** Input: each version with the time of its request; times are in milliseconds of one clock. */
export class Availability {
  /** By URL. */
  readonly #untilMs = new Map<string, number>()
  #longestSec = 0

  add({ segments, targetSec }: MediaPlaylist, sentAtMs: number): void {
    const durationSec = totalSec(segments)
    this.#longestSec = Math.max(this.#longestSec, durationSec || 0)
    for (const [url, untilMs] of this.#untilMs) if (untilMs < sentAtMs) this.#untilMs.delete(url)
    for (const { url, map, parts, ...segment } of segments) {
      const untilMs = sentAtMs + (segment.durationSec + this.#longestSec) * 1000
      if (url !== undefined) this.#untilMs.set(url, untilMs)
      if (map !== undefined) this.#untilMs.set(map.url, untilMs)
      for (const part of parts) this.#untilMs.set(part.url, sentAtMs + 3 * targetSec * 1000)
    }
  }

  /** Whether media has to be available at that time. */
  isDue(url: string, atMs: number): boolean {
    return atMs <= (this.#untilMs.get(url) ?? -Infinity)
  }
}
