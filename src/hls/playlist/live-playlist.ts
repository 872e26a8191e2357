/**
 * Rolling media playlist of one rendition.
 *
 * @module
 */
import { mixVideoRanges, type VideoRange } from '../../codec/video-range.ts'
import type { DateRange } from '../date-range.ts'
import { playlistUri, type RenditionName } from '../file-names.ts'
import type { FileStore } from '../store/file-store.ts'
import type { WindowSize } from '../store/memory-share.ts'
import type { Segment } from '../store/segment.ts'
import { createStreamFile, type StreamFile } from '../store/stream-file.ts'
import { DateRangeList } from './date-range-list.ts'
import { formatMediaPlaylist } from './playlist-format.ts'
import type { PlaylistSegment } from './playlist.ts'
import { RenditionMeter, type RenditionSummary } from './rendition-meter.ts'

/** Minimum duration of the playlist after a removal, in target durations (RFC 8216 6.2.2). */
const MIN_TARGET_DURATIONS = 3

/** Maximum number of segments for which a minimum window reserves memory, however short they are. */
const MAX_WINDOW_SEGMENTS = 1000

/**
 * Number of segments above which the minimum duration does not apply. Three target durations of 10 s are 60 segments of
 * 0.5 s, but 3000 segments of 10 ms from a source whose timestamps jump at each key frame.
 */
const MAX_SEGMENTS = 256

export interface LivePlaylistOptions {
  /** Receives the playlist and its segments. */
  readonly files: FileStore
  readonly rendition: RenditionName
  /** Identifier of this run of the stream, from start to stop; part of each file's version. */
  readonly epoch: string
  /** Minimum number of listed segments, memory permitting. */
  readonly playlistSegments: number
  /** Playlist of the main rendition, whose window all other playlists follow; undefined for the main rendition. */
  readonly main?: LivePlaylist
}

interface Entry {
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
  /** Duration of the longest playlist that listed this segment. */
  longestPlaylistSec: number
}

/**
 * Calling order: `append` each segment of the rendition, `open` once EXT-X-TARGETDURATION is fixed, `end` after the
 * last segment, `discard` to drop all. From `open` on, each change publishes a new version of the file. Times are in
 * milliseconds of the monotonic clock of `SegmentCache`.
 */
export class LivePlaylist {
  readonly #options: LivePlaylistOptions
  readonly #meter = new RenditionMeter()
  readonly #dateRanges = new DateRangeList()
  #entries: Entry[] = []
  /** Segments appended before `open`, in order: their bitrate is measured when the target duration is known. */
  #unmetered: Segment[] = []
  #targetDurationSec: number | undefined
  #ended = false
  #revision = 0

  constructor(options: LivePlaylistOptions) {
    this.#options = options
  }

  /** Media sequence number of the oldest listed segment; undefined for an empty playlist. */
  get mediaSequence(): number | undefined {
    return this.#entries[0]?.mediaSequence
  }

  /** Media sequence number of the newest segment; undefined for an empty playlist. */
  get latestSequence(): number | undefined {
    return this.#entries.at(-1)?.mediaSequence
  }

  /** Number of listed segments, without gaps. */
  get segments(): number {
    return this.#entries.filter(({ segment }) => !segment.gap).length
  }

