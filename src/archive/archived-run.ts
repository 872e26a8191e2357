/**
 * A run of a stream in the archive: from the rows of its checkpoint to the files that are to be stored. What the store has
 * confirmed leaves the ledger for the playlists and the index, in order.
 *
 * @module
 */
import { playlistUri, type Format, type RenditionName } from '../hls/file-names.ts'
import { printedSec } from '../hls/playlist/checkpoint-rows.ts'
import type { CheckpointChange, CheckpointRow } from '../hls/playlist/checkpoint.ts'
import type { CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import type { ArchiveIndex } from './archive-index.ts'
import { missingUri } from './archived-playlist.ts'
import { isClosed, LATE_SEGMENTS, RowLedger, type ArchivedMedia } from './row-ledger.ts'
import { RunPlaylists, type ArchivedDocument, type RunClip } from './run-playlists.ts'

export const INDEX_NAME = 'index.json'

/** Rows that are not listed so far, above which media that is not stored is given up. */
const MAX_PENDING = 4096

/** Rows of the index: with more, another process that goes on leaves out the oldest. */
const MAX_INDEX_ROWS = 3000

/** Gaps that the index describes one by one. */
const MAX_GAPS = 1000

export interface ArchivedRunOptions {
  readonly streamId: string
  /** Identifies the run. */
  readonly run: string
  /** Identifies the process. */
  readonly writer: string
  /** Grows with each owner of the stream in a cluster; default: there is one process. */
  readonly fence?: number | undefined
  readonly format: Format
  readonly captions: CaptionsPolicy
  /** Whether another process has begun the run: nothing is listed before `open`. */
  readonly isContinued: boolean
  /** Where it begins; default: anywhere. */
  readonly from?: Omit<NextRun, 'run'> | undefined
}

/** Run that goes on behind another one, which has as many segments as a playlist may have. */
interface NextRun {
  readonly run: string
  /** Number of its first segment. */
  readonly mediaSequence: number
  /** Its date, in milliseconds since 1970. */
  readonly startMs: number
}

interface ArchivedTotals {
  readonly durationSec: number
  readonly sizeBytes: number
  readonly segments: number
  readonly gaps: number
  readonly gapSec: number
}

interface Gap {
  readonly startMs: number
  durationSec: number
}

/**
 * `push` each change of the checkpoint, `settle` all media that it returns, and store `documents`, of which `confirm` is told;
 * `end` after the last change. A continued run lists nothing before `restore` and `open`.
 */
export class ArchivedRun {
  readonly #options: ArchivedRunOptions
  readonly #ledger: RowLedger
  readonly #playlists: RunPlaylists
  /** Rows that the process before this one had in its ledger. */
  #inherited: readonly CheckpointRow[] = []
  /** Rows that the stored playlists do not list so far. */
  #unwritten: CheckpointRow[] = []
  readonly #gaps: Gap[] = []
  #totals: ArchivedTotals = { durationSec: 0, sizeBytes: 0, segments: 0, gaps: 0, gapSec: 0 }
  #startMs: number | undefined
  #endMs = 0
  /** Whether the newest listed row is a gap. */
  #isGap = false
  /** Whether rows may be listed: it is known which ones are. */
  #isOpen: boolean
  #ended = false
  #next: NextRun | undefined
  #takeovers: number

  constructor(options: ArchivedRunOptions) {
    this.#options = options
    this.#ledger = new RowLedger(options.format)
    this.#playlists = new RunPlaylists(options.format, options.captions)
    this.#isOpen = !options.isContinued
    // The process that has begun it may not have stored an index so far.
    this.#takeovers = options.isContinued ? 1 : 0
    this.#endMs = options.from?.startMs ?? 0
  }

  get totals(): ArchivedTotals {
    return this.#totals
  }

  /** Number of the newest listed row; without one, that before the first. */
  get lastSequence(): number {
    const { from } = this.#options
    return Math.max((from?.mediaSequence ?? 0) - 1, this.#playlists.lastSequence)
  }

  /** Number of the row up to which all are complete, in each rendition; without one, that before the first. */
  get completeSequence(): number {
    return Math.max(this.lastSequence, this.#ledger.completeSequence)
  }

  /** End of the newest complete row, in milliseconds since 1970. */
  get newestMs(): number {
    return this.#ledger.endMs ?? this.#endMs
  }

  /** Whether it is known what another process has stored. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /**
   * Whether a stored index is that of another process that goes on with the run: a later owner or, where that is not known,
   * one that has taken it over more often, or has stored its own first.
   */
  isTakenBy({ fence, takeovers, writer = this.#options.writer }: ArchiveIndex): boolean {
    const { fence: ownFence } = this.#options
    if (fence !== undefined && ownFence !== undefined && fence !== ownFence) return fence > ownFence
    if (takeovers !== this.#takeovers) return takeovers > this.#takeovers
    return writer !== this.#options.writer
  }

  /** Run that goes on behind this one. */
  get next(): NextRun | undefined {
    return this.#next
  }

  /** Whether no change comes any more. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether the playlists list all that there is. */
  get isListed(): boolean {
    return this.#isOpen && this.#ledger.size === 0
  }

  /** Whether there is something to list, with a target duration. */
  get isPlayable(): boolean {
    return this.#startMs !== undefined && this.targetSec > 0
  }

  /** Number of segments that the stored playlists do not list so far. */
  get unwritten(): number {
    return this.#unwritten.length
  }

  /** Whether so many rows are not listed that what is not stored must be given up. */
  get mustGiveUp(): boolean {
    return this.#isOpen && this.#ledger.size > MAX_PENDING
  }

  /** Size of the playlists. */
  get playlistBytes(): number {
    return this.#playlists.sizeBytes
  }

  /** EXT-X-TARGETDURATION; 0 before it is known. */
  get targetSec(): number {
    return this.#playlists.targetSec
  }

  /** Renditions that a window lists, the first one first; none before `open`. */
  get windowRenditions(): readonly RenditionName[] {
    if (!this.#isOpen) return []
    return this.#playlists.described.filter(
      (name) => this.#playlists.has(name) || this.#newestOf(name).length > 0,
    )
  }

  /** @returns the rendition of a segment or an init segment that is listed; undefined for another name */
  renditionOf(uri: string): RenditionName | undefined {
    return this.#playlists.renditionOf(uri) ?? this.#ledger.renditionOf(uri)
  }

  /**
   * Playlist of the last minutes or hours, with what the store does not have yet.
   *
   * @param isDelta  whether a delta update will do
   * @returns undefined without segments
   */
  renderWindow(
    name: RenditionName,
    window: { readonly windowSec: number; readonly isDelta: boolean },
  ): readonly Buffer[] | undefined {
    return this.#playlists.renderWindow(name, {
      ...window,
      newest: this.#newestOf(name),
      endMs: this.newestMs,
      ended: this.#ended,
    })
  }

  /** @returns the multivariant playlist of the windows */
  renderWindows(): Buffer {
    return this.#playlists.renderWindows(this.windowRenditions)
  }

  /** See `RunPlaylists.clip`. */
  clip(fromMs: number, untilMs: number, multivariant: string): RunClip | undefined {
    return this.#playlists.clip(fromMs, untilMs, multivariant)
  }

  /**
   * Begins to list, behind what another process has stored, if it has stored anything.
   *
   * @returns media that the other process may have stored
   */
  open(): ArchivedMedia[] {
    this.#isOpen = true
    const own = this.#ledger.takeAll()
    const numbers = new Set(own.map(({ mediaSequence }) => mediaSequence))
    const inherited = this.#inherited.filter(({ mediaSequence }) => !numbers.has(mediaSequence))
    const rows = [...inherited, ...own]
      .filter((row) => this.#isWanted(row))
      .toSorted((a, b) => a.mediaSequence - b.mediaSequence)
    const wanted = this.#ledger.add(rows)
    this.#list()
    return wanted
  }

  /**
   * Takes over what another process has stored, before `open`.
   *
   * @param playlists  stored playlists by rendition, as far as they have been stored
   * @returns false if a playlist is something else; nothing is taken over then
   */
  async restore(
    index: ArchiveIndex,
    playlists: ReadonlyMap<RenditionName, string>,
  ): Promise<boolean> {
    if (!(await this.#playlists.restore(index, playlists))) return false
    const { start, end, gaps, rows, next } = index
    if (next !== undefined) {
      const { run, media_sequence: mediaSequence } = next
      this.#next = { run, mediaSequence, startMs: Date.parse(next.start) }
    }
    this.#startMs = Date.parse(start)
    this.#endMs = Date.parse(end)
    this.#takeovers = index.takeovers + 1
    this.#totals = {
      durationSec: index.duration_sec,
      sizeBytes: index.size_bytes,
      segments: index.segments,
      gaps: index.gap_count,
      gapSec: index.gap_sec,
    }
    for (const gap of gaps)
      this.#gaps.push({ startMs: Date.parse(gap.start), durationSec: gap.duration_sec })
    this.#unwritten = rows
    this.#inherited = index.waiting
    return true
  }

  /** @returns media that is to be stored, each init segment before the segments that need it */
  push({ head, rows }: Pick<CheckpointChange, 'head' | 'rows'>): ArchivedMedia[] {
    this.#playlists.describe(head)
    this.#ledger.advanceTo(head.listedFrom)
    const wanted = this.#ledger.add(rows.filter((row) => this.#isWanted(row)))
    const lastSequence = (this.#next?.mediaSequence ?? Infinity) + LATE_SEGMENTS
    if (rows.some((row) => row.mediaSequence >= lastSequence && isClosed(row))) this.end()
    else this.#list()
    if (!this.#isOpen && this.#ledger.size > MAX_PENDING) this.#ledger.dropOldest()
    return wanted
  }

  /**
   * Ends before the segment that is open now.
   *
   * @returns the run that is to list that segment
   */
  continueAs(run: string): NextRun {
    const newest = Math.max(
      this.lastSequence,
      ...this.#ledger.closed.map((row) => row.mediaSequence),
    )
    this.#ledger.dropAfter(newest)
    this.#next = { run, mediaSequence: newest + 1, startMs: this.newestMs }
    return this.#next
  }

  /** Tells whether media is stored, or never will be. */
  settle(uri: string, isStored: boolean): void {
    this.#ledger.settle(uri, isStored)
    this.#list()
  }

  /** No change comes any more. */
  end(): void {
    this.#ended = true
    this.#ledger.end()
    this.#list()
  }

  /**
   * Files in the order in which they are to be stored. The index goes first: who stores it may store the playlists, and it has
   * the segments that the stored ones do not list, so that another process can go on wherever this one ends. That of a
   * complete run goes last, too.
   *
   * @param withPlaylists  whether the playlists, too, which are to be playable
   * @returns none before the target duration is known
   */
  documents(withPlaylists: boolean): ArchivedDocument[] {
    if (this.targetSec === 0) return []
    const isComplete = this.#ended && this.isListed
    const index = (isComplete: boolean) => ({
      name: INDEX_NAME,
      chunks: [this.#index(isComplete)],
    })
    if (!withPlaylists) return [index(isComplete)]
    const documents = [index(false), ...this.#playlists.render(isComplete)]
    return isComplete ? [...documents, index(true)] : documents
  }

  /** @param lastSequence  of the playlists that are stored now */
  confirm(lastSequence: number): void {
    this.#unwritten = this.#unwritten.filter(({ mediaSequence }) => mediaSequence > lastSequence)
  }

  #newestOf(name: RenditionName) {
    return this.#ledger.newestOf(name, this.#playlists.has(name))
  }

  #isWanted({ mediaSequence }: CheckpointRow): boolean {
    return (
      mediaSequence > this.lastSequence && mediaSequence < (this.#next?.mediaSequence ?? Infinity)
    )
  }

  #list(): void {
    if (!this.#isOpen) return
    for (const row of this.#ledger.takeSettled())
      for (const each of [...this.#missingBefore(row), row]) {
        this.#playlists.append(each)
        this.#unwritten.push(each)
        if (this.#unwritten.length > MAX_INDEX_ROWS) this.#unwritten.shift()
        this.#count(each)
      }
  }

  /** Gaps in place of rows of which another process has left no record. */
  #missingBefore(row: CheckpointRow): CheckpointRow[] {
    const { lastSequence } = this
    const sec = (row.programDateTimeMs - this.#endMs) / 1000
    const numbers = this.#endMs === 0 ? 0 : row.mediaSequence - lastSequence - 1
    // Numbers may have been skipped, too.
    const count = Math.min(numbers, Math.ceil((4 * sec) / this.targetSec), MAX_INDEX_ROWS)
    const known = this.#playlists.names
    const names = known.length > 0 ? known : row.segments.map(({ rendition }) => rendition)
    const durationSec = printedSec(Math.min(sec / count, this.targetSec))
    return Array.from({ length: Math.max(0, count) }, (_, index) => {
      const mediaSequence = lastSequence + 1 + index
      const segments = names.map((rendition) => ({
        rendition,
        uri: missingUri(rendition, mediaSequence),
        sizeBytes: 0,
        independent: true,
        gap: true,
      }))
      return {
        mediaSequence,
        discontinuity: false,
        discontinuitySequence: row.discontinuitySequence - (row.discontinuity ? 1 : 0),
        programDateTimeMs: Math.floor(this.#endMs + index * durationSec * 1000),
        durationSec,
        segments,
      }
    })
  }

  #count({ programDateTimeMs: startMs, durationSec = 0, segments }: CheckpointRow): void {
    const stored = segments.filter(({ gap }) => !gap)
    const isGap = stored.length < this.#playlists.names.length
    const goesOn = isGap && this.#isGap
    this.#isGap = isGap
    const { gaps, gapSec, ...totals } = this.#totals
    const last = this.#gaps.at(-1)
    this.#totals = {
      durationSec: totals.durationSec + durationSec,
      sizeBytes: totals.sizeBytes + stored.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      segments: totals.segments + stored.length,
      gaps: gaps + (isGap && !goesOn ? 1 : 0),
      gapSec: gapSec + (isGap ? durationSec : 0),
    }
    if (goesOn && last !== undefined && gaps <= MAX_GAPS) last.durationSec += durationSec
    else if (isGap && gaps < MAX_GAPS) this.#gaps.push({ startMs, durationSec })
    this.#startMs ??= startMs
    this.#endMs = startMs + durationSec * 1000
  }

  #index(isComplete: boolean): Buffer {
    const { streamId, run, writer, fence } = this.#options
    const { durationSec, sizeBytes, segments, gaps, gapSec } = this.#totals
    const { names } = this.#playlists
    const tracksOf = new Map(
      this.#playlists.measured(names).map(({ name, summary }) => [name, summary.tracks]),
    )
    const index: ArchiveIndex = {
      version: 1,
      stream_id: streamId,
      run,
      state: isComplete ? 'COMPLETE' : 'RUNNING',
      takeovers: this.#takeovers,
      writer,
      ...(fence !== undefined && { fence }),
      ...(this.#next && {
        next: {
          run: this.#next.run,
          media_sequence: this.#next.mediaSequence,
          start: isoDate(this.#next.startMs),
        },
      }),
      start: isoDate(this.#startMs ?? this.newestMs),
      end: isoDate(this.#endMs),
      duration_sec: printedSec(durationSec),
      size_bytes: sizeBytes,
      segments,
      gaps: this.#gaps.map((gap) => ({
        start: isoDate(gap.startMs),
        duration_sec: printedSec(gap.durationSec),
      })),
      gap_count: gaps,
      gap_sec: printedSec(gapSec),
      target_duration_sec: this.targetSec,
      renditions: names.map((name) => ({
        name,
        playlist: playlistUri(name),
        tracks: (tracksOf.get(name) ?? []).map(({ kind, codec, language, parameters }) => ({
          kind,
          codec: parameters?.codecString ?? codec,
          ...(language !== undefined && { language }),
          ...(parameters?.width !== undefined && { width: parameters.width }),
          ...(parameters?.height !== undefined && { height: parameters.height }),
        })),
      })),
      date_ranges: this.#playlists.dateRanges,
      rows: isComplete ? [] : this.#unwritten,
      waiting: this.#ledger.closed,
    }
    return Buffer.from(JSON.stringify(index))
  }
}

function isoDate(ms: number): string {
  return new Date(ms).toISOString()
}
