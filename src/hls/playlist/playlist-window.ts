/**
 * Window of complete segments that a media playlist lists, and segments that have left it.
 *
 * @module
 */
import { mixVideoRanges, type VideoRange } from '../../codec/video-parameters.ts'
import { PART_BYTES } from '../store/part-files.ts'
import type { WindowSize } from '../store/memory-share.ts'
import type { PlaylistPart, PlaylistSegment } from './playlist.ts'
import type { FileStore } from '../store/file-store.ts'

/** Minimum duration of the playlist after a removal, in target durations (RFC 8216 6.2.2). */
const MIN_TARGET_DURATIONS = 3

/** Maximum number of segments for which a minimum window reserves memory, however short they are. */
const MAX_WINDOW_SEGMENTS = 1000

/**
 * Number of segments above which the minimum duration does not apply. Three target durations of 10 s are 60 segments of
 * 0.5 s, but 3000 segments of 10 ms from a source whose timestamps jump at each key frame.
 */
const MAX_SEGMENTS = 256

/** More than the rounding error of a sum of durations, and less than a tick of 90 kHz. */
const SUM_ERROR_SEC = 1e-6

/** Maximum rounding of an EXTINF with five decimals. */
const PRINT_ERROR_SEC = 5e-6

export interface ListedSegment {
  readonly mediaSequence: number
  /** EXT-X-DISCONTINUITY-SEQUENCE of a playlist that starts with this segment. */
  readonly discontinuitySequence: number
  /** Size of the segment, even if memory had no room for it. */
  readonly sizeBytes: number
  /** Whether all frames can be decoded without other segments. */
  readonly independent: boolean
  /** Dynamic range of the video; undefined without video. */
  readonly videoRange: VideoRange | undefined
  readonly segment: PlaylistSegment & { gap: boolean }
  /** URI of its init segment; of a gap, that of the segment before; undefined without. */
  readonly map: string | undefined
  /** Number of its parts whose objects the cache counts. */
  readonly partCount: number
  /** Parts of the segment; none once they have left the playlist. */
  parts: readonly PlaylistPart[]
  /** Whether an earlier process listed the segment, with parts that are not known. */
  readonly isEarlier?: boolean
  /** EXT-X-PROGRAM-DATE-TIME of the next segment; undefined before a discontinuity, and where `isEarlier`. */
  readonly nextDateTimeMs: number | undefined
  /** Whether the segment became a gap after it was listed with media. */
  dropped: boolean
  /** Duration of the longest playlist that listed this segment. */
  longestPlaylistSec: number
}

/** Properties of all listed segments together, which parts do not change. */
interface Summary {
  readonly isIndependent: boolean
  readonly hasDiscontinuity: boolean
  /** Number of segments before the first one that became a gap after it was listed with media. */
  readonly undropped: number
}

export class PlaylistWindow {
  #entries: ListedSegment[] = []
  #summary: Summary | undefined
  #revision = 0

  /** Listed segments, oldest first. */
  get entries(): readonly ListedSegment[] {
    return this.#entries
  }

  /** Number of changes of the segments so far. */
  get revision(): number {
    return this.#revision
  }

  get oldest(): ListedSegment | undefined {
    return this.#entries[0]
  }

  get newest(): ListedSegment | undefined {
    return this.#entries.at(-1)
  }

  /** Listed segment of this number; undefined for another number. */
  find(mediaSequence: number): ListedSegment | undefined {
    const index = mediaSequence - (this.oldest?.mediaSequence ?? Infinity)
    return index < 0 ? undefined : this.#entries[index]
  }

  get durationSec(): number {
    return this.#entries.reduce((sum, { segment }) => sum + segment.durationSec, 0)
  }

  /** Number of segments that are not gaps. */
  get availableSegments(): number {
    return this.#entries.filter(({ segment }) => !segment.gap).length
  }

