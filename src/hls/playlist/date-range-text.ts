/**
 * Text of the date ranges, which all media playlists of a stream share: up to 32 KiB in each version of each playlist.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import { formatDateRange } from './playlist-format.ts'

export class DateRangeText {
  readonly #lines = new WeakMap<DateRange, string>()
  #newest = Buffer.alloc(0)

  /** Line of a date range, formatted once. */
  lineOf(dateRange: DateRange): string {
    const known = this.#lines.get(dateRange)
    if (known !== undefined) return known
    const line = formatDateRange(dateRange)
    this.#lines.set(dateRange, line)
    return line
  }

  /** Lines in one buffer: the same buffer for all playlists that list the same date ranges. */
  join(dateRanges: readonly DateRange[]): Buffer {
    const text = Buffer.from(dateRanges.map((each) => this.lineOf(each)).join(''))
    if (!text.equals(this.#newest)) this.#newest = text
    return this.#newest
  }
}
