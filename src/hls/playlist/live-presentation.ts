/**
 * Playlists of a stream: a rolling media playlist for each rendition, with windows that move together, and the
 * multivariant playlist.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import {
  formatOf,
  isCmafRendition,
  MULTIVARIANT_URI,
  TS_MULTIVARIANT_URI,
  type Format,
  type RenditionName,
} from '../file-names.ts'
import type { CheckpointHead, CheckpointRow, StreamCheckpoint } from './checkpoint.ts'
import type { SegmentStart, Part, Segment } from '../store/segment.ts'
import { FileStore } from '../store/file-store.ts'
import type { SegmentOwner } from '../store/cache-account.ts'
import type { WindowSize } from '../store/memory-share.ts'
import type { SegmentCache } from '../store/segment-cache.ts'
import { createStreamFile, type StreamFile } from '../store/stream-file.ts'
import type { TargetDurations } from '../target-durations.ts'
import type { MediaSource } from './earlier-segments.ts'
import { DateRangeText } from './date-range-list.ts'
import { LivePlaylist } from './live-playlist.ts'
import type { ListedSegment } from './playlist-window.ts'
import {
  decodeDateRange,
  decodeMeter,
  encodeDateRange,
  encodeMeter,
  listedSegments,
  createRow,
  type ClosedRow,
} from './checkpoint-rows.ts'
import { describePresentation, type CaptionsPolicy } from './multivariant.ts'
import { formatMultivariantPlaylist } from './playlist-format.ts'
import type { RenditionReport } from './playlist.ts'

/** Options of a live presentation. */
export interface LivePresentationOptions {
  /** Cache for the segments. */
  readonly cache: SegmentCache
  /** Identifies what this process serves of the stream; part of each file's version. */
  readonly epoch: string
  /** Minimum number of listed segments, memory permitting. */
  readonly playlistSegments: number
  /** Formats of the segments; default: transport stream. */
  readonly formats?: readonly Format[] | undefined
  /** Claim about captions; default `auto`. */
  readonly captions?: CaptionsPolicy
  /** Called with the number of each segment that has begun, is listed or is dropped, in any rendition. */
  readonly onRow?: (mediaSequence: number) => void
}

/**
 * Number of segments with which playlists without parts appear beside those with parts: players start three target
 * durations before the end (RFC 8216bis 6.3.3). Before, no player may look for captions: Shaka 5.2 looks into three
 * segments, also into an open one, and fails.
 */
const START_SEGMENTS = 3

interface FixedTarget extends TargetDurations {
  /** Number of the segment with which all playlists appear, not only those with parts. */
  readonly startSequence: number
}

/**
 * Calling order: `setRenditions`, then `append` each segment, in order within its rendition; `setTarget` once
 * EXT-X-TARGETDURATION is fixed; `settle` when media pauses for long, `end` after the last segment, `discard` to drop all
 * files. With low latency, `appendPart` each part of a segment before the segment, parts of the same serial of all
 * renditions in one synchronous call, so that all playlists report the same part. Before all that, `restore` lists the
 * segments of an earlier process. `start` each segment for the rows of the checkpoint, which describe what is listed.
 * Playlists, segments and parts are in `files`. Times are in milliseconds of the monotonic clock of `SegmentCache`.
 */
export class LivePresentation implements SegmentOwner {
  readonly files: FileStore
  readonly #options: LivePresentationOptions
  /** Playlists, the first one first. A playlist is never removed; it gets gaps while its rendition has no media. */
  readonly #playlists = new Map<RenditionName, LivePlaylist>()
  readonly #dateRangeText = new DateRangeText()
  #renditions: readonly RenditionName[] = ['main']
  #target: FixedTarget | undefined
  /** Segments that are not complete in all renditions, by number. */
  readonly #begun = new Map<number, SegmentStart>()
  /** Formats whose playlists have been published; all, once those of transport stream have. */
  readonly #published = new Set<Format>()
  #revision = 0

  constructor(options: LivePresentationOptions) {
    this.#options = options
    this.files = new FileStore({ ...options, owner: this })
    const { formats = ['ts'] } = options
    if (formats.includes('ts')) this.#playlist('main')
  }

