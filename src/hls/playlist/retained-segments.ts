/**
 * Segments that have left a playlist and are still available (RFC 8216 6.2.2).
 *
 * @module
 */
import type { FileStore } from '../store/file-store.ts'
import type { ListedSegment } from './playlist-window.ts'

/** Times are in milliseconds of the monotonic clock of `SegmentCache`. */
export class RetainedSegments {
  readonly #files: Pick<FileStore, 'remove'>
  /** With the time of their removal, oldest first. */
  readonly #entries: { readonly entry: ListedSegment; readonly untilMs: number }[] = []

  constructor(files: Pick<FileStore, 'remove'>) {
    this.#files = files
  }

  /** Media sequence number of the oldest segment; undefined without any. */
  get mediaSequence(): number | undefined {
    return this.#entries[0]?.entry.mediaSequence
  }

  /** Retained segment of this number; undefined for another number. */
  find(mediaSequence: number): ListedSegment | undefined {
    return this.#entries[mediaSequence - (this.mediaSequence ?? Infinity)]?.entry
  }

  /** Retains the next segment for its duration and that of the longest playlist that listed it. Forgets those that are gone. */
  add(entry: ListedSegment, nowMs: number): void {
    const { uri, durationSec } = entry.segment
    const untilMs = nowMs + (durationSec + entry.longestPlaylistSec) * 1000
    this.#files.remove(uri, untilMs)
    this.#entries.push({ entry, untilMs })
    while ((this.#entries[0]?.untilMs ?? Infinity) <= nowMs) this.#entries.shift()
  }

  clear(): void {
    this.#entries.length = 0
  }
}
