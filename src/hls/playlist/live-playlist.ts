/**
 * Rolling media playlist of one rendition.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import { isCmafRendition, playlistUri, type RenditionName } from '../file-names.ts'
import type { FileStore } from '../store/file-store.ts'
import type { WindowSize } from '../store/memory-share.ts'
import type { Part, InitSegment, Segment } from '../store/segment.ts'
import { blockingLimits, createStreamFile, type StreamFile } from '../store/stream-file.ts'
import { DateRangeList, type DateRangeText } from './date-range-list.ts'
import { listEarlier, type EarlierSegments } from './earlier-segments.ts'
import type { TargetDurations } from '../target-durations.ts'
import { LiveEdge, listPart } from './live-edge.ts'
import { formatHead, formatSegment, formatTail } from './playlist-format.ts'
import { PlaylistWindow, type ListedSegment, RetainedSegments } from './playlist-window.ts'
import type { RenditionReport } from './playlist.ts'
import { WindowText } from './window-text.ts'
import { RenditionMeter, type MeterState, type RenditionSummary } from './rendition-meter.ts'

interface LivePlaylistOptions {
  /** Receives the playlist, its segments and their parts. */
  readonly files: FileStore
  readonly rendition: RenditionName
  /** Identifies what this process serves of the stream; part of each file's version. */
  readonly epoch: string
  /** Minimum number of listed segments, memory permitting. */
  readonly playlistSegments: number
  /** First playlist, whose window all others follow; undefined for the first one itself. */
  readonly main?: LivePlaylist
  /** Shared by the playlists of a stream; default: not shared. */
  readonly dateRangeText?: DateRangeText
  /** Returns the reports of all other playlists; default none. */
  readonly otherReports?: () => readonly RenditionReport[]
}

/** Max number of removed segments whose records `keepFrom` keeps. */
const MAX_KEPT = 100

/**
 * Calling order: `append` each segment of the rendition, with low latency `appendPart` each of its parts before; `measure`
 * and `open` once EXT-X-TARGETDURATION is fixed, `end` after the last segment, `discard` to drop all. To continue the
 * playlist of an earlier process, `restore` and `open` it first. From `open` on, each change publishes a new version of the
 * file. Times are in milliseconds of the monotonic clock of `SegmentCache`.
 */
export class LivePlaylist {
  readonly #options: LivePlaylistOptions
  readonly #meter = new RenditionMeter()
  readonly #dateRanges: DateRangeList
  readonly #window = new PlaylistWindow()
  readonly #retained: RetainedSegments
  readonly #text = new WindowText(this.#window)
  readonly #edge: LiveEdge
  /** Segments appended before `measure`, in order: their bitrate is measured when the target duration is known. */
  #unmetered: Segment[] = []
  /** EXT-X-TARGETDURATION for measurements, which may be known before `open`. */
  #measuredSec: number | undefined
  #target: TargetDurations | undefined
  /** Init segments in the files, oldest first. */
  readonly #inits = new Map<string, InitSegment>()
  #ended = false
  #revision = 0
  #keptFrom = Infinity

  constructor(options: LivePlaylistOptions) {
    this.#options = options
    this.#dateRanges = new DateRangeList(options.dateRangeText)
    this.#retained = new RetainedSegments(options.files)
    const main = options.main && options.main.#edge
    this.#edge = new LiveEdge(this.#window, { ...options, main })
  }

  /** Media sequence number of the oldest listed segment; undefined for an empty playlist. */
  get mediaSequence(): number | undefined {
    return this.#window.oldest?.mediaSequence
  }

  /** Media sequence number of the oldest segment, listed or retained; undefined for an empty playlist. */
  get oldestSequence(): number | undefined {
    return this.#retained.mediaSequence ?? this.mediaSequence
  }

  /** Media sequence number of the newest complete segment; undefined for an empty playlist. */
  get latestSequence(): number | undefined {
    return this.#window.newest?.mediaSequence
  }

