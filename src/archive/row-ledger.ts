/**
 * Rows of the checkpoint that the playlists of a run do not list so far, and what has become of their media: a row can be
 * listed, in order, once each of its segments is stored or lost.
 *
 * @module
 */
import { formatOf, type Format, type RenditionName } from '../hls/file-names.ts'
import type { CheckpointRow, CheckpointSegment } from '../hls/playlist/checkpoint.ts'
import { archivedSegment, type ArchivedSegment } from './archived-playlist.ts'

/** Closed segments behind one that is missing in a rendition, after which it is missing for good. */
export const LATE_SEGMENTS = 2

/** Init segments that are known to be stored. */
const MAX_INITS = 64

/** Segment or init segment that is to be stored. */
export interface ArchivedMedia {
  readonly uri: string
  readonly rendition: RenditionName
  /** Undefined for an init segment. */
  readonly sizeBytes?: number
}

type MediaState = 'unsettled' | 'stored' | 'lost'

/** `add` rows in order, `settle` the media that it returns, and list what `takeSettled` returns; `end` after the last row. */
export class RowLedger {
  readonly #format: Format
  /** By number, in order. */
  readonly #rows = new Map<number, CheckpointRow>()
  /** Segments of the rows, and `#inits`. */
  readonly #media = new Map<string, MediaState>()
  /** Init segments: those of the rows, and others that were used last. */
  readonly #inits = new Set<string>()
  /** Number of the oldest segment in the live playlists. */
  #listedFrom = 0
  #ended = false

  /** @param format  of the renditions that are archived */
  constructor(format: Format) {
    this.#format = format
  }

  /** Number of rows. */
  get size(): number {
    return this.#rows.size
  }

