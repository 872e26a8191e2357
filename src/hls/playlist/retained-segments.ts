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
  readonly #retained: { readonly entry: ListedSegment; readonly untilMs: number }[] = []

  constructor(files: Pick<FileStore, 'remove'>) {
    this.#files = files
  }

  /** Media sequence number of the oldest segment; undefined without any. */
  get mediaSequence(): number | undefined {
    return this.#retained[0]?.entry.mediaSequence
  }

  /** Retained segments, oldest first; some of them may be gone. */
  get entries(): readonly ListedSegment[] {
    return this.#retained.map(({ entry }) => entry)
  }

  /** Retained segment of this number; undefined for another number. */
  find(mediaSequence: number): ListedSegment | undefined {
    return this.#retained[mediaSequence - (this.mediaSequence ?? Infinity)]?.entry
  }

  /**
   * Retains the next segment for its duration and that of the longest playlist that listed it. Forgets those that are
   * gone.
   *
   * @param keptFrom  lowest number that is not forgotten: the first rendition has it, and so has the manifest
   */
  add(entry: ListedSegment, nowMs: number, keptFrom = Infinity): void {
    const { uri, durationSec } = entry.segment
    const untilMs = nowMs + (durationSec + entry.longestPlaylistSec) * 1000
    this.#files.remove(uri, untilMs)
    this.#retained.push({ entry, untilMs })
    const isForgotten = (untilMs = Infinity) =>
      untilMs <= nowMs && (this.mediaSequence ?? Infinity) < keptFrom
    while (isForgotten(this.#retained[0]?.untilMs)) this.#retained.shift()
  }

  clear(): void {
    this.#retained.length = 0
  }
}