  /** Dynamic range of all segments together; undefined without video. */
  get videoRange(): VideoRange | undefined {
    return mixVideoRanges(this.#entries.map(({ videoRange }) => videoRange))
  }

  /**
   * EXT-X-INDEPENDENT-SEGMENTS, which applies to every listed segment (RFC 8216bis 4.4.2.1): the tag is absent while
   * the playlist lists a segment that cannot be decoded alone. Unlike EXT-X-TARGETDURATION (6.2.1), the tag may change;
   * hls.js and Shaka ignore it. Without it http-streaming 3.17 fetches an independent part again where its buffer ends
   * there (`chooseNextRequest_`), until it excludes the playlist.
   */
  get isIndependent(): boolean {
    return this.#summarize().isIndependent
  }

  get hasDiscontinuity(): boolean {
    return this.#summarize().hasDiscontinuity
  }

  /** Number of segments before the first one that became a gap after it was listed with media. */
  get undroppedSegments(): number {
    return this.#summarize().undropped
  }

  /**
   * Measures a window of segments like those listed.
   *
   * @param wantedSegments  number of segments that the window should have
   * @param targetDurationSec  undefined until it is fixed
   */
  measure(wantedSegments: number, targetDurationSec: number | undefined): WindowSize {
    const { length } = this.#entries
    if (length === 0) return { minBytes: 0, wantedBytes: 0 }
    const totalBytes = this.#entries.reduce(
      (sum, { sizeBytes, partCount }) => sum + sizeBytes + partCount * PART_BYTES,
      0,
    )
    const averageBytes = totalBytes / length
    const averageSec = this.durationSec / length
    const minSegments = Math.min(
      MAX_WINDOW_SEGMENTS,
      Math.ceil((MIN_TARGET_DURATIONS * (targetDurationSec ?? averageSec)) / averageSec),
    )
    const segments = Math.max(minSegments, wantedSegments)
    return {
      minBytes: Math.ceil(averageBytes * minSegments),
      wantedBytes: Math.ceil(averageBytes * segments),
    }
  }

  push(entry: ListedSegment): void {
    this.#entries.push(entry)
    this.#change()
  }

  /** Lists an older segment, unless the window has its minimum duration, as EXTINF prints it. @returns whether it does */
  unshift(entry: ListedSegment, targetDurationSec: number): boolean {
    const printErrorSec = this.#entries.length * PRINT_ERROR_SEC
    const minSec = MIN_TARGET_DURATIONS * targetDurationSec - printErrorSec
    if (this.#entries.length >= MAX_SEGMENTS || this.durationSec >= minSec) return false
    this.#entries.unshift(entry)
    this.#change()
    return true
  }

  /** Lists the media of a segment that was pushed as a gap. */
  addMedia(entry: ListedSegment): void {
    entry.segment.gap = false
    this.#change()
  }

  /** Records the duration of the playlist for its segments. */
  recordDuration(): void {
    const { durationSec } = this
    for (const entry of this.#entries) {
      entry.longestPlaylistSec = Math.max(entry.longestPlaylistSec, durationSec)
    }
  }

  /**
   * Removes the oldest segment.
   *
   * @returns undefined if none may leave, since the window has its minimum duration
   */
  shift(targetDurationSec: number): ListedSegment | undefined {
    const [oldest] = this.#entries
    if (oldest === undefined || this.#entries.length === 1) return undefined
    const minSec = MIN_TARGET_DURATIONS * targetDurationSec
    const isCrowded = this.#entries.length > MAX_SEGMENTS
    if (!isCrowded && this.durationSec - oldest.segment.durationSec < minSec) return undefined
    this.#change()
    return this.#entries.shift()
  }

  /** Turns a segment into a gap. @returns the segment; undefined if it is not listed */
  drop(uri: string): ListedSegment | undefined {
    const dropped = this.#entries.find(({ segment }) => segment.uri === uri)
    if (dropped === undefined) return undefined
    dropped.segment.gap = true
    dropped.dropped = true
    this.#change()
    return dropped
  }

  /** @returns number of segments that end at least `sec` before the end of the newest segment */
  countBefore(sec: number): number {
    let laterSec = 0
    for (let index = this.#entries.length; index > 0; index--) {
      if (laterSec > sec - SUM_ERROR_SEC) return index
      laterSec += this.#entries[index - 1]!.segment.durationSec
    }
    return 0
  }

  clear(): void {
    this.#entries = []
    this.#change()
  }

  #change(): void {
    this.#summary = undefined
    this.#revision++
  }

  #summarize(): Summary {
    if (this.#summary !== undefined) return this.#summary
    const entries = this.#entries
    const dropped = entries.findIndex((entry) => entry.dropped)
    this.#summary = {
      isIndependent: entries.every(({ independent, segment }) => independent || segment.gap),
      hasDiscontinuity: entries.some(({ segment }) => segment.discontinuity),
      undropped: dropped === -1 ? entries.length : dropped,
    }
    return this.#summary
  }
}

/**
 * Segments that have left the window and are still available (RFC 8216 6.2.2). Times are in milliseconds of the monotonic
 * clock of `SegmentCache`.
 */
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
   * @param keptFrom  lowest number that is not forgotten, since the checkpoint keeps it
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
