/**
 * Date ranges of a media playlist (EXT-X-DATERANGE). Each is listed until the oldest segment starts after its end.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import type { PlaylistSegment } from './playlist.ts'
import { formatDateRange } from './playlist-format.ts'

const MAX_DATE_RANGES = 64

/** Maximum size of all lines: SCTE35-OUT and SCTE35-IN of a date range may have 8 KiB of text each. */
const MAX_BYTES = 32 * 1024

/** Room for the DURATION of a date range that has none yet. */
const DURATION_BYTES = ',DURATION=123456789.00000'.length

interface ListedDateRange {
  readonly dateRange: DateRange
  /** Size of its line, with room for its DURATION. */
  readonly bytes: number
  /** Media sequence number of the first segment after the latest change of the date range. */
  readonly mediaSequence: number
}

export class DateRangeList {
  /** Date ranges by ID, oldest first. */
  readonly #listed = new Map<string, ListedDateRange>()
  readonly #lines: DateRangeText
  #text: Buffer | undefined

  /** @param lines  shared by the playlists of a stream; default: not shared */
  constructor(lines = new DateRangeText()) {
    this.#lines = lines
  }

  /** Lines of all date ranges: the same buffer until a change. */
  get text(): Buffer {
    this.#text ??= this.#lines.join(this.dateRanges)
    return this.#text
  }

  /** Listed date ranges, oldest first. */
  get dateRanges(): readonly DateRange[] {
    return [...this.#listed.values()].map(({ dateRange }) => dateRange)
  }

  /**
   * Adds a date range if there is room: none may leave for a newer one (RFC 8216bis 6.2.1). There is always room for the
   * duration of a listed one, so that it leaves after its end.
   *
   * @param dateRange  new, or already listed and with more attributes than before
   * @param mediaSequence  media sequence number of the next segment
   * @returns the date range as it is listed now; undefined if it is not listed
   */
  add(dateRange: DateRange, mediaSequence: number): DateRange | undefined {
    const { id, durationSec } = dateRange
    const known = this.#listed.get(id)
    const ended = known && { ...known.dateRange, ...(durationSec !== undefined && { durationSec }) }
    const listed = this.#hasRoom(dateRange, known) ? dateRange : ended
    if (listed === undefined) return undefined
    this.#listed.set(id, { dateRange: listed, bytes: this.#sizeOf(listed), mediaSequence })
    this.#text = undefined
    return listed
  }

  #hasRoom(dateRange: DateRange, known: ListedDateRange | undefined): boolean {
    if (known === undefined && this.#listed.size >= MAX_DATE_RANGES) return false
    let bytes = this.#sizeOf(dateRange) - (known?.bytes ?? 0)
    for (const each of this.#listed.values()) bytes += each.bytes
    return bytes <= MAX_BYTES
  }

  #sizeOf(dateRange: DateRange): number {
    const reserved = dateRange.durationSec === undefined ? DURATION_BYTES : 0
    return this.#lines.lineOf(dateRange).length + reserved
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
      if (!isOver || listed.mediaSequence >= mediaSequence) continue
      this.#listed.delete(id)
      this.#text = undefined
    }
  }
}

/** Lines of the date ranges, which all media playlists of a stream share: up to 32 KiB in each version of each. */
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
