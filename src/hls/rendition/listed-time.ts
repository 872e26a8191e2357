/**
 * Durations that playlists list for parts and segments of audio: those of their frames, each of which ends less than a
 * frame from the planned boundary. They add up, whatever the media: what one part lacks is in a later one.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'

/** Minimum duration, where what came before takes all the time there is. */
const MIN_SEC = 0.001

/** End of a part or segment. Times are of 90 kHz. */
export interface ListedEnd {
  /** Planned boundary. */
  readonly endTicks: number
  /** Planned duration. */
  readonly durationSec: number
  /** Maximum duration, unless it is below the minimum. */
  readonly maxSec: number
}

/** `start` a timeline, then `advance` over each of its parts, or over segments without parts. */
export class ListedTime {
  #ticks = 0

  /** End of the durations so far. */
  get ticks(): number {
    return this.#ticks
  }

  start(ticks: number): void {
    this.#ticks = ticks
  }

  /**
   * @param media  end of the latest frame, and its duration; undefined for a gap
   * @returns DURATION or EXTINF, in seconds
   */
  advance(
    { endTicks, durationSec, maxSec }: ListedEnd,
    media?: { readonly mediaTicks: number; readonly frameTicks: number },
  ): number {
    const { mediaTicks, frameTicks } = media ?? { mediaTicks: -Infinity, frameTicks: 0 }
    const isUsual =
      mediaTicks > this.#ticks + 1 && Math.abs(mediaTicks - endTicks) <= frameTicks + 1
    const wantedSec = isUsual ? (mediaTicks - this.#ticks) / TICKS_PER_SEC : durationSec
    const listedSec = Math.max(MIN_SEC, Math.min(wantedSec, maxSec))
    this.#ticks += listedSec * TICKS_PER_SEC
    return listedSec
  }
}
