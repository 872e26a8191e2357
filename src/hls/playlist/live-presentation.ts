/**
 * All renditions of a stream as players see them: a rolling media playlist for each, in step with each other, and the
 * multivariant playlist that names them.
 *
 * @module
 */
import { LivePlaylist, type LivePlaylistOptions, type RenderedPlaylist } from './live-playlist.ts'
import { describePresentation } from './multivariant.ts'
import { formatMultivariantPlaylist } from './playlist-format.ts'
import type { DateRange } from './playlist.ts'
import { playlistUri, type RenditionName } from '../file-names.ts'
import type { WindowSize } from '../store/memory-share.ts'
import type { SegmentOwner, ShortageCounters } from '../store/segment-cache.ts'
import type { Segment } from '../store/segment.ts'

/**
 * `offer` the renditions there are, `append` each segment in the order of its rendition, `end` when no more will come,
 * `discard` when nobody may ask any more. `media`, `multivariant` and `segment` answer what players ask for. Times are
 * those of `SegmentCache`.
 */
export class LivePresentation implements SegmentOwner {
  readonly #options: LivePlaylistOptions
  /** By URI; the first is the main one. Once there, a rendition stays, with gaps where it has no media. */
  readonly #playlists = new Map<string, LivePlaylist>()
  #offered: readonly RenditionName[] = ['main']
  #complete = false
  #revision = 0
  /** Undefined where the text must be rendered anew. */
  #multivariant: RenderedPlaylist | undefined

  constructor(options: Omit<LivePlaylistOptions, 'owner' | 'leader'>) {
    this.#options = { ...options, owner: this }
    this.#playlists.set(playlistUri('main'), new LivePlaylist(this.#options))
  }

  /** EXT-X-TARGETDURATION of all playlists; 0 before the first segment. */
  get targetDurationSec(): number {
    return this.#main.targetDurationSec
  }

  /** How many segments the main playlist lists that can be fetched. */
  get listedSegments(): number {
    return this.#main.segments
  }

  /** What memory did not suffice for, over all playlists. */
  get shortage(): ShortageCounters {
    return this.#options.cache.shortageOf(this)
  }

  /** All renditions that were offered at first can be played; it stays so. */
  get complete(): boolean {
    return this.#complete
  }

  /** @param renditions  that the multivariant playlist names from now on, the main one first */
  offer(renditions: readonly RenditionName[]): void {
    this.#offered = renditions
    this.#multivariant = undefined
  }

  /** A media playlist as it is now, by its URI; undefined before its first segment. */
  media(uri: string): RenderedPlaylist | undefined {
    return this.#playlists.get(uri)?.media()
  }

  /**
   * The multivariant playlist as it is now. Players read it once, so there is none until it is complete.
   */
  multivariant(): RenderedPlaylist | undefined {
    if (!this.#complete) return undefined
    this.#multivariant ??= this.#render()
    return this.#multivariant
  }

  get windowSize(): WindowSize {
    const sizes = [...this.#playlists.values()].map(({ windowSize }) => windowSize)
    return {
      minBytes: sizes.reduce((sum, { minBytes }) => sum + minBytes, 0),
      wantedBytes: sizes.reduce((sum, { wantedBytes }) => sum + wantedBytes, 0),
    }
  }

  /** Bytes of a segment that is listed or retained. */
  segment(uri: string): readonly Buffer[] | undefined {
    return this.#options.cache.get(this, uri)
  }

  append(segment: Segment, nowMs: number): void {
    this.#playlist(segment.rendition).append(segment, nowMs)
    this.#complete ||= this.#offered.every(
      (name) => this.#playlists.get(playlistUri(name))?.mediaSequence !== undefined,
    )
    this.#multivariant = undefined
  }

  /**
   * Lists a date range in all playlists, those yet to come included.
   *
   * @returns false: there is no room for it
   */
  addDateRange(dateRange: DateRange): boolean {
    const listed = [...this.#playlists.values()].map((it) => it.addDateRange(dateRange))
    return listed.every(Boolean)
  }

  /** EXT-X-ENDLIST in all playlists. */
  end(): void {
    for (const playlist of this.#playlists.values()) playlist.end()
  }

  /** Windows shrink together: the oldest number leaves all of them. */
  shrink(nowMs: number): boolean {
    if (!this.#main.shrink(nowMs)) return false
    for (const playlist of this.#playlists.values()) playlist.roll(nowMs)
    return true
  }

  drop(uri: string): void {
    for (const playlist of this.#playlists.values()) playlist.drop(uri)
  }

  /** No segment is expected until the next one: live streams may take the memory of those there are. */
  rest(): void {
    this.#options.cache.rest(this)
  }

  /** Releases all segments. */
  discard(): void {
    for (const playlist of this.#playlists.values()) playlist.discard()
  }

  get #main(): LivePlaylist {
    return this.#playlist('main')
  }

  #playlist(name: RenditionName): LivePlaylist {
    const uri = playlistUri(name)
    const known = this.#playlists.get(uri)
    if (known !== undefined) return known
    const playlist = new LivePlaylist({ ...this.#options, leader: this.#main })
    for (const dateRange of this.#main.dateRanges) playlist.addDateRange(dateRange)
    this.#playlists.set(uri, playlist)
    return playlist
  }

  #render(): RenderedPlaylist {
    const offers = this.#offered.flatMap((name) => {
      const summary = this.#playlists.get(playlistUri(name))?.summary
      return summary === undefined ? [] : [{ name, summary }]
    })
    const text = formatMultivariantPlaylist(describePresentation(offers))
    this.#revision++
    return { bytes: Buffer.from(text), version: `${this.#options.epoch}-${this.#revision}` }
  }
}
