/**
 * Shortage of memory for the segments of a stream.
 *
 * @module
 */
import type { PlaylistReport } from '../api/records.ts'

/** Input of `observe`. */
export interface PlaylistFigures extends PlaylistReport {
  /** Segments of the main rendition since the stream started, gaps included. */
  readonly cutSegments: number
  /** Whether the cache is too small for the whole windows of all streams, their retained segments and their queues. */
  readonly short: boolean
  /** Recommended size of the cache. */
  readonly advisedBytes: number
}

export interface Shortage {
  /** Segments in the main playlist, without gaps. */
  readonly listed: number
  /** Segments that the main playlist has when memory suffices. */
  readonly wanted: number
  /** Segments of the main rendition since the stream started, gaps included. */
  readonly cut: number
  /** Segments released earlier than RFC 8216 6.2.2 allows, since the previous `observe`. */
  readonly released: number
  /** Segments not stored for lack of memory, since the previous `observe`; the playlist lists them as gaps. */
  readonly gaps: number
  /** Whether the cache is too small for the whole windows of all streams, their retained segments and their queues. */
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
