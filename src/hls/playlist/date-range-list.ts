/**
 * Date ranges of a media playlist (EXT-X-DATERANGE). Each is listed until the oldest segment starts after its end.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import type { PlaylistSegment } from './playlist.ts'

/** Bounds the size of the playlist: SCTE35-OUT and SCTE35-IN of a date range may have 8 KiB of text each. */
const MAX_DATE_RANGES = 64

interface ListedDateRange {
  readonly dateRange: DateRange
  /** Media sequence number of the first segment after the latest change of the date range. */
  readonly mediaSequence: number
}

export class DateRangeList {
  /** Date ranges by ID, oldest first. */
  readonly #listed = new Map<string, ListedDateRange>()

  /** Listed date ranges, oldest first. */
  get dateRanges(): readonly DateRange[] {
    return [...this.#listed.values()].map(({ dateRange }) => dateRange)
  }

  /**
   * @param dateRange  new, or already listed and with more attributes than before
   * @param mediaSequence  media sequence number of the next segment
   * @returns whether there was room for it
   */
  add(dateRange: DateRange, mediaSequence: number): boolean {
    const { id } = dateRange
    if (this.#listed.size >= MAX_DATE_RANGES && !this.#listed.has(id)) return false
    this.#listed.set(id, { dateRange, mediaSequence })
    return true
  }

  /**
   * Removes the date ranges that end before the oldest segment.
   *
   * @param oldest  oldest listed segment
   * @param mediaSequence  media sequence number of `oldest`
   */
  expire(oldest: PlaylistSegment, mediaSequence: number): void {
    // The playlist has dates in whole milliseconds.
    const oldestMs = Math.floor(oldest.programDateTimeMs)
    for (const [id, listed] of this.#listed) {
      const { startMs, durationSec = Infinity } = listed.dateRange
      const isOver = startMs + durationSec * 1000 < oldestMs
      // Stays until the first segment after its latest change has left, even if it was announced after its end.
      if (isOver && listed.mediaSequence < mediaSequence) this.#listed.delete(id)
    }
  }
}
