/**
 * How far the memory for segments falls short of what a stream wants.
 *
 * @module
 */
import type { PlaylistReport } from '../contract/report.ts'

/** What `observe` looks at. */
export interface PlaylistFigures extends PlaylistReport {
  /** Segments that were cut since the stream started. */
  readonly cutSegments: number
  /** Memory that all streams together would take with their whole windows. */
  readonly neededBytes: number
}

export interface Shortage {
  readonly listed: number
  readonly wanted: number
  /** Segments cut since the stream started. */
  readonly cut: number
  /** Segments released early since the last look. */
  readonly released: number
  /** Segments missing in the playlist since the last look. */
  readonly gaps: number
  /** Memory that all streams together would take. */
  readonly neededBytes: number
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
      neededBytes: figures.neededBytes,
    }
  }
}
