/**
 * Date ranges of a media playlist (EXT-X-DATERANGE), until they are over before its oldest segment.
 *
 * @module
 */
import type { DateRange, PlaylistSegment } from './playlist.ts'

/** Each may be 8 KiB of text, in every version of the playlist. */
const MAX_DATE_RANGES = 64

interface ListedDateRange {
  readonly dateRange: DateRange
  /** Number of the segment with which it was listed as it is. */
  readonly mediaSequence: number
}

export class DateRangeList {
  /** By ID, in the order in which they were added. */
  readonly #listed = new Map<string, ListedDateRange>()

  /** In the order in which they were added. */
  get dateRanges(): readonly DateRange[] {
    return [...this.#listed.values()].map(({ dateRange }) => dateRange)
  }

  /**
   * @param dateRange  a new one; or one that is listed, with more attributes
   * @param mediaSequence  number of the next segment
   * @returns false where the list is full
   */
  add(dateRange: DateRange, mediaSequence: number): boolean {
    const { id } = dateRange
    if (this.#listed.size >= MAX_DATE_RANGES && !this.#listed.has(id)) return false
    this.#listed.set(id, { dateRange, mediaSequence })
    return true
  }

  /** Removes those that are over before the oldest segment. Each was listed for at least one segment. */
  expire(oldest: PlaylistSegment, mediaSequence: number): void {
    for (const [id, listed] of this.#listed) {
      const { startMs, durationSec = Infinity } = listed.dateRange
      const isOver = startMs + durationSec * 1000 < oldest.programDateTimeMs
      // One that was announced after it was over is listed all the same.
      if (isOver && listed.mediaSequence < mediaSequence) this.#listed.delete(id)
    }
  }
}
