/**
 * The rolling media playlist of one rendition.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import { BitrateMeter } from './bitrate.ts'
import { formatMediaPlaylist } from './playlist-format.ts'
import type { DateRange, PlaylistSegment } from './playlist.ts'
import type { WindowSize } from '../store/memory-share.ts'
import type { SegmentCache, SegmentOwner } from '../store/segment-cache.ts'
import type { Segment } from '../store/segment.ts'

/** RFC 8216 6.2.2: no segment leaves while fewer target durations than this remain. */
const MIN_TARGET_DURATIONS = 3

/** What is asked of memory at most, however short the segments are. */
const MAX_WINDOW_SEGMENTS = 1000

/**
 * Of so many segments the oldest leave sooner: three target durations of 10 s hold 60 of 0.5 s, but 3000 of those that a
 * source makes whose timestamps jump with each key frame.
 */
const MAX_SEGMENTS = 256

/** Each may be 8 KiB of text, in every version of the playlist. */
const MOST_DATE_RANGES = 64

export interface LivePlaylistOptions {
  /** Keeps the bytes of what is listed. */
  readonly cache: SegmentCache
  /** Name of this start of the stream, part of every version. */
  readonly epoch: string
  /** At least so many segments are listed, memory permitting. */
  readonly playlistSegments: number
  /** In whose name the cache holds the segments, and who is asked to list less; the playlist itself unless told. */
  readonly owner?: SegmentOwner
  /** Its window is that of this playlist, which lists each segment number first. */
  readonly leader?: LivePlaylist
}

/** A playlist as it is now. */
export interface RenderedPlaylist {
  /** UTF-8 text, shared by all readers; not to be changed. */
  readonly bytes: Buffer
  /** Changes whenever the bytes do; fit for a strong ETag. */
  readonly version: string
}

/** What a playlist lists, by measure and by the word of its newest media. */
export interface RenditionSummary {
  readonly tracks: readonly Track[]
  readonly peakBps: number
  readonly averageBps: number
  /** Frames a second: of the bitstream, or counted. */
  readonly frameRate?: number
  /** EXT-X-INDEPENDENT-SEGMENTS holds for all segments so far. */
  readonly independentSegments: boolean
}

interface Entry {
  readonly mediaSequence: number
  /** EXT-X-DISCONTINUITY-SEQUENCE of a playlist that starts with it. */
  readonly discontinuitySequence: number
  /** Of the media, whether there is room for it or not. */
  readonly sizeBytes: number
  readonly segment: PlaylistSegment & { gap: boolean }
  /** Of the longest playlist that listed it. */
  longestPlaylistSec: number
}

interface ListedDateRange {
  readonly dateRange: DateRange
  /** Number of the segment with which it was listed as it is. */
  readonly mediaSequence: number
}

/**
 * `append` each segment of a rendition in order, `end` when no more will come, `discard` when nobody may ask any more.
 * `media` and `segment` answer what players ask for. Times are those of `SegmentCache`.
 */
export class LivePlaylist implements SegmentOwner {
  readonly #options: LivePlaylistOptions
  readonly #owner: SegmentOwner
  readonly #bitrate = new BitrateMeter()
  /** By ID, in the order in which they were added. */
  readonly #dateRanges = new Map<string, ListedDateRange>()
  #entries: Entry[] = []
  #targetDurationSec = 0
  #independentSegments = true
  #ended = false
  #tracks: readonly Track[] = []
  /** Of the time line of the newest segment, to measure its frame rate. */
  #videoFrames = 0
  #videoSec = 0
  #revision = 0
  /** Undefined where the text must be rendered anew. */
  #media: RenderedPlaylist | undefined

  constructor(options: LivePlaylistOptions) {
    this.#options = options
    this.#owner = options.owner ?? this
  }

  /** EXT-X-TARGETDURATION; 0 before the first segment. */
  get targetDurationSec(): number {
    return this.#targetDurationSec
  }

  /** The media playlist as it is now; undefined before the first segment. */
  media(): RenderedPlaylist | undefined {
    const oldest = this.#entries[0]
    if (oldest === undefined) return undefined
    this.#media ??= this.#render(oldest)
    return this.#media
  }

  /** Number of the oldest segment listed; undefined where none is. */
  get mediaSequence(): number | undefined {
    return this.#entries[0]?.mediaSequence
  }

  /** How many segments are listed that can be fetched. */
  get segments(): number {
    return this.#entries.filter(({ segment }) => !segment.gap).length
  }