  /** Summary for the multivariant playlist; undefined until a segment has media. */
  get summary(): RenditionSummary | undefined {
    const { summary } = this.#meter
    const videoRange = mixVideoRanges(this.#entries.map((entry) => entry.videoRange))
    return summary && { ...summary, ...(videoRange !== undefined && { videoRange }) }
  }

  get windowSize(): WindowSize {
    const { length } = this.#entries
    if (length === 0) return { minBytes: 0, wantedBytes: 0 }
    const averageBytes = this.#entries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) / length
    const averageSec = this.#durationSec / length
    const minSegments = Math.min(
      MAX_WINDOW_SEGMENTS,
      Math.ceil((MIN_TARGET_DURATIONS * (this.#targetDurationSec ?? averageSec)) / averageSec),
    )
    const segments = Math.max(minSegments, this.#options.playlistSegments)
    return {
      minBytes: Math.ceil(averageBytes * minSegments),
      wantedBytes: Math.ceil(averageBytes * segments),
    }
  }

  /** Publishes the playlist, and from now on each change to it. */
  open(targetDurationSec: number): void {
    this.#targetDurationSec = targetDurationSec
    for (const segment of this.#unmetered.splice(0)) this.#meter.add(segment, targetDurationSec)
    this.#publish()
  }

  append(segment: Segment, nowMs: number): void {
    const { uri, chunks, sizeBytes, durationSec, programDateTimeMs, discontinuity } = segment
    const targetDurationSec = this.#targetDurationSec
    const entry: Entry = {
      mediaSequence: segment.mediaSequence,
      discontinuitySequence: segment.discontinuitySequence - (discontinuity ? 1 : 0),
      sizeBytes,
      independent: segment.independent,
      videoRange: segment.tracks.find(({ kind }) => kind === 'video')?.parameters?.videoRange,
      segment: { uri, durationSec, programDateTimeMs, discontinuity, gap: true },
      longestPlaylistSec: 0,
    }
    this.#entries.push(entry)
    // Shrinks the window first, so that the cache may release the removed segments if memory is short.
    this.roll(nowMs)
    const lifetimeSec = targetDurationSec ?? Math.ceil(durationSec)
    const file = createStreamFile('segment', {
      chunks,
      version: uri,
      targetDurationSec: lifetimeSec,
    })
    entry.segment.gap = sizeBytes === 0 || !this.#options.files.put(uri, file, nowMs)
    const playlistSec = this.#durationSec
    for (const each of this.#entries) {
      each.longestPlaylistSec = Math.max(each.longestPlaylistSec, playlistSec)
    }
    if (targetDurationSec === undefined) this.#unmetered.push(segment)
    else this.#meter.add(segment, targetDurationSec)
    this.#publish()
  }

  /** Removes the segments that exceed the window, as far as RFC 8216 6.2.2 permits. */
  roll(nowMs: number): void {
    while (this.#exceedsWindow && this.shrink(nowMs));
  }

  /** Listed date ranges, oldest first. */
  get dateRanges(): readonly DateRange[] {
    return this.#dateRanges.dateRanges
  }

  /**
   * Lists a date range until the oldest segment starts after its end and the first segment after its latest change has
   * left the playlist.
   *
   * @param dateRange  new, or already listed and with more attributes than before
   * @returns whether there was room for it
   */
  addDateRange(dateRange: DateRange): boolean {
    const nextSequence = (this.#entries.at(-1)?.mediaSequence ?? -1) + 1
    if (!this.#dateRanges.add(dateRange, nextSequence)) return false
    this.#publish()
    return true
  }

  /** Adds EXT-X-ENDLIST. */
  end(): void {
    this.#ended = true
    this.#publish()
  }

  /**
   * Removes the oldest segment from the window and retains it.
   *
   * @returns false if the window has its minimum duration, or is not published yet
   */
  shrink(nowMs: number): boolean {
    const [oldest, next] = this.#entries
    const targetDurationSec = this.#targetDurationSec
    if (oldest === undefined || next === undefined || targetDurationSec === undefined) return false
    const { uri, durationSec } = oldest.segment
    const minSec = MIN_TARGET_DURATIONS * targetDurationSec
    const isCrowded = this.#entries.length > MAX_SEGMENTS
    if (!isCrowded && this.#durationSec - durationSec < minSec) return false
    this.#entries.shift()
    const retainedSec = durationSec + oldest.longestPlaylistSec
    this.#options.files.remove(uri, nowMs + retainedSec * 1000)
    this.#dateRanges.expire(next.segment, next.mediaSequence)
    this.#publish()
    return true
  }

  /** Turns a segment into a gap: its file is no longer available. */
  drop(uri: string): void {
    for (const { segment } of this.#entries) {
      if (segment.uri !== uri) continue
      segment.gap = true
      this.#publish()
    }
  }

  /** Drops all entries. */
  discard(): void {
    this.#entries = []
  }

  get #exceedsWindow(): boolean {
    const { main, playlistSegments } = this.#options
    const [oldest] = this.#entries
    return main === undefined
      ? this.#entries.length > playlistSegments
      : oldest !== undefined && oldest.mediaSequence < (main.mediaSequence ?? 0)
  }

  /**
   * EXT-X-INDEPENDENT-SEGMENTS, which applies to every listed segment (RFC 8216bis 4.4.2.1): the tag is absent while
   * the playlist lists a segment that cannot be decoded alone. Unlike EXT-X-TARGETDURATION (6.2.1), the tag may change;
   * hls.js and Shaka ignore it.
   */
  get #isIndependent(): boolean {
    return this.#entries.every(({ independent, segment }) => independent || segment.gap)
  }

  get #durationSec(): number {
    return this.#entries.reduce((sum, { segment }) => sum + segment.durationSec, 0)
  }

  /** Publishes a new version of the file if the playlist is open and not empty. */
  #publish(): void {
    const [oldest] = this.#entries
    const targetDurationSec = this.#targetDurationSec
    if (oldest === undefined || targetDurationSec === undefined) return
    const { files, rendition } = this.#options
    files.replace(playlistUri(rendition), () => this.#render(oldest, targetDurationSec))
  }

  #render({ mediaSequence, discontinuitySequence }: Entry, targetDurationSec: number): StreamFile {
    const text = formatMediaPlaylist({
      targetDurationSec,
      mediaSequence,
      discontinuitySequence,
      independentSegments: this.#isIndependent,
      ended: this.#ended,
      dateRanges: this.dateRanges,
      segments: this.#entries.map(({ segment }) => segment),
    })
    const version = `${this.#options.epoch}-${++this.#revision}`
    const chunks = [Buffer.from(text)]
    return createStreamFile('media-playlist', { chunks, version, targetDurationSec })
  }
}
