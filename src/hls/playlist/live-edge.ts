/**
 * Low-latency side of a media playlist: the parts of its newest segments, the hint for the next part, and what delta
 * updates skip (RFC 8216bis 4.4.3.7, 4.4.4.9, 4.4.5).
 *
 * @module
 */
import { partUri, playlistUri, type RenditionName } from '../file-names.ts'
import type { PlaylistPosition } from '../store/delivery-directives.ts'
import type { Part } from '../store/segment.ts'
import type { TargetDurations } from '../target-durations.ts'
import type { PlaylistWindow } from './playlist-window.ts'
import type {
  LowLatencyTags,
  OpenSegment,
  PlaylistPart,
  PlaylistSegment,
  RenditionReport,
} from './playlist.ts'

interface LiveEdgeOptions {
  readonly rendition: RenditionName
  readonly epoch: string
  /** Minimum number of listed segments. */
  readonly playlistSegments: number
  /** Edge of the main rendition; undefined for the main rendition itself. */
  readonly main?: LiveEdge | undefined
}

/** Distance from the end within which parts are listed, in target durations (RFC 8216bis 4.4.4.9). */
const PARTS_TARGETS = 3

/** Skip Boundary: distance from the end within which delta updates skip nothing (RFC 8216bis 4.4.3.8). */
const SKIP_BOUNDARY_TARGETS = 6

/** `push` each part of a segment, then `complete` the segment when the window has it. */
export class LiveEdge {
  readonly #options: LiveEdgeOptions
  readonly #window: PlaylistWindow
  #firstPart: Part | undefined
  /** Parts of the segment that is not complete. */
  #parts: PlaylistPart[] = []
  #latestSerial: number | undefined
  /** Whether the next part begins another timeline than the open segment. */
  #endsTimeline = false

  constructor(window: PlaylistWindow, options: LiveEdgeOptions) {
    this.#window = window
    this.#options = options
  }

  push(part: Part): void {
    this.#firstPart ??= part
    this.#parts.push(listPart(part))
    this.#latestSerial = part.serial
    this.#endsTimeline = part.endsTimeline
  }

  complete(): void {
    this.#firstPart = undefined
    this.#parts = []
  }

  /** Date of the segment that is not complete; undefined behind a discontinuity, until it has a part. */
  get dateMs(): number | undefined {
    return this.#openSegment?.programDateTimeMs
  }

  /** EXT-X-RENDITION-REPORT for the other playlists; undefined until the playlist lists a segment. */
  get report(): RenditionReport | undefined {
    const { newest } = this.#window
    if (newest === undefined) return undefined
    const isOpen = this.#parts.length > 0
    const { length } = isOpen ? this.#parts : newest.parts
    return {
      uri: playlistUri(this.#options.rendition),
      lastSequence: newest.mediaSequence + (isOpen ? 1 : 0),
      lastPart: length === 0 ? undefined : length - 1,
    }
  }

  /** Newest listed media; undefined for a playlist without parts. */
  position({ targetSec, partTargetSec }: TargetDurations): PlaylistPosition | undefined {
    const { newest } = this.#window
    if (newest === undefined || partTargetSec === undefined) return undefined
    return {
      mediaSequence: newest.mediaSequence,
      parts: newest.isEarlier === true ? Infinity : newest.parts.length,
      nextParts: this.#parts.length,
      partTargetSec,
      hint: this.#hint,
      skippable: this.countSkipped(targetSec) > 0,
    }
  }

  /** @returns undefined for a playlist without parts */
  tags(
    { targetSec, partTargetSec }: TargetDurations,
    renditionReports: readonly RenditionReport[],
  ): LowLatencyTags | undefined {
    if (partTargetSec === undefined) return undefined
    return {
      partTargetSec,
      skipUntilSec: this.#hasDeltas ? SKIP_BOUNDARY_TARGETS * targetSec : undefined,
      openSegment: this.#openSegment,
      preloadHint: this.#hint,
      renditionReports,
    }
  }

  /** Number of oldest segments whose parts are not listed. */
  countWithoutParts({ targetSec, partTargetSec }: TargetDurations): number {
    if (partTargetSec === undefined) return this.#window.entries.length
    const openSec = this.#parts.reduce((sum, { durationSec }) => sum + durationSec, 0)
    return this.#window.countBefore(PARTS_TARGETS * targetSec - openSec)
  }

  /** Init segment of the segment that is not complete. */
  get map(): string | undefined {
    return this.#firstPart?.map?.uri
  }

  /** Removes the parts that are no longer listed from their segments. */
  delistParts(targets: TargetDurations): void {
    const { entries } = this.#window
    for (let index = this.countWithoutParts(targets) - 1; index >= 0; index--) {
      const entry = entries[index]!
      if (entry.parts.length === 0) break
      entry.parts = []
    }
  }

  /** Complete segments from an index on, with their parts. */
  listSegments(from: number): PlaylistSegment[] {
    return this.#window.entries
      .slice(from)
      .map(({ segment, parts }) => ({ ...segment, parts: parts.map(asPartOf(segment)) }))
  }

  /**
   * Number of segments that a delta update skips; 0 while an EXT-X-DISCONTINUITY is listed, across which hls.js merges
   * no delta update (hls.js#6949). A segment that has become a gap is not skipped: players may know it with media.
   */
  countSkipped(targetSec: number): number {
    if (!this.#hasDeltas) return 0
    if (this.#window.hasDiscontinuity || this.#openSegment?.discontinuity !== false) return 0
    const count = this.#window.countBefore(SKIP_BOUNDARY_TARGETS * targetSec)
    return Math.min(count, this.#window.undroppedSegments)
  }

  /** Whether delta updates are offered: only where the configured window exceeds the Skip Boundary. Never changes. */
  get #hasDeltas(): boolean {
    return this.#options.playlistSegments > SKIP_BOUNDARY_TARGETS
  }

  /**
   * URI of the next part; all renditions have the same serials. None before the first part of a timeline, whose EXT-X-MAP
   * is not known: Shaka 5.2 would append the part that it was hinted with the init segment before.
   */
  get #hint(): string | undefined {
    if (this.#openSegment === undefined || this.#endsTimeline) return undefined
    const { main, epoch, rendition } = this.#options
    const latestSerial = this.#latestSerial ?? (main && main.#latestSerial) ?? -1
    return partUri(epoch, rendition, latestSerial + 1)
  }

  get #openSegment(): OpenSegment | undefined {
    const { newest } = this.#window
    if (this.#firstPart === undefined) {
      const programDateTimeMs = newest?.nextDateTimeMs
      return programDateTimeMs === undefined
        ? undefined
        : { programDateTimeMs, discontinuity: false, parts: [] }
    }
    const { programDateTimeMs, discontinuity, map } = this.#firstPart
    const changed = map?.uri === newest?.map ? undefined : map?.uri
    return { programDateTimeMs, discontinuity, map: changed, parts: this.#parts }
  }
}

export function listPart({ uri, durationSec, independent, chunks }: Part): PlaylistPart {
  return { uri, durationSec, independent, gap: chunks.length === 0 }
}

/** The parts of a segment that is a gap are gaps: they have the same memory. */
function asPartOf(segment: PlaylistSegment): (part: PlaylistPart) => PlaylistPart {
  return (part) => ({ ...part, gap: part.gap || segment.gap })
}
