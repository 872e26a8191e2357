/**
 * Shortage of memory for the segments of a stream.
 *
 * @module
 */
import type { PlaylistReport } from '../contract/report.ts'

/** Input of `observe`. */
export interface PlaylistFigures extends PlaylistReport {
  /** Segments cut since the stream started. */
  readonly cutSegments: number
  /** Whether the cache is smaller than the whole windows of all streams. */
  readonly short: boolean
  /** Recommended size of the cache. */
  readonly advisedBytes: number
}

export interface Shortage {
  /** Available segments in the playlist. */
  readonly listed: number
  /** Segments that the playlist would have with enough memory. */
  readonly wanted: number
  /** Segments cut since the stream started. */
  readonly cut: number
  /** Segments released early since the last call. */
  readonly released: number
  /** Gaps in the playlist (EXT-X-GAP) since the last call. */
  readonly gaps: number
  /** Whether the cache is smaller than the whole windows of all streams. */
  readonly short: boolean
  /** Recommended size of the cache. */
  readonly advisedBytes: number
}

export class ShortageWatch {
  #last: PlaylistReport | undefined

  observe(figures: PlaylistFigures): Shortage {
    const last = this.#last ?? figures
    this.#last = figures
    return {
      listed: figures.listedSegments,
      wanted: figures.wantedSegments,
      cut: figures.cutSegments,
      released: figures.releasedEarly - last.releasedEarly,
      gaps: figures.gaps - last.gaps,
      short: figures.short,
      advisedBytes: figures.advisedBytes,
    }
  }
}