  /** Undefined before there was any media. */
  get summary(): RenditionSummary | undefined {
    if (this.#tracks.length === 0) return undefined
    const video = this.#tracks.find(({ kind }) => kind === 'video')?.parameters
    const frameRate = video?.frameRate ?? this.#videoFrames / this.#videoSec
    return {
      tracks: this.#tracks,
      peakBps: this.#bitrate.peakBps,
      averageBps: this.#bitrate.averageBps,
      ...(this.#videoFrames > 0 && { frameRate }),
      independentSegments: this.#independentSegments,
    }
  }

  get windowSize(): WindowSize {
    const { length } = this.#entries
    if (length === 0) return { minBytes: 0, wantedBytes: 0 }
    const averageBytes = this.#entries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) / length
    const averageSec = this.#durationSec / length
    const minSegments = Math.min(
      MAX_WINDOW_SEGMENTS,
      Math.ceil((MIN_TARGET_DURATIONS * this.#targetDurationSec) / averageSec),
    )
    const segments = Math.max(minSegments, this.#options.playlistSegments)
    return {
      minBytes: Math.ceil(averageBytes * minSegments),
      wantedBytes: Math.ceil(averageBytes * segments),
    }
  }

  /** Bytes of a segment that is listed or retained. */
  segment(uri: string): readonly Buffer[] | undefined {
    return this.#options.cache.get(this.#owner, uri)
  }

  append(segment: Segment, nowMs: number): void {
    const { uri, chunks, sizeBytes, durationSec, programDateTimeMs, discontinuity } = segment
    this.#targetDurationSec = segment.targetDurationSec
    const entry: Entry = {
      mediaSequence: segment.mediaSequence,
      discontinuitySequence: segment.discontinuitySequence - (discontinuity ? 1 : 0),
      sizeBytes,
      segment: { uri, durationSec, programDateTimeMs, discontinuity, gap: true },
      longestPlaylistSec: 0,
    }
    this.#entries.push(entry)
    // What it makes superfluous leaves the window first, so that its room can be taken.
    this.roll(nowMs)
    entry.segment.gap =
      sizeBytes === 0 || !this.#options.cache.put(this.#owner, uri, { chunks, nowMs })
    const playlistSec = this.#durationSec
    for (const each of this.#entries) {
      each.longestPlaylistSec = Math.max(each.longestPlaylistSec, playlistSec)
    }
    this.#describe(segment)
    this.#media = undefined
  }

  /** Lists no more than its window, as far as RFC 8216 6.2.2 permits. */
  roll(nowMs: number): void {
    while (this.#exceedsWindow && this.shrink(nowMs));
  }

  /** Those listed, in the order in which they were added. */
  get dateRanges(): readonly DateRange[] {
    return [...this.#dateRanges.values()].map(({ dateRange }) => dateRange)
  }

  /**
   * Lists a date range until it is over before the oldest segment; as it is now, at least for as long as a segment.
   *
   * @param dateRange  a new one; or one that is listed, with more attributes
   * @returns false: there is no room for it
   */
  addDateRange(dateRange: DateRange): boolean {
    const { id } = dateRange
    if (this.#dateRanges.size >= MOST_DATE_RANGES && !this.#dateRanges.has(id)) return false
    const mediaSequence = (this.#entries.at(-1)?.mediaSequence ?? -1) + 1
    this.#dateRanges.set(id, { dateRange, mediaSequence })
    this.#media = undefined
    return true
  }

  /** EXT-X-ENDLIST */
  end(): void {
    this.#ended = true
    this.#media = undefined
  }

  shrink(nowMs: number): boolean {
    const oldest = this.#entries[0]
    if (oldest === undefined) return false
    const { uri, durationSec } = oldest.segment
    const leastSec = MIN_TARGET_DURATIONS * this.#targetDurationSec
    const isCrowded = this.#entries.length > MAX_SEGMENTS
    if (!isCrowded && this.#durationSec - durationSec < leastSec) return false
    this.#entries.shift()
    const retainedSec = durationSec + oldest.longestPlaylistSec
    this.#options.cache.retain(this.#owner, uri, nowMs + retainedSec * 1000)
    this.#removeDateRanges()
    this.#media = undefined
    return true
  }

  drop(uri: string): void {
    for (const { segment } of this.#entries) {
      if (segment.uri !== uri) continue
      segment.gap = true
      this.#media = undefined
    }
  }

  /** Releases all its segments. */
  discard(): void {
    this.#options.cache.discard(this.#owner)
    this.#entries = []
  }

  get #exceedsWindow(): boolean {
    const { leader, playlistSegments } = this.#options
    const [oldest] = this.#entries
    return leader === undefined
      ? this.#entries.length > playlistSegments
      : oldest !== undefined && oldest.mediaSequence < (leader.mediaSequence ?? 0)
  }

  get #durationSec(): number {
    return this.#entries.reduce((sum, { segment }) => sum + segment.durationSec, 0)
  }

  #removeDateRanges(): void {
    const [oldest] = this.#entries
    if (oldest === undefined) return
    const { programDateTimeMs } = oldest.segment
    for (const [id, { dateRange, mediaSequence }] of this.#dateRanges) {
      const { startMs, durationSec = Infinity } = dateRange
      const isOver = startMs + durationSec * 1000 < programDateTimeMs
      // Told too late, that it is over is news all the same.
      if (isOver && mediaSequence < oldest.mediaSequence) this.#dateRanges.delete(id)
    }
  }

  #describe(segment: Segment): void {
    const { sizeBytes, durationSec, targetDurationSec } = segment
    if (sizeBytes === 0) return
    this.#bitrate.add({ sizeBytes, durationSec }, targetDurationSec)
    this.#tracks = segment.tracks
    // RFC 8216bis 4.4.3.2 speaks of all segments: once one is not, players must not count on it any more.
    if (!segment.independent) this.#independentSegments = false
    if (segment.discontinuity) {
      this.#videoFrames = 0
      this.#videoSec = 0
    }
    this.#videoFrames += segment.videoFrames
    this.#videoSec += durationSec
  }

  #render({ mediaSequence, discontinuitySequence }: Entry): RenderedPlaylist {
    const text = formatMediaPlaylist({
      targetDurationSec: this.#targetDurationSec,
      mediaSequence,
      discontinuitySequence,
      independentSegments: this.#independentSegments,
      ended: this.#ended,
      dateRanges: this.dateRanges,
      segments: this.#entries.map(({ segment }) => segment),
    })
    this.#revision++
    return { bytes: Buffer.from(text), version: `${this.#options.epoch}-${this.#revision}` }
  }
}