  /** Rows whose segment has ended, be it in a single rendition. */
  get closed(): CheckpointRow[] {
    return [...this.#rows.values()].filter(isClosed)
  }

  /** Number of the row up to which each rendition has its segment, or never will; -1 without one. */
  get completeSequence(): number {
    let complete = -1
    const { mediaSequence: lateFrom = -1 } = this.closed.at(-LATE_SEGMENTS) ?? {}
    for (const [number, row] of this.#rows) {
      const segments = this.#segmentsOf(row)
      const isWhole = segments.length > 0 && segments.every(({ sizeBytes }) => sizeBytes > 0)
      if (!isClosed(row) || (!isWhole && number >= lateFrom)) break
      complete = number
    }
    return complete
  }

  /** @returns media of the rows that is to be stored, each init segment before the segments that need it */
  add(rows: readonly CheckpointRow[]): ArchivedMedia[] {
    const wanted: ArchivedMedia[] = []
    for (const row of rows) {
      this.#rows.set(row.mediaSequence, row)
      for (const { uri, rendition, map, sizeBytes } of this.#segmentsOf(row)) {
        // It is not complete, or will never be.
        if (sizeBytes === 0) continue
        if (map !== undefined) {
          this.#inits.delete(map)
          this.#inits.add(map)
          this.#want(wanted, { uri: map, rendition })
        }
        this.#want(wanted, { uri, rendition, sizeBytes })
      }
    }
    this.#forgetInits()
    return wanted
  }

  /** @param isStored  whether media is stored; otherwise it never will be */
  settle(uri: string, isStored: boolean): void {
    if (this.#media.has(uri)) this.#media.set(uri, isStored ? 'stored' : 'lost')
  }

  /** @param mediaSequence  number of the oldest segment in the live playlists */
  advanceTo(mediaSequence: number): void {
    this.#listedFrom = mediaSequence
  }

  /** No row comes any more. */
  end(): void {
    this.#ended = true
  }

  /** Takes all rows away. */
  takeAll(): CheckpointRow[] {
    const rows = [...this.#rows.values()]
    this.#rows.clear()
    return rows
  }

  /** Takes the rows behind a number away. */
  dropAfter(mediaSequence: number): void {
    for (const number of this.#rows.keys()) if (number > mediaSequence) this.#rows.delete(number)
  }

  /** Takes the oldest row away. */
  dropOldest(): void {
    const [oldest] = this.#rows.values()
    if (oldest === undefined) return
    this.#rows.delete(oldest.mediaSequence)
    for (const { uri } of oldest.segments) this.#media.delete(uri)
  }

  /** Takes the rows away that can be listed. What is not stored of them is a gap. */
  takeSettled(): CheckpointRow[] {
    const settled: CheckpointRow[] = []
    for (const [number, row] of this.#rows) {
      if (!this.#isSettled(row)) break
      this.#rows.delete(number)
      // It was begun and never complete.
      if (!isClosed(row)) continue
      const segments = this.#segmentsOf(row).map((it) => ({ ...it, gap: !this.#isStored(it) }))
      for (const { uri } of segments) this.#media.delete(uri)
      if (segments.length > 0) settled.push({ ...row, segments })
    }
    return settled
  }

  /** @returns the rendition of a segment or an init segment; undefined for another name */
  renditionOf(uri: string): RenditionName | undefined {
    if (!this.#media.has(uri)) return undefined
    const segments = [...this.#rows.values()].flatMap((row) => row.segments)
    return segments.find((it) => it.uri === uri || it.map === uri)?.rendition
  }

  /** End of the newest closed row, in milliseconds since 1970; undefined without one. */
  get endMs(): number | undefined {
    const newest = this.closed.at(-1)
    return newest && newest.programDateTimeMs + newest.durationSec! * 1000
  }

  /**
   * Segments of a rendition that are complete, in order.
   *
   * @param isBegun  whether the rendition has segments before these rows
   */
  newestOf(name: RenditionName, isBegun: boolean): ArchivedSegment[] {
    const newest: ArchivedSegment[] = []
    for (const row of this.#rows.values()) {
      const segment = row.segments.find(({ rendition }) => rendition === name)
      if (segment === undefined && !isBegun && newest.length === 0) continue
      const isComplete = segment !== undefined && segment.sizeBytes > 0
      const isOver = isComplete || this.#ended || this.#isOver(row.mediaSequence)
      if (!isClosed(row) || !isOver) break
      const listed = segment && { ...segment, gap: this.#isAway(row, segment) }
      newest.push(archivedSegment(row, name, listed))
    }
    return newest
  }

  #want(wanted: ArchivedMedia[], media: ArchivedMedia): void {
    if (this.#media.has(media.uri)) return
    this.#media.set(media.uri, 'unsettled')
    wanted.push(media)
  }

  #isSettled(row: CheckpointRow): boolean {
    const segments = this.#segmentsOf(row)
    const isUnsettled = ({ uri, map = uri }: CheckpointSegment) =>
      this.#media.get(uri) === 'unsettled' || this.#media.get(map) === 'unsettled'
    if (segments.some(isUnsettled)) return false
    if (this.#ended) return true
    // Until it leaves the live playlists, the window lists what is lost to the archive alone.
    const isLost = segments.some(({ uri }) => this.#media.get(uri) === 'lost')
    if (isLost && row.mediaSequence >= this.#listedFrom) return false
    const isComplete = segments.every(({ uri }) => this.#media.has(uri))
    return isClosed(row) && (isComplete || this.#isOver(row.mediaSequence))
  }

  /** Whether so many segments are closed behind a number that no rendition will complete it. */
  #isOver(mediaSequence: number): boolean {
    const later = this.closed.filter((row) => row.mediaSequence > mediaSequence)
    return later.length >= LATE_SEGMENTS
  }

  #isStored({ uri, map = uri }: CheckpointSegment): boolean {
    return this.#media.get(uri) === 'stored' && this.#media.get(map) === 'stored'
  }

  /** Whether neither the stream nor the archive has a segment, or ever will. */
  #isAway({ mediaSequence }: CheckpointRow, { uri, sizeBytes, gap }: CheckpointSegment): boolean {
    const hasLeft = gap || mediaSequence < this.#listedFrom
    return sizeBytes === 0 || (hasLeft && this.#media.get(uri) === 'lost')
  }

  /** Forgets init segments that no row needs. */
  #forgetInits(): void {
    if (this.#inits.size <= MAX_INITS) return
    const rows = [...this.#rows.values()]
    const needed = new Set(rows.flatMap(({ segments }) => segments.map(({ map }) => map)))
    for (const uri of this.#inits) {
      if (this.#inits.size <= MAX_INITS) return
      if (needed.has(uri)) continue
      this.#inits.delete(uri)
      this.#media.delete(uri)
    }
  }

  #segmentsOf({ segments }: CheckpointRow): CheckpointSegment[] {
    return segments.filter(({ rendition }) => formatOf(rendition) === this.#format)
  }
}

/** Whether its segment has ended. */
export function isClosed({ durationSec }: CheckpointRow): boolean {
  return durationSec !== undefined
}
