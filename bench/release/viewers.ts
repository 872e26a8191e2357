/**
 * Worker full of viewers at the live edge: each always has one blocking playlist request, and fetches every part in turn.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { loopDelayP99Ms, selfUsage, type Usage } from '../support/usage.ts'
import { answer, readTask } from '../support/worker.ts'
import { nowMs } from './clock.ts'
import { openLanes, type Lanes } from '../support/lanes.ts'
import { EdgeReader, type Edge } from './playlist-reader.ts'

export interface ViewersTask {
  readonly playlistUrl: string
  readonly viewers: number
  /** Whether viewers fetch no parts. */
  readonly isPlaylistOnly?: boolean
}

export interface ViewersAnswers {
  /** Connects all viewers. @returns their number */
  open(): Promise<number>
  usage(): Usage
  loopDelayP99Ms(durationMs: number): Promise<number>
  /** Arrivals since the last call. */
  report(): ViewersReport
}

export interface ViewersReport {
  /** Times of the last bytes by part: of the first playlist that lists it, for each viewer. */
  readonly playlistMs: Readonly<Record<number, readonly number[]>>
  /** Times of the last bytes of each part, for each viewer. */
  readonly partMs: Readonly<Record<number, readonly number[]>>
  readonly bytes: number
  /** Replies without the file. */
  readonly failures: number
}

/** Viewers that connect at the same time, with a pause for each such group. */
const GROUP = 20
const PAUSE_MS = 20
const RETRY_MS = 1000

const { playlistUrl, viewers, isPlaylistOnly = false } = (await readTask()) as ViewersTask
const origin = new URL(playlistUrl)
const reader = new EdgeReader()
let report = emptyReport()

class Viewer {
  readonly #lanes: Lanes
  /** Newest part of the latest playlist. */
  #newest: Edge | undefined
  /** Number of the part that is fetched next. */
  #nextPart = 0
  #isFetching = false

  constructor(lanes: Lanes) {
    this.#lanes = lanes
  }

  askPlaylist(query: string): void {
    this.#lanes.playlists.get(origin.pathname + query, ({ status, body, sizeBytes }) => {
      const edge = status === 200 ? reader.read(body) : undefined
      report.bytes += sizeBytes
      if (edge === undefined) {
        report.failures++
        setTimeout(() => this.askPlaylist(''), RETRY_MS)
        return
      }
      this.#take(edge)
      this.askPlaylist(queryOf(edge))
    })
  }

  #take(edge: Edge): void {
    const { newestPart } = edge
    const atMs = nowMs()
    if (this.#newest === undefined) this.#nextPart = newestPart
    else {
      for (let part = this.#newest.newestPart + 1; part <= newestPart; part++) {
        note(report.playlistMs, part, atMs)
      }
    }
    this.#newest = edge
    if (!this.#isFetching && !isPlaylistOnly) this.#fetchPart()
  }

  #fetchPart(): void {
    const number = this.#nextPart
    const { newestPart, partUri } = this.#newest!
    this.#isFetching = number <= newestPart
    if (!this.#isFetching) return
    this.#lanes.media.get(new URL(partUri(number), origin).pathname, ({ status, sizeBytes }) => {
      if (status === 200) note(report.partMs, number, nowMs())
      else report.failures++
      report.bytes += sizeBytes
      this.#nextPart++
      this.#fetchPart()
    })
  }
}

answer<ViewersAnswers>({
  open: async () => {
    for (let opened = 0; opened < viewers; opened++) {
      new Viewer(openLanes(origin, { isPlaylistOnly })).askPlaylist('')
      if (opened % GROUP === GROUP - 1) await sleep(PAUSE_MS)
    }
    return viewers
  },
  usage: selfUsage,
  loopDelayP99Ms,
  report: () => {
    const before = report
    report = emptyReport()
    return before
  },
})

function queryOf({ next: { mediaSequence, part } }: Edge): string {
  return `?_HLS_msn=${mediaSequence}&_HLS_part=${part}`
}

function note(timesMs: Record<number, number[]>, part: number, atMs: number): void {
  const times = (timesMs[part] ??= [])
  times.push(Math.round(atMs * 100) / 100)
}

function emptyReport() {
  const playlistMs: Record<number, number[]> = {}
  const partMs: Record<number, number[]> = {}
  return { playlistMs, partMs, bytes: 0, failures: 0 }
}