  /** Number of segments in the first playlist, without gaps. */
  get listedSegments(): number {
    return this.#first?.segments ?? 0
  }

  /** Whether all playlists have been published, not only those with parts. */
  get playable(): boolean {
    return this.#published.has('ts')
  }

  /** Target durations of the playlists; undefined before the first of these are published. */
  get targets(): TargetDurations | undefined {
    return this.#published.size > 0 ? this.#target : undefined
  }

  /** Memory that the playlists need at least, and that they want. */
  get windowSize(): WindowSize {
    const sizes = [...this.#playlists.values()].map(({ windowSize }) => windowSize)
    return {
      minBytes: sizes.reduce((sum, { minBytes }) => sum + minBytes, 0),
      wantedBytes: sizes.reduce((sum, { wantedBytes }) => sum + wantedBytes, 0),
    }
  }

  /** Playlists without their segments, for a checkpoint. */
  get head(): Pick<CheckpointHead, 'targets' | 'listedFrom' | 'renditions' | 'dateRanges'> {
    const { targetSec, partTargetSec } = this.#target ?? {}
    return {
      ...(targetSec !== undefined && {
        targets: { targetSec, ...(partTargetSec !== undefined && { partTargetSec }) },
      }),
      listedFrom: this.#first?.mediaSequence ?? 0,
      renditions: [...this.#playlists].flatMap(([name, { meter, latestSequence }]) => {
        if (name !== this.#firstName && latestSequence === undefined) return []
        const listed = this.#renditions.includes(name)
        return { name, listed, ...(meter && { measured: encodeMeter(meter) }) }
      }),
      dateRanges: this.#dateRanges.map(encodeDateRange),
    }
  }

  /** Numbers of the segments that are retained, listed, or have begun, in order. */
  get numbers(): readonly number[] {
    const { oldestSequence: first = Infinity, latestSequence = -1 } = this.#first ?? {}
    const complete = Array.from(
      { length: Math.max(0, latestSequence - first + 1) },
      (_, index) => first + index,
    )
    return [...complete, ...[...this.#begun.keys()].filter((number) => number > latestSequence)]
  }

  /** @returns undefined for a number that is not among `numbers` */
  row(mediaSequence: number): CheckpointRow | undefined {
    const listed = new Map<RenditionName, ListedSegment>()
    const dates = new Map<RenditionName, number>()
    for (const [name, playlist] of this.#playlists) {
      const entry = playlist.find(mediaSequence)
      if (entry !== undefined) listed.set(name, entry)
      const dateMs = playlist.nextDateOf(mediaSequence)
      if (dateMs !== undefined) dates.set(name, dateMs)
    }
    return createRow({ start: this.#begun.get(mediaSequence), listed, dates })
  }

  /**
   * Lists the segments of an earlier process and publishes the playlists.
   *
   * @param checkpoint  with targets
   * @param rows  its rows
   */
  restore(
    { listedFrom, renditions, dateRanges, targets }: StreamCheckpoint,
    rows: readonly ClosedRow[],
    { mediaOf, nowMs }: { readonly mediaOf: MediaSource; readonly nowMs: number },
  ): void {
    if (targets === undefined) return
    const { targetSec, partTargetSec } = targets
    for (const { name, measured } of renditions) {
      const entries = listedSegments(rows, name)
      const meter = measured && decodeMeter(measured)
      const earlier = { rendition: name, entries, listedFrom, meter, mediaOf, targetSec }
      this.#playlist(name).restore(earlier, nowMs)
    }
    for (const dateRange of dateRanges) this.addDateRange(decodeDateRange(dateRange))
    this.#renditions = renditions.filter(({ listed }) => listed).map(({ name }) => name)
    this.setTarget(targetSec, partTargetSec)
    if (rows.length > 0) this.#open()
    // The earlier process may have listed its last segments, and removed others, without record.
    for (const playlist of this.#playlists.values()) playlist.roll(nowMs)
    this.#publish()
    this.files.markIdle()
  }

  /** Records a segment that begins. */
  start(segment: SegmentStart): void {
    this.#begun.set(segment.mediaSequence, segment)
    this.#options.onRow?.(segment.mediaSequence)
  }

  /** Sets the renditions in the multivariant playlists from now on, the first one first. */
  setRenditions(renditions: readonly RenditionName[]): void {
    this.#renditions = renditions
    const [first] = renditions
    // Lists the date ranges of its first segment.
    if (first !== undefined && this.#first === undefined) this.#playlist(first)
    this.#publish()
  }

  /** Adds a complete segment to the playlist of its rendition. */
  append(segment: Segment, nowMs: number): void {
    this.#playlist(segment.rendition).append(segment, nowMs)
    this.#openIfComplete()
    this.#publish()
    this.#record(segment)
  }

  /** Adds the next part of a segment that is not complete. */
  appendPart(part: Part): void {
    const playlist = this.#playlist(part.rendition)
    const dateMs = playlist.nextDateOf(part.mediaSequence)
    playlist.appendPart(part)
    // Behind a discontinuity, its date in this rendition is known now.
    if (playlist.nextDateOf(part.mediaSequence) !== dateMs)
      this.#options.onRow?.(part.mediaSequence)
  }

  /**
   * Fixes the target durations. All playlists appear when each has the newest segment that the first one has now; with low
   * latency, those with parts appear when each has a segment with parts, and the others with the third segment of the stream.
   *
   * @param targetSec  EXT-X-TARGETDURATION
   * @param partTargetSec  PART-TARGET; undefined for playlists without parts
   */
  setTarget(targetSec: number, partTargetSec?: number): void {
    const [firstSequence = 0] = this.numbers
    const startSequence =
      partTargetSec === undefined
        ? (this.#first?.latestSequence ?? 0)
        : firstSequence + START_SEGMENTS - 1
    this.#target = { targetSec, partTargetSec, startSequence }
    for (const playlist of this.#playlists.values()) playlist.measure(targetSec)
    this.#openIfComplete()
    this.#publish()
  }

  /** Publishes all playlists as they are, once the target durations are fixed: media pauses. */
  settle(): void {
    if (this.playable) return
    this.#open()
    this.#publish()
  }

  /**
   * Lists a date range in all playlists, including later ones.
   *
   * @returns whether all playlists had room for it
   */
  addDateRange(dateRange: DateRange): boolean {
    const listed = [...this.#playlists.values()].map((it) => it.addDateRange(dateRange))
    return listed.every(Boolean)
  }

  /** Adds EXT-X-ENDLIST to all playlists. */
  end(): void {
    this.#open()
    for (const playlist of this.#playlists.values()) playlist.end()
    this.#publish()
    this.files.end()
  }

  /** See `LivePlaylist.keepFrom`. */
  keepRowsFrom(mediaSequence: number): void {
    this.#first?.keepFrom(mediaSequence)
  }

  /** Removes the oldest segment of the first playlist, and the segments of the same number from all other playlists. */
  shrink(nowMs: number): boolean {
    if (this.#first?.shrink(nowMs) !== true) return false
    for (const playlist of this.#playlists.values()) playlist.roll(nowMs)
    return true
  }

  drop(uri: string): void {
    for (const playlist of this.#playlists.values()) {
      const dropped = playlist.drop(uri)
      if (dropped !== undefined) this.#options.onRow?.(dropped.mediaSequence)
    }
  }

  /** Drops all files. */
  discard(): void {
    for (const playlist of this.#playlists.values()) playlist.discard()
    this.files.discard()
  }

  #record({ mediaSequence }: Segment): void {
    const names = [...(this.#begun.get(mediaSequence)?.uris.keys() ?? [])]
    if (names.every((name) => this.#latestOf(name) >= mediaSequence))
      this.#begun.delete(mediaSequence)
    this.#options.onRow?.(mediaSequence)
    // Its date in this rendition is known now.
    if (this.#begun.has(mediaSequence + 1)) this.#options.onRow?.(mediaSequence + 1)
  }

  #openIfComplete(): void {
    if (this.#target === undefined || this.playable) return
    const { partTargetSec, startSequence } = this.#target
    const withParts = partTargetSec === undefined ? [] : this.#renditions.filter(isCmafRendition)
    // hls.js 1.7 fetches no part of the open segment until it has a segment with parts, and would stand still.
    if (!withParts.every((name) => this.#playlists.get(name)?.hasParts)) return
    // Players read the multivariant playlist only once, and those without media are not in it.
    const haveMedia = withParts.every((name) => (this.#playlists.get(name)?.segments ?? 0) > 0)
    if (withParts.length > 0 && haveMedia) this.#openFormat('cmaf')
    if (this.#renditions.every((name) => this.#latestOf(name) >= startSequence)) this.#open()
  }

  /** Number of the newest complete segment of a rendition; -1 without one. */
  #latestOf(name: RenditionName): number {
    return this.#playlists.get(name)?.latestSequence ?? -1
  }

  #open(): void {
    if (this.#target === undefined) return
    for (const format of ['cmaf', 'ts'] as const) this.#openFormat(format)
  }

  #openFormat(format: Format): void {
    if (this.#published.has(format)) return
    this.#published.add(format)
    for (const [name, playlist] of this.#playlists)
      if (formatOf(name) === format) this.#openPlaylist(name, playlist)
  }

  #openPlaylist(name: RenditionName, playlist: LivePlaylist): void {
    if (this.#target === undefined) return
    const { targetSec, partTargetSec } = this.#target
    playlist.open(targetSec, isCmafRendition(name) ? partTargetSec : undefined)
  }

  /** Playlist of the first rendition, whose window all others follow. */
  get #first(): LivePlaylist | undefined {
    const [first] = this.#playlists.values()
    return first
  }

  get #firstName(): RenditionName | undefined {
    const [name] = this.#playlists.keys()
    return name
  }

  get #dateRanges(): readonly DateRange[] {
    return this.#first?.dateRanges ?? []
  }

  #playlist(rendition: RenditionName): LivePlaylist {
    const known = this.#playlists.get(rendition)
    if (known !== undefined) return known
    const { epoch, playlistSegments } = this.#options
    const main = this.#first
    const playlist = new LivePlaylist({
      files: this.files,
      rendition,
      epoch,
      playlistSegments,
      ...(main !== undefined && { main }),
      dateRangeText: this.#dateRangeText,
      otherReports: () => this.#reportsExcept(rendition),
    })
    for (const dateRange of this.#dateRanges) playlist.addDateRange(dateRange)
    this.#playlists.set(rendition, playlist)
    if (this.#target !== undefined) playlist.measure(this.#target.targetSec)
    if (this.#published.has(formatOf(rendition))) this.#openPlaylist(rendition, playlist)
    return playlist
  }

  #reportsExcept(rendition: RenditionName): RenditionReport[] {
    return [...this.#playlists].flatMap(([name, { report }]) =>
      name === rendition || formatOf(name) !== formatOf(rendition) ? [] : (report ?? []),
    )
  }

  /** Publishes the multivariant playlists, but not before all media playlists in them: players read them only once. */
  #publish(): void {
    const { formats = ['ts'] } = this.#options
    const main = formats.includes('cmaf') ? 'cmaf' : 'ts'
    if (this.#published.has(main)) this.files.replace(MULTIVARIANT_URI, () => this.#render(main))
    if (this.#published.has('ts') && formats.includes('ts'))
      this.files.replace(TS_MULTIVARIANT_URI, () => this.#render('ts'))
  }

  /** @param format  of the variants; where it carries none of the tracks, as CMAF does MPEG audio layer II, the other one */
  #render(format: Format): StreamFile {
    const all = this.#renditions.flatMap((name) => {
      const summary = this.#playlists.get(name)?.summary
      return summary === undefined ? [] : [{ name, summary }]
    })
    const wanted = all.filter(({ name }) => formatOf(name) === format)
    const known = wanted.length > 0 ? wanted : all
    const { captions = 'auto' } = this.#options
    const { targetSec = 0, startSequence = 0 } = this.#target ?? {}
    const isSearchable = (this.#first?.latestSequence ?? -1) >= startSequence
    const text = formatMultivariantPlaylist(describePresentation(known, captions, isSearchable))
    const version = `${this.#options.epoch}-${++this.#revision}`
    const content = { chunks: [Buffer.from(text)], version, targetDurationSec: targetSec }
    return createStreamFile('multivariant-playlist', content)
  }
}
