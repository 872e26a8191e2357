/**
 * Archive: every segment of a stream in a store, with playlists of the whole programme. Live never waits for it: media is
 * lent until it is stored, within a bound, and what does not fit is a gap: `upload-queue.ts` decides what gives way.
 *
 * @module
 */
import type { ArchiveReport, ClipReport } from '../api/records.ts'
import type { ClipRequest } from '../api/requests.ts'
import { totalBytes } from '../binary/total-bytes.ts'
import { MULTIVARIANT_URI } from '../hls/file-names.ts'
import { printedSec } from '../hls/playlist/checkpoint-rows.ts'
import type { CheckpointChange } from '../hls/playlist/checkpoint.ts'
import type { CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import { mediaTypeOf, type StreamFile } from '../hls/store/stream-file.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Clock } from '../timing/clock.ts'
import { parseIndex } from './archive-index.ts'
import { ArchivedRun, INDEX_NAME, type ArchivedRunOptions } from './archived-run.ts'
import { Clips } from './clips.ts'
import type { ArchivedMedia } from './row-ledger.ts'
import { FOREVER, RunFolder } from './run-folder.ts'
import type { S3Store } from './s3-store.ts'
import { Rewind, type RewindOptions } from './rewind.ts'
import { isConflict } from './store-error.ts'
import { UploadQueue } from './upload-queue.ts'

/** Shortest time between two versions of a playlist. */
const PLAYLIST_SEC = 10

/** Media that is stored for each byte of playlists: the longer these are, the more seldom they are written. */
const MEDIA_TO_PLAYLISTS = 20

/** Segments that the index may have and the playlists may lack. */
const MAX_UNWRITTEN = 300

/** Time for which media that is not stored yet is kept after the end of its stream. */
const FINISH_SEC = 600

/** Age of the oldest media that is not stored at which the archive is behind. */
const BEHIND_SEC = 30

/** Time without a failure after which the store works again. */
const WORKS_SEC = 30

/** Pause between two ticks of `close`. */
const CLOSE_TICK_MS = 50

/** Looks for media that the previous owner of a stream may still be storing. */
const LOOKS = 5

/** Size of the playlists of a run, after which it goes on in another folder: 8 days of 2 s segments in two renditions. */
const FULL_BYTES = 48 * 1024 * 1024

type ArchiveMode = 'all' | 'request'

/** Event of an archive, for its log and webhooks. */
export type ArchiveEvent =
  | ({ readonly type: 'started' | 'completed' } & ArchiveReport)
  | ({ readonly type: 'failed'; readonly reason: string } & ArchiveReport)

interface ArchiveOptions {
  readonly store: Pick<S3Store, 'put' | 'get' | 'head' | 'close'>
  /** Which streams are archived that do not say so themselves. */
  readonly mode: ArchiveMode
  /** Memory for media that is not stored. */
  readonly maxBytes: number
  /** Size of the playlists of a run, after which it goes on in another folder. */
  readonly fullBytes?: number
  /** Base of the URLs of archives. */
  readonly url: string
  readonly captions: CaptionsPolicy
  /** Time for which viewers may go back in streams that do not say so themselves; 0: not at all. */
  readonly dvrSec: number
  readonly rewind: RewindOptions
  readonly clock: Clock
  /** Draws a number from 0 to 1. */
  readonly random: () => number
  /** Resolves after so many milliseconds, or earlier if the signal is aborted. */
  readonly pause: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly onEvent: (stream: LiveStream, event: ArchiveEvent) => void
  /** Called when the store fails, with words for the operator, and undefined when it takes files again. */
  readonly onStore: (error: string | undefined) => void
}

/** Files of one run in the archive. */
interface Entry {
  readonly stream: LiveStream
  /** Name of the run: that of the stream, and for later folders their number. */
  readonly name: string
  readonly folder: RunFolder
  readonly run: ArchivedRun
  readonly isContinued: boolean
  /** Undefined if viewers may not go back. */
  readonly rewind: Rewind | undefined
  /** Media that the store does not have so far, by its URI, the oldest first. */
  readonly unstored: Map<
    string,
    { readonly sinceUs: number; readonly file: StreamFile | undefined }
  >
  /** When the stream ended. */
  endedUs: number | undefined
  /** How the archive has ended. */
  outcome: 'COMPLETE' | 'FAILED' | undefined
  isWriting: boolean
  /** Whether the playlists have been stored. */
  isStarted: boolean
  /** When media was lost last; -Infinity if none was. */
  lostUs: number
  writtenUs: number
  /** Of the stored index: number of its newest complete row, and whether it names the run that goes on behind this one. */
  indexed: { readonly sequence: number; readonly hasNext: boolean }
  /** Totals when files were written last. */
  written: { newestMs: number; mediaBytes: number }
}

export interface ArchiveStats {
  readonly storedBytes: number
  readonly waitingBytes: number
  /** Files that were lost, since the store did not take them in time. */
  readonly lostFiles: number
  readonly errors: number
  /** Number of archives that are written no more, since another process goes on with them. */
  readonly taken: number
}

/** `follow` each new stream; `tick` about 4 times a second; `close` when all streams have ended. */
export class Archive {
  readonly #options: ArchiveOptions
  readonly #clips: Clips
  readonly #uploads: UploadQueue<Entry>
  /** By stream: the run, behind those before it that are not complete. */
  readonly #entries = new Map<LiveStream, Entry[]>()
  /** Streams of another process that are to be looked at. */
  readonly #continued = new Set<LiveStream>()
  #storedBytes = 0
  #lostFiles = 0
  #errors = 0
  #taken = 0
  /** What the store answered last; undefined for success. */
  #error: string | undefined
  #failedUs = -Infinity

  constructor(options: ArchiveOptions) {
    this.#options = options
    this.#clips = new Clips(options)
    this.#uploads = new UploadQueue({
      maxBytes: options.maxBytes,
      random: options.random,
      pause: options.pause,
      onError: (error) => {
        this.#errors++
        this.#note(error instanceof Error ? error.message : String(error))
      },
      onSuccess: () => this.#note(undefined),
    })
  }

  get stats(): ArchiveStats {
    return {
      storedBytes: this.#storedBytes,
      waitingBytes: this.#uploads.sizeBytes,
      lostFiles: this.#lostFiles,
      errors: this.#errors,
      taken: this.#taken,
    }
  }

  follow(stream: LiveStream): void {
    const { rows, targets } = stream.checkpoint
    const isContinued = rows.length > 0 || targets !== undefined
    // Its options are not known yet.
    if (isContinued) this.#continued.add(stream)
    stream.on('checkpoint', (change) => {
      const entries = this.#entries.get(stream)
      for (const entry of entries ?? []) this.#take(entry, change)
      if (entries === undefined && stream.status !== 'STOPPED') this.#begin(stream, isContinued)
      stream.keepRowsFrom(this.#unrecordedFrom(stream))
    })
  }

  /** @returns undefined for a stream without an archive */
  reportOf(stream: LiveStream): ArchiveReport | undefined {
    const entry = this.#newestOf(stream)
    return entry && this.#report(entry)
  }

  /**
   * Stores playlists of a part of a run beside those of the whole, over the same segments.
   *
   * @throws {MillraceError} `ARCHIVE_NOT_FOUND`, `ARCHIVE_UNAVAILABLE`
   */
  async clip({ streamId, run, from, to }: ClipRequest & { streamId: string }): Promise<ClipReport> {
    const entry = this.#all.findLast(
      ({ stream, name }) => stream.id === streamId && (run ?? name) === name,
    )
    return this.#clips.make({ streamId, name: run ?? entry?.name, run: entry?.run, from, to })
  }

  tick(): void {
    for (const stream of this.#continued) if (!this.#entries.has(stream)) this.#begin(stream, true)
    this.#continued.clear()
    for (const entry of this.#all) {
      const { stream } = entry
      const isOver = stream.hasLeft || (this.#isPast(entry) && isSettled(entry))
      if (isOver) this.#leave(entry)
      else this.#watch(entry)
    }
  }

  /**
   * Stores what is left within the time limit, all streams having ended or left. The archives that are not complete then
   * have failed, unless another process goes on with them.
   */
  async close(timeoutMs: number): Promise<void> {
    const untilUs = this.#nowUs + timeoutMs * 1000
    const isOpen = () => this.#all.some((it) => !isSettled(it) || it.unstored.size > 0)
    while (isOpen() && this.#nowUs < untilUs) {
      this.tick()
      await this.#options.pause(CLOSE_TICK_MS)
    }
    for (const entry of this.#all) if (!isSettled(entry)) this.#giveUp(entry)
    this.#uploads.close()
    const { store, rewind } = this.#options
    await Promise.all([store.close(), rewind.store.close()])
  }

  /** Begins with a stream that is to be archived. */
  #begin(stream: LiveStream, isContinued: boolean): void {
    if (!(stream.policy.archive ?? this.#options.mode === 'all')) return
    this.#open(stream, { name: stream.run, isContinued })
  }

  #open(
    stream: LiveStream,
    { name, ...options }: { name: string } & Pick<ArchivedRunOptions, 'from' | 'isContinued'>,
  ): void {
    const { isContinued, from } = options
    const { dvrSec, rewind, random, captions, store } = this.#options
    const { checkpoint } = stream
    const format = checkpoint.media.formats?.includes('cmaf') ? 'cmaf' : 'ts'
    const { id: streamId, epoch: writer, fence } = stream
    const identity = { streamId, run: name, writer, fence }
    const archived = new ArchivedRun({ ...identity, captions, format, ...options })
    const folder = new RunFolder(store, `${streamId}/${name}`)
    const unstored: Entry['unstored'] = new Map()
    const { dvrSec: windowSec = dvrSec } = stream.policy
    const entry: Entry = {
      stream,
      name,
      folder,
      run: archived,
      isContinued,
      unstored,
      rewind:
        windowSec > 0
          ? new Rewind({
              ...rewind,
              stream,
              run: archived,
              folder: folder.path,
              windowSec,
              versionPrefix: random().toString(36).slice(2),
              unstored: (name) => unstored.get(name)?.file,
            })
          : undefined,
      endedUs: undefined,
      outcome: undefined,
      isWriting: false,
      isStarted: false,
      lostUs: -Infinity,
      writtenUs: isContinued || from !== undefined ? -Infinity : this.#nowUs,
      indexed: { sequence: -1, hasNext: false },
      written: { newestMs: from?.startMs ?? 0, mediaBytes: 0 },
    }
    this.#entries.set(stream, [...(this.#entries.get(stream) ?? []), entry])
    if (isContinued) this.#restore(entry)
    const { rows, ...head } = checkpoint
    this.#take(entry, { head, rows })
  }

  /** Takes over what the previous owner of the stream has stored. */
  #restore(entry: Entry): void {
    const { stream, folder, run } = entry
    const attempt = async () => {
      const multivariant = await folder.readVersion(MULTIVARIANT_URI)
      const index = await folder.load(run)
      if (index?.state === 'COMPLETE') entry.outcome = 'COMPLETE'
      if (run.next !== undefined) {
        entry.indexed = { sequence: run.lastSequence, hasNext: true }
        const { run: name, ...from } = run.next
        this.#open(stream, { name, from, isContinued: true })
      }
      entry.isStarted = multivariant !== undefined
      for (const media of run.open()) this.#store(entry, media)
      this.#publish(entry)
      return true
    }
    // What could not be read is not overwritten: then nothing is listed.
    this.#uploads.add(entry, { chunks: [], attempt, onDone: () => undefined }, true)
  }

  #take(entry: Entry, change: Pick<CheckpointChange, 'head' | 'rows'>): void {
    const { stream, run } = entry
    if (entry.outcome === 'FAILED') return
    for (const media of run.push(change)) this.#store(entry, media)
    this.#publish(entry)
    const isFull = run.playlistBytes > (this.#options.fullBytes ?? FULL_BYTES)
    if (isFull && run.isOpen && entry === this.#newestOf(stream)) this.#goOn(entry)
  }

  #publish(entry: Entry): void {
    if (entry === this.#newestOf(entry.stream)) entry.rewind?.publish()
  }

  /** Goes on in another folder: all that the playlists list is read when a process takes over. */
  #goOn({ stream, name, run }: Entry): void {
    const number = Number(name.slice(stream.run.length + 1)) || 1
    const { run: next, ...from } = run.continueAs(`${stream.run}-${number + 1}`)
    this.#open(stream, { name: next, from, isContinued: false })
  }

  #newestOf(stream: LiveStream): Entry | undefined {
    return this.#entries.get(stream)?.at(-1)
  }

  get #all(): Entry[] {
    return [...this.#entries.values()].flat()
  }

  /** Whether nobody asks for its report any more. */
  #isPast(entry: Entry): boolean {
    return entry.stream.forgotten || entry !== this.#newestOf(entry.stream)
  }

  #store(entry: Entry, { uri, rendition, sizeBytes }: ArchivedMedia): void {
    const { stream, folder, run, unstored, isContinued } = entry
    const key = `${folder.path}/${uri}`
    const loan = stream.files.lend(uri)
    if (loan === undefined && !isContinued) {
      this.#lose(entry, uri, 'The cache had no room for it (CACHE_MAX_MIB)')
      return
    }
    const { store } = this.#options
    const chunks = loan?.file.chunks ?? []
    const fileBytes = totalBytes(chunks)
    let looks = 0
    const look = async () => {
      const found = await store.head(key)
      if (found !== undefined) return found.sizeBytes === (sizeBytes ?? found.sizeBytes)
      return ++looks < LOOKS ? undefined : false
    }
    const put = async (signal: AbortSignal) => {
      const object = { key, chunks, contentType: mediaTypeOf(rendition), cacheControl: FOREVER }
      try {
        await store.put(object, { createOnly: true, signal })
      } catch (error) {
        if (isConflict(error)) return false
        throw error
      }
      this.#storedBytes += fileBytes
      return true
    }
    const onDone = (isStored: boolean | undefined) => {
      loan?.end?.()
      unstored.delete(uri)
      const isSlow = isStored === undefined
      const reason = `The store ${isSlow ? 'takes media slower than it comes' : 'does not have it'}`
      if (isStored) run.settle(uri, true)
      else this.#lose(entry, uri, this.#error ?? reason)
    }
    unstored.set(uri, { sinceUs: this.#nowUs, file: loan?.file })
    // Segments need their init segment, which is small.
    const counted = sizeBytes === undefined ? [] : chunks
    const isDue = () => this.#isNamed(entry)
    const task = { chunks: counted, isDue, attempt: loan ? put : look, onDone }
    if (!this.#uploads.add(entry, task)) onDone(undefined)
  }

  #lose(entry: Entry, uri: string, reason: string): void {
    this.#lostFiles++
    const isFirst = entry.lostUs === -Infinity
    entry.lostUs = this.#nowUs
    if (isFirst && entry.outcome === undefined)
      this.#options.onEvent(entry.stream, { type: 'failed', reason, ...this.#report(entry) })
    entry.run.settle(uri, false)
  }

  /** Goes on with the uploads for a while, since nothing more comes. */
  #leave(entry: Entry): void {
    const { stream } = entry
    const isLate = this.#overSec(entry) > FINISH_SEC
    if (!isLate && entry.unstored.size > 0) return
    this.#uploads.abandon(entry)
    const others = this.#entries.get(stream)!.filter((it) => it !== entry)
    if (others.length > 0) this.#entries.set(stream, others)
    else this.#entries.delete(stream)
  }

  #watch(entry: Entry): void {
    const { stream, run } = entry
    if (isSettled(entry)) return
    if (run.mustGiveUp) this.#uploads.abandon(entry)
    if (stream.status === 'STOPPED' || run.ended) {
      if (entry.endedUs === undefined) {
        run.end()
        this.#publish(entry)
      }
      const overSec = this.#overSec(entry)
      if (run.isListed && !run.isPlayable) {
        this.#leave(entry)
        return
      }
      // First the media, then the playlists.
      if (overSec > FINISH_SEC && entry.unstored.size > 0) this.#uploads.abandon(entry)
      if (overSec > 2 * FINISH_SEC) this.#giveUp(entry)
    } else this.#warn(entry)
    if (!entry.isWriting && this.#isDue(entry)) this.#write(entry)
  }

  /** Time since the end of the stream. */
  #overSec(entry: Entry): number {
    entry.endedUs ??= this.#nowUs
    return (this.#nowUs - entry.endedUs) / 1e6
  }

  #isLosing({ lostUs }: Entry): boolean {
    return this.#nowUs - lostUs < WORKS_SEC * 1e6
  }

  #warn(entry: Entry): void {
    const lagSec = this.#lagSec(entry)
    if (lagSec > BEHIND_SEC) entry.stream.warn({ code: 'ARCHIVE_BEHIND', lagSec })
    const { gapSec } = entry.run.totals
    if (this.#isLosing(entry)) entry.stream.warn({ code: 'ARCHIVE_GAPS', gapSec })
  }

  #giveUp(
    entry: Entry,
    reason = this.#error ?? 'The store did not take the playlists in time',
  ): void {
    // First: what waits is lost for the same reason.
    entry.outcome = 'FAILED'
    this.#uploads.abandon(entry)
    this.#options.onEvent(entry.stream, { type: 'failed', reason, ...this.#report(entry) })
  }

  #isDue(entry: Entry): boolean {
    const { run, endedUs, writtenUs, written } = entry
    if (!run.isOpen || !this.#isNamed(entry)) return false
    if (run.next !== undefined && !entry.indexed.hasNext) return true
    if (endedUs !== undefined && run.isListed) return run.isPlayable
    return written.newestMs !== run.newestMs && this.#nowUs - writtenUs >= PLAYLIST_SEC * 1e6
  }

  /** Whether another process finds the run: the stored index of the one before names it. */
  #isNamed(entry: Entry): boolean {
    const entries = this.#entries.get(entry.stream) ?? []
    const before = entries[entries.indexOf(entry) - 1]
    return before === undefined || before.indexed.hasNext || isSettled(before)
  }

  /** Number of the first row that another process would not find in the store; Infinity without an archive. */
  #unrecordedFrom(stream: LiveStream): number {
    const numbers = (this.#entries.get(stream) ?? []).map((entry) => {
      const next = entry.indexed.sequence + 1
      return isSettled(entry) || next === entry.run.next?.mediaSequence ? Infinity : next
    })
    return Math.min(...numbers)
  }

  /**
   * Stores the index, and the playlists unless they are long for the media that has come since. A process that was cut off
   * replaces no version that it does not know: it looks for the index of its successor before each attempt, and the store
   * compares the ETags, where it can.
   */
  #write(entry: Entry): void {
    const { onEvent } = this.#options
    const { stream, folder, run } = entry
    const { newestMs, completeSequence, lastSequence, next } = run
    const mediaBytes = run.totals.sizeBytes
    const isLast = entry.endedUs !== undefined && run.isListed
    const isWorthwhile =
      isLast ||
      !entry.isStarted ||
      run.unwritten >= MAX_UNWRITTEN ||
      mediaBytes - entry.written.mediaBytes >= run.playlistBytes * MEDIA_TO_PLAYLISTS
    const withPlaylists = run.isPlayable && isWorthwhile
    const documents = run.documents(withPlaylists)
    entry.isWriting = true
    let stored = 0
    const attempt = async () => {
      if (await this.#isTaken(entry)) {
        this.#yield(stream)
        return false
      }
      for (; stored < documents.length; stored++) {
        if (stream.hasLeft) return false
        const document = documents[stored]!
        if (!(await folder.replace(document, isLast && stored > 0))) return undefined
        if (document.name === INDEX_NAME)
          entry.indexed = { sequence: completeSequence, hasNext: next !== undefined }
      }
      return true
    }
    const onDone = (isStored: boolean | undefined) => {
      entry.isWriting = false
      entry.writtenUs = this.#nowUs
      if (!isStored) return
      entry.written = {
        newestMs,
        mediaBytes: withPlaylists ? mediaBytes : entry.written.mediaBytes,
      }
      if (withPlaylists) run.confirm(lastSequence)
      if (withPlaylists && !entry.isStarted) {
        entry.isStarted = true
        onEvent(stream, { type: 'started', ...this.#report(entry) })
      }
      if (!isLast) return
      entry.outcome = 'COMPLETE'
      onEvent(stream, { type: 'completed', ...this.#report(entry) })
    }
    // Their lines are in memory anyway.
    this.#uploads.add(entry, { chunks: [], attempt, onDone }, true)
  }

  /** Leaves the archive to another process, with the folders behind this one. */
  #yield(stream: LiveStream): void {
    const entries = this.#entries.get(stream)?.filter((it) => !isSettled(it)) ?? []
    if (entries.length > 0) this.#taken++
    for (const entry of entries) this.#giveUp(entry, 'Another node goes on with it')
  }

  /** Whether another process has gone on with the run, of which this one has not heard. */
  async #isTaken({ folder, run }: Entry): Promise<boolean> {
    const index = parseIndex((await folder.read(INDEX_NAME)) ?? '')
    return index !== undefined && run.isTakenBy(index)
  }

  #report(entry: Entry): ArchiveReport {
    const { run, name, outcome, isStarted } = entry
    const lagSec = this.#lagSec(entry)
    const isBehind = this.#isLosing(entry) || lagSec > BEHIND_SEC
    return {
      run: name,
      state: outcome ?? (isBehind ? 'BEHIND' : 'RUNNING'),
      ...(isStarted && { url: this.#urlOf(entry) }),
      ...run.totals,
      durationSec: printedSec(run.totals.durationSec),
      gapSec: printedSec(run.totals.gapSec),
      lagSec: Math.round(lagSec),
      waitingBytes: this.#uploads.sizeOf(entry),
      ...(this.#error !== undefined && outcome !== 'COMPLETE' && { error: this.#error }),
    }
  }

  /** Age of the oldest media that is not stored. */
  #lagSec({ unstored }: Entry): number {
    const [oldest] = unstored.values()
    return (this.#nowUs - (oldest?.sinceUs ?? this.#nowUs)) / 1e6
  }

  #urlOf({ folder }: Entry): string {
    return `${this.#options.url}/${folder.path}/${MULTIVARIANT_URI}`
  }

  /** Single requests may fail at any time: the store works again after a while without one that did. */
  #note(error: string | undefined): void {
    if (error !== undefined) this.#failedUs = this.#nowUs
    else if (this.#nowUs - this.#failedUs < WORKS_SEC * 1e6) return
    if (error !== this.#error) this.#options.onStore(error)
    this.#error = error
  }

  get #nowUs(): number {
    return this.#options.clock.nowUs()
  }
}

/** Whether nothing more will be stored. */
function isSettled({ outcome, stream }: Entry): boolean {
  return outcome !== undefined || stream.hasLeft
}
