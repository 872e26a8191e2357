/**
 * Whether the memory for segments suffices for a stream, in words for whoever runs the service.
 *
 * Sans-IO: `observe` takes what the playlist lists and what was counted; `warning` is the one that holds. It begins at
 * once and ends when nothing was short for 30 s.
 *
 * @module
 */
import type { PlaylistReport, Warning } from '../contract/report.ts'

const ENDS_BY_US = 30_000_000
const MIB = 1024 * 1024

/** What `observe` looks at. */
export interface PlaylistFigures extends PlaylistReport {
  /** Segments that were cut since the stream started. */
  readonly cutSegments: number
  /** Memory that all streams together would take with their whole windows. */
  readonly neededBytes: number
}

export class ShortageWatch {
  /** Counters before the shortage began. */
  #before: PlaylistReport | undefined
  #last: PlaylistReport | undefined
  /** Shortest window of the shortage. */
  #listed = Infinity
  #shortUs = -Infinity
  #warning: Warning | undefined

  get warning(): Warning | undefined {
    return this.#warning
  }

  observe(figures: PlaylistFigures, nowUs: number): void {
    const last = this.#last ?? figures
    this.#last = figures
    const { listedSegments, wantedSegments, cutSegments, releasedEarly, gaps } = figures
    const isShort =
      listedSegments < Math.min(wantedSegments, cutSegments) ||
      releasedEarly > last.releasedEarly ||
      gaps > last.gaps
    if (isShort) {
      this.#shortUs = nowUs
      this.#before ??= last
      this.#listed = Math.min(this.#listed, listedSegments)
    } else if (nowUs - this.#shortUs >= ENDS_BY_US) {
      this.#before = undefined
      this.#listed = Infinity
      this.#warning = undefined
    }
    if (this.#before !== undefined) {
      this.#warning = cacheTooSmall(figures, {
        listed: this.#listed,
        released: releasedEarly - this.#before.releasedEarly,
        gaps: gaps - this.#before.gaps,
      })
    }
  }
}

function cacheTooSmall(
  { wantedSegments, neededBytes }: PlaylistFigures,
  { listed, released, gaps }: { listed: number; released: number; gaps: number },
): Warning {
  const seen =
    gaps > 0
      ? 'Viewers see holes.'
      : released > 0
        ? 'Slow viewers miss segments.'
        : 'Viewers can rewind less.'
  return {
    code: 'CACHE_TOO_SMALL',
    message: `Memory is short: ${listed} of ${wantedSegments} segments listed, ${released} released early, ${gaps} gaps. ${seen} Set CACHE_MAX_MIB to ${Math.ceil(neededBytes / MIB)}.`,
  }
}
