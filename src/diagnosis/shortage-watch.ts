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
  /** The whole windows of all streams do not fit. */
  readonly short: boolean
  /** Size of a cache that would suffice. */
  readonly advisedBytes: number
}

export interface Shortage {
  readonly listed: number
  readonly wanted: number
  /** Segments cut since the stream started. */
  readonly cut: number
  /** Segments released early since the last call. */
  readonly released: number
  /** Gaps in the playlist (EXT-X-GAP) since the last call. */
  readonly gaps: number
  /** The whole windows of all streams do not fit. */
  readonly short: boolean
  /** Size of a cache that would suffice. */
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