  /** Whether the newest complete segment has parts. */
  get hasParts(): boolean {
    return (this.#window.newest?.parts.length ?? 0) > 0
  }

  /** Number of listed segments, without gaps. */
  get segments(): number {
    return this.#window.availableSegments
  }

  /** Summary for the multivariant playlist; undefined until a segment has media. */
  get summary(): RenditionSummary | undefined {
    const { summary } = this.#meter
    const { videoRange } = this.#window
    return summary && { ...summary, ...(videoRange !== undefined && { videoRange }) }
  }

  get windowSize(): WindowSize {
    return this.#window.measure(this.#options.playlistSegments, this.#target?.targetSec)
  }

  /** State of the measurements; undefined until a segment has media. */
  get meter(): MeterState | undefined {
    return this.#meter.state
  }

  /** Listed or retained segment of this number; undefined for another number. */
  find(mediaSequence: number): ListedSegment | undefined {
    return this.#window.find(mediaSequence) ?? this.#retained.find(mediaSequence)
  }

  /** Date of the segment behind the newest one, as far as it is known; undefined for another number. */
  nextDateOf(mediaSequence: number): number | undefined {
    return this.latestSequence === mediaSequence - 1 ? this.#edge.dateMs : undefined
  }

  /** EXT-X-RENDITION-REPORT for the other playlists; undefined until the playlist is published. */
  get report(): RenditionReport | undefined {
    return this.#target && this.#edge.report
  }

  /** Lists the segments of an earlier process, without their parts; those without media are gaps. */
  restore(earlier: EarlierSegments, nowMs: number): void {
    const { meter } = earlier
    if (meter !== undefined) this.#meter.restore(meter)
    const [window, retained, { files }] = [this.#window, this.#retained, this.#options]
    const onInit = (init: InitSegment) => this.#putInit(init)
    const newest = listEarlier(earlier, { window, retained, files, onInit }, nowMs)
    if (newest === undefined) return
    const { segment, independent: startsWithKeyFrame } = newest
    this.#setPreview({ uri: segment.uri, startsWithKeyFrame, tracks: meter?.tracks ?? [] })
  }

  /** Measures the segments so far, and later ones as they are appended. @param targetSec  EXT-X-TARGETDURATION */
  measure(targetSec: number): void {
    this.#measuredSec = targetSec
    for (const segment of this.#unmetered.splice(0)) this.#meter.add(segment, targetSec)
  }

  /**
   * Publishes the playlist, and from now on each change to it.
   *
   * @param targetSec  EXT-X-TARGETDURATION
   * @param partTargetSec  PART-TARGET; undefined for a playlist without parts
   */
  open(targetSec: number, partTargetSec?: number): void {
    this.#target = { targetSec, partTargetSec }
    // Their lifetime is in target durations, and no playlist has named them so far.
    for (const init of this.#inits.values()) this.#storeInit(init, targetSec)
    this.measure(targetSec)
    this.#publish()
  }

  /** Adds the next part of the segment that is not complete. */
  appendPart(part: Part): void {
    const { uri, chunks, segmentUri, rendition, map } = part
    if (chunks.length > 0) {
      const targetDurationSec = this.#target?.targetSec ?? Math.ceil(part.durationSec)
      if (map !== undefined) this.#putInit(map)
      const version = uri
      const file = createStreamFile('part', { rendition, chunks, version, targetDurationSec })
      this.#options.files.putPart(uri, file, segmentUri)
    }
    this.#edge.push(part)
    this.#publish()
  }

  append(segment: Segment, nowMs: number): void {
    const { uri, chunks, sizeBytes, durationSec, programDateTimeMs, discontinuity } = segment
    const { mediaSequence, independent, nextDateTimeMs, rendition } = segment
    const targetSec = this.#target?.targetSec
    const mapBefore = this.#window.newest?.map
    const map = segment.map?.uri ?? mapBefore
    if (segment.map !== undefined) this.#putInit(segment.map)
    const entry: ListedSegment = {
      mediaSequence,
      sizeBytes,
      independent,
      nextDateTimeMs,
      discontinuitySequence: segment.discontinuitySequence - (discontinuity ? 1 : 0),
      videoRange: segment.tracks.find(({ kind }) => kind === 'video')?.parameters?.videoRange,
      segment: {
        uri,
        durationSec,
        programDateTimeMs,
        discontinuity,
        gap: true,
        ...(map !== mapBefore && { map }),
      },
      map,
      partCount: segment.parts.filter(({ chunks }) => chunks.length > 0).length,
      parts: segment.parts.map(listPart),
      dropped: false,
      longestPlaylistSec: 0,
    }
    this.#edge.complete()
    this.#window.push(entry)
    if (this.#target !== undefined) this.#edge.delistParts(this.#target)
    // Shrinks the window first, so that the cache may release the removed segments if memory is short.
    this.roll(nowMs)
    const targetDurationSec = targetSec ?? Math.ceil(durationSec)
    const version = uri
    const file = createStreamFile('segment', { rendition, chunks, version, targetDurationSec })
    if (sizeBytes > 0 && this.#options.files.put(uri, file, nowMs)) {
      this.#window.addMedia(entry)
      this.#setPreview(segment)
    }
    this.#window.recordDuration()
    if (this.#measuredSec === undefined) this.#unmetered.push(segment)
    else this.#meter.add(segment, this.#measuredSec)
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
   * left the playlist. @returns whether there was room for it with all of its attributes
   */
  addDateRange(dateRange: DateRange): boolean {
    const listed = this.#dateRanges.add(dateRange, (this.latestSequence ?? -1) + 1)
    if (listed !== undefined) this.#publish()
    return listed === dateRange
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
    if (this.#target === undefined) return false
    const removed = this.#window.shift(this.#target.targetSec)
    if (removed === undefined) return false
    const { main } = this.#options
    const keptFrom = Math.max(this.#keptFrom, removed.mediaSequence - MAX_KEPT)
    this.#retained.add(removed, nowMs, main === undefined ? keptFrom : main.oldestSequence)
    this.#removeInits()
    const { oldest } = this.#window
    if (oldest !== undefined) this.#dateRanges.expire(oldest.segment, oldest.mediaSequence)
    this.#publish()
    return true
  }

  /**
   * Keeps the records of removed segments from this number on, the latest 100 at most, after their files are gone, too.
   * Only for the first playlist, which the others follow.
   */
  keepFrom(mediaSequence: number): void {
    this.#keptFrom = mediaSequence
  }

  /** Turns a segment and its parts into gaps: their files are no longer available. */
  drop(uri: string): ListedSegment | undefined {
    const dropped = this.#window.drop(uri)
    if (dropped !== undefined) this.#publish()
    return dropped
  }

  /** Drops all segments and parts. */
  discard(): void {
    this.#window.clear()
    this.#retained.clear()
    this.#edge.complete()
    this.#removeInits()
  }

  #putInit(init: InitSegment): void {
    if (this.#inits.has(init.uri)) return
    this.#inits.set(init.uri, init)
    this.#storeInit(init, this.#target?.targetSec ?? 1)
  }

  #storeInit({ uri, bytes }: InitSegment, targetDurationSec: number): void {
    const { files, rendition } = this.#options
    const content = { rendition, chunks: [bytes], version: uri, targetDurationSec }
    files.putInit(uri, createStreamFile('init', content))
  }

  /** Removes the init segments that no segment needs. */
  #removeInits(): void {
    if (this.#inits.size <= 1) return
    const entries = [...this.#retained.entries, ...this.#window.entries]
    const needed = new Set([...entries.map(({ map }) => map), this.#edge.map])
    for (const uri of this.#inits.keys()) {
      if (needed.has(uri)) continue
      this.#inits.delete(uri)
      this.#options.files.removeInit(uri)
    }
  }

  #setPreview(segment: Pick<Segment, 'uri' | 'startsWithKeyFrame' | 'tracks'>): void {
    const { uri, startsWithKeyFrame, tracks } = segment
    const { files, rendition } = this.#options
    const video = tracks.find(({ kind }) => kind === 'video')
    if (rendition !== 'main' || !startsWithKeyFrame || video === undefined) return
    files.setPreview({ segmentUri: uri, video })
  }

  get #exceedsWindow(): boolean {
    const { main, playlistSegments } = this.#options
    const { oldest, entries } = this.#window
    return main === undefined
      ? entries.length > playlistSegments
      : oldest !== undefined && oldest.mediaSequence < (main.mediaSequence ?? 0)
  }

  /** Init segment of a segment that does not list its own; the first listed one may be of an open segment. */
  #mapAt(index: number): string | undefined {
    const entry = this.#window.entries[index]
    return entry?.segment.map === undefined ? entry?.map : undefined
  }

  /** Publishes a new version of the file if the playlist is open and not empty. */
  #publish(): void {
    const target = this.#target
    if (this.#window.oldest === undefined || target === undefined) return
    const { files, rendition } = this.#options
    const position = this.#ended ? undefined : this.#edge.position(target)
    files.replace(playlistUri(rendition), (delta) => this.#render(target, delta), position)
  }

  #render(target: TargetDurations, delta: boolean): StreamFile {
    const { oldest, isIndependent } = this.#window
    const { targetSec } = target
    const lowLatency = this.#edge.tags(target, this.#options.otherReports?.() ?? [])
    const skipped = delta ? this.#edge.countSkipped(targetSec) : 0
    const playlist = {
      targetDurationSec: targetSec,
      mediaSequence: oldest?.mediaSequence ?? 0,
      discontinuitySequence: oldest?.discontinuitySequence ?? 0,
      independentSegments: isIndependent,
      ended: this.#ended,
      skippedSegments: skipped,
      lowLatency,
      hasMaps: isCmafRendition(this.#options.rendition),
      map: this.#mapAt(skipped),
    }
    const withoutParts = this.#edge.countWithoutParts(target)
    const newest = this.#edge.listSegments(withoutParts).map(formatSegment).join('')
    const tail = `${newest}${formatTail(playlist)}`
    const head = [Buffer.from(formatHead(playlist)), this.#dateRanges.text]
    const version = `${this.#options.epoch}-${++this.#revision}`
    return createStreamFile('media-playlist', {
      chunks: this.#text.join(head, { from: skipped, to: withoutParts }, tail),
      version,
      targetDurationSec: targetSec,
      ...(lowLatency !== undefined && !this.#ended && { blocking: blockingLimits(targetSec) }),
    })
  }
}
