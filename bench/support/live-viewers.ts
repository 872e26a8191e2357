/**
 * Worker full of viewers of live streams: each reloads the playlist of its stream, and fetches every new segment.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { openLanes, type Lanes } from './lanes.ts'
import { selfUsage, type Usage } from './usage.ts'
import { answer, readTask } from './worker.ts'

export interface LiveViewersTask {
  /** One for each stream; viewers are spread over them. */
  readonly playlistUrls: readonly string[]
  readonly viewers: number
  /** Whether viewers whose connection is lost connect again. */
  readonly survive?: boolean
}

export interface LiveViewersAnswers {
  /** Connects all viewers. @returns their number */
  open(): Promise<number>
  usage(): Usage
  /** Figures since the last call. */
  report(): LiveViewersReport
}

export interface LiveViewersReport {
  /** Times to the first byte of each reply. */
  readonly playlistMs: readonly number[]
  readonly segmentMs: readonly number[]
  readonly bytes: number
  /** Replies without the file. */
  readonly failures: number
  /** Segments that left the playlist before a viewer had fetched them. */
  readonly missed: number
  /** Segments without media that viewers came to. */
  readonly gaps: number
  /** Connections that were lost. */
  readonly reconnects: number
}

/** Interval of playlist reloads: half of the target duration of the streams (RFC 8216 6.3.4). */
const RELOAD_MS = 1000
/** Time over which viewers connect. */
const OPENING_MS = 2000

/** Tags of a segment, and its URI. */
const SEGMENT = /((?:^#.*\n)*)^([^#\n].*)$/gm

interface Window {
  readonly first: number
  /** Undefined for a gap. */
  readonly paths: readonly (string | undefined)[]
}

/** Window of a stream, read once for all of its viewers. */
class WindowReader {
  readonly url: URL
  #bytes = Buffer.alloc(0)
  #window: Window = { first: 0, paths: [] }

  constructor(url: string) {
    this.url = new URL(url)
  }

  read(bytes: Buffer): Window {
    if (!bytes.equals(this.#bytes)) {
      this.#bytes = Buffer.from(bytes)
      const text = gunzipSync(bytes).toString()
      this.#window = {
        first: Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1] ?? 0),
        paths: Array.from(text.matchAll(SEGMENT), ([, tags, uri]) =>
          tags!.includes('#EXT-X-GAP') ? undefined : new URL(uri!, this.url).pathname,
        ),
      }
    }
    return this.#window
  }
}

class Viewer {
  readonly #lanes: Lanes
  readonly #reader: WindowReader
  #window: Window | undefined
  /** Media Sequence Number of the segment that is fetched next. */
  #next = 0
  #isFetching = false

  constructor(reader: WindowReader) {
    this.#lanes = openLanes(reader.url, survive ? { onLost: () => report.reconnects++ } : {})
    this.#reader = reader
  }

  reload(): void {
    this.#lanes.playlists.get(this.#reader.url.pathname, (reply) => {
      setTimeout(() => this.reload(), RELOAD_MS)
      report.bytes += reply.sizeBytes
      report.playlistMs.push(rounded(reply.firstByteMs))
      if (reply.status === 200) this.#take(this.#reader.read(reply.body))
      else report.failures++
    })
  }

  #take(window: Window): void {
    if (this.#window === undefined) this.#next = window.first + window.paths.length - 1
    this.#window = window
    if (!this.#isFetching) this.#fetch()
  }

  #fetch(): void {
    const { first, paths } = this.#window!
    report.missed += Math.max(0, first - this.#next)
    this.#next = Math.max(first, this.#next)
    for (
      ;
      paths.length > this.#next - first && paths[this.#next - first] === undefined;
      this.#next++
    ) {
      report.gaps++
    }
    const path = paths[this.#next - first]
    this.#isFetching = path !== undefined
    if (path === undefined) return
    this.#lanes.media.get(path, ({ status, sizeBytes, firstByteMs }) => {
      report.segmentMs.push(rounded(firstByteMs))
      report.bytes += sizeBytes
      if (status !== 200) report.failures++
      this.#next++
      this.#fetch()
    })
  }
}

const { playlistUrls, viewers, survive = false } = (await readTask()) as LiveViewersTask
const readers = playlistUrls.map((url) => new WindowReader(url))
let report = emptyReport()

answer<LiveViewersAnswers>({
  open: async () => {
    for (let opened = 0; opened < viewers; opened++) {
      new Viewer(readers[opened % readers.length]!).reload()
      await sleep(OPENING_MS / viewers)
    }
    return viewers
  },
  usage: selfUsage,
  report: () => {
    const before = report
    report = emptyReport()
    return before
  },
})

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100
}

function emptyReport() {
  const [playlistMs, segmentMs]: [number[], number[]] = [[], []]
  return { playlistMs, segmentMs, bytes: 0, failures: 0, missed: 0, gaps: 0, reconnects: 0 }
}
