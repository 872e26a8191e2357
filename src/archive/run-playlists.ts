/**
 * Playlists of a run: those of the whole, windows of its last hours, and clips.
 *
 * @module
 */
import { mixVideoRanges, type VideoRange } from '../codec/video-parameters.ts'
import {
  formatOf,
  MULTIVARIANT_URI,
  playlistUri,
  REWIND_PREFIX,
  type Format,
  type RenditionName,
} from '../hls/file-names.ts'
import { decodeMeter } from '../hls/playlist/checkpoint-rows.ts'
import type {
  CheckpointDateRange,
  CheckpointHead,
  CheckpointRow,
} from '../hls/playlist/checkpoint.ts'
import { describePresentation, type CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import { formatMultivariantPlaylist } from '../hls/playlist/playlist-format.ts'
import { RenditionMeter } from '../hls/playlist/rendition-meter.ts'
import type { ArchiveIndex } from './archive-index.ts'
import {
  archivedSegment,
  ArchivedPlaylist,
  type ArchivedSegment,
  type PlaylistClip,
} from './archived-playlist.ts'
import { renameUris } from './rename-uris.ts'

/** Date ranges that the playlists list: with more, the oldest leave. */
const MAX_DATE_RANGES = 10_000

/** Distance from the end within which delta updates of a window skip nothing, at least, in target durations. */
const SKIP_BOUNDARY_TARGETS = 6

/** Playlist or index, of which each version replaces the one before. */
export interface ArchivedDocument {
  readonly name: string
  readonly chunks: readonly Buffer[]
}

export interface RunClip extends Omit<PlaylistClip, 'chunks'> {
  readonly documents: readonly ArchivedDocument[]
}

interface PlaylistWindow {
  readonly windowSec: number
  /** Whether a delta update will do. */
  readonly isDelta: boolean
  /** Segments behind those that the playlists list. */
  readonly newest: readonly ArchivedSegment[]
  /** End of the newest segment, in milliseconds since 1970. */
  readonly endMs: number
  readonly ended: boolean
}

/** `describe` the stream by each head of its checkpoint, and `append` rows; then `render` what is asked for. */
export class RunPlaylists {
  readonly #format: Format
  readonly #captions: CaptionsPolicy
  readonly #playlists = new Map<RenditionName, ArchivedPlaylist>()
  readonly #videoRanges = new Map<RenditionName, VideoRange>()
  readonly #dateRanges = new Map<string, CheckpointDateRange>()
  #renditions: CheckpointHead['renditions'] = []
  #targetSec = 0
  /** Number of segments in the live playlists, at least. */
  #liveSegments = 0
  /** Number of the first chunk of the window: it never goes back. */
  #windowFrom = 0

  constructor(format: Format, captions: CaptionsPolicy) {
    this.#format = format
    this.#captions = captions
  }

  /** Renditions with a playlist. */
  get names(): RenditionName[] {
    return [...this.#playlists.keys()]
  }

  /**
   * Number of the newest segment that all have; -1 without one. They differ where the process before this one had stored some
   * of them when it ended.
   */
  get lastSequence(): number {
    if (this.#playlists.size === 0) return -1
    return Math.min(...[...this.#playlists.values()].map((it) => it.lastSequence))
  }

  get sizeBytes(): number {
    return [...this.#playlists.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  }

  /** EXT-X-TARGETDURATION; 0 before it is known. */
  get targetSec(): number {
    return this.#targetSec
  }

  get dateRanges(): CheckpointDateRange[] {
    return [...this.#dateRanges.values()]
  }

  /** Renditions of the stream that a window may list, the first one first; none before the target duration is known. */
  get described(): readonly RenditionName[] {
    if (this.#targetSec === 0) return []
    return this.#renditions
      .map(({ name }) => name)
      .filter((name) => formatOf(name) === this.#format)
  }

  has(name: RenditionName): boolean {
    return this.#playlists.has(name)
  }

  /** @returns the rendition of a segment or an init segment that is listed; undefined for another name */
  renditionOf(uri: string): RenditionName | undefined {
    for (const [name, playlist] of this.#playlists) if (playlist.names(uri)) return name
    return undefined
  }

  /**
   * Goes on with stored playlists.
   *
   * @returns false if one is something else; nothing is taken over then
   */
  async restore(
    { renditions, rows, date_ranges: dateRanges, target_duration_sec: targetSec }: ArchiveIndex,
    stored: ReadonlyMap<RenditionName, string>,
  ): Promise<boolean> {
    const restored = new Map<RenditionName, ArchivedPlaylist>()
    for (const { name } of renditions) {
      const playlist = new ArchivedPlaylist(name)
      const text = stored.get(name)
      if (text !== undefined && !(await playlist.restore(text))) return false
      restored.set(name, playlist)
    }
    for (const [name, playlist] of restored) this.#playlists.set(name, playlist)
    this.#targetSec = targetSec
    for (const range of dateRanges) this.#dateRanges.set(range.id, range)
    for (const row of rows) this.append(row)
    return true
  }

  describe({ renditions, media, targets, dateRanges }: CheckpointHead): void {
    this.#renditions = renditions
    this.#liveSegments = media.playlistSegments
    this.#targetSec = Math.max(this.#targetSec, targets?.targetSec ?? 0)
    for (const range of dateRanges) this.#dateRanges.set(range.id, range)
    while (this.#dateRanges.size > MAX_DATE_RANGES)
      this.#dateRanges.delete(this.#dateRanges.keys().next().value!)
  }

  /** Lists the segments of a row; a rendition that has none of it has a gap. */
  append(row: CheckpointRow): void {
    const { mediaSequence } = row
    for (const { rendition } of row.segments) {
      if (!this.#playlists.has(rendition))
        this.#playlists.set(rendition, new ArchivedPlaylist(rendition))
    }
    for (const [name, playlist] of this.#playlists) {
      if (mediaSequence <= playlist.lastSequence) continue
      const segment = row.segments.find(({ rendition }) => rendition === name)
      if (segment?.videoRange !== undefined) {
        const ranges = [this.#videoRanges.get(name), segment.videoRange]
        this.#videoRanges.set(name, mixVideoRanges(ranges)!)
      }
      playlist.append(archivedSegment(row, name, segment))
    }
  }

  /** Playlists of the whole, the multivariant one last. */
  render(ended: boolean): ArchivedDocument[] {
    const head = { targetSec: this.#targetSec, dateRanges: this.dateRanges, ended }
    const documents = [...this.#playlists].flatMap(([rendition, playlist]) => {
      const chunks = playlist.render(head)
      return chunks === undefined ? [] : [{ name: playlistUri(rendition), chunks }]
    })
    return [...documents, { name: MULTIVARIANT_URI, chunks: [this.#multivariant(this.names)] }]
  }

  /** @returns undefined without segments */
  renderWindow(
    name: RenditionName,
    { windowSec, isDelta, newest, endMs, ended }: PlaylistWindow,
  ): readonly Buffer[] | undefined {
    const [first] = this.#playlists.values()
    this.#windowFrom = Math.max(this.#windowFrom, first?.chunkAt(endMs - windowSec * 1000) ?? 0)
    // A segment may become a gap when it leaves the live playlists. Players ask for a delta update while their playlist is
    // no older than half of this.
    const skipUntilSec = this.#targetSec * Math.max(SKIP_BOUNDARY_TARGETS, 2 * this.#liveSegments)
    const playlist = this.#playlists.get(name) ?? new ArchivedPlaylist(name)
    return playlist.renderWindow(
      {
        targetSec: this.#targetSec,
        dateRanges: this.dateRanges,
        ended,
        from: this.#windowFrom,
        skipUntilSec,
        skipBeforeMs: isDelta ? endMs - skipUntilSec * 1000 : undefined,
      },
      newest,
    )
  }

  /** @returns the multivariant playlist of windows */
  renderWindows(names: readonly RenditionName[]): Buffer {
    return this.#multivariant(names, REWIND_PREFIX)
  }

  /**
   * Part of the run in playlists of its own, in the order in which they are to be stored, the multivariant one last.
   *
   * @param untilMs  end of the clip, like `fromMs` in milliseconds since 1970
   * @param multivariant  stored multivariant playlist of the run
   * @returns undefined if nothing of it is listed
   */
  clip(fromMs: number, untilMs: number, multivariant: string): RunClip | undefined {
    const clips = [...this.#playlists].flatMap(([name, playlist]) => {
      const clip = playlist.clip(fromMs, untilMs, this.#targetSec)
      return clip === undefined ? [] : [{ uri: playlistUri(name), ...clip }]
    })
    const [first] = clips
    if (first === undefined) return undefined
    const { startMs, endMs, gapSec } = first
    // By the times of its segments: another clip never has the same name.
    const prefix = `clip-${startMs}-${Math.round(endMs)}`
    const documents = clips.map(({ uri, chunks }) => ({ name: `${prefix}-${uri}`, chunks }))
    const names = new Map(clips.map(({ uri }) => [uri, `${prefix}-${uri}`]))
    const whole = Buffer.from(renameUris(multivariant, names))
    documents.push({ name: `${prefix}.m3u8`, chunks: [whole] })
    return { startMs, endMs, gapSec, documents }
  }

  /** Renditions that have been measured, the first one first. */
  measured(names: readonly RenditionName[]) {
    return this.#renditions.flatMap(({ name, measured }) => {
      if (measured === undefined || !names.includes(name)) return []
      const meter = new RenditionMeter()
      meter.restore(decodeMeter(measured))
      const { summary } = meter
      return summary === undefined ? [] : [{ name, summary }]
    })
  }

  #multivariant(names: readonly RenditionName[], prefix = ''): Buffer {
    const known = this.measured(names).map(({ name, summary }) => {
      const videoRange = this.#videoRanges.get(name)
      return { name, summary: { ...summary, ...(videoRange && { videoRange }) } }
    })
    const { audios, variants, ...rest } = describePresentation(known, this.#captions)
    const named = {
      ...rest,
      audios: audios.map(({ uri, ...it }) => ({ ...it, ...(uri && { uri: prefix + uri }) })),
      variants: variants.map((it) => ({ ...it, uri: prefix + it.uri })),
    }
    return Buffer.from(formatMultivariantPlaylist(named))
  }
}
