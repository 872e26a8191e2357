/**
 * Snapshots of the service: one a second for all dashboards that show the same part of the list, none while no dashboard
 * is open.
 *
 * @module
 */
import type { ClusterNode } from '../api/records.ts'
import type { StreamControl } from '../api/control.ts'
import type { Snapshot, StreamRow, ListTotals } from '../web/dashboard/wire.ts'
import { encodersOf, pageOf, Roster, settled, type ListView, type Turn } from './roster.ts'

/** Maximum number of open dashboards. */
const MAX_LISTENERS = 32

/** Maximum number of snapshots in a row that a listener does not take, after which it is gone. */
const MAX_SKIPPED = 60

/** What a listener looks at. */
export interface ListenerView extends ListView {
  /** Id of the stream whose details are shown. */
  readonly stream?: string
}

export interface SnapshotListener {
  /** Whether it has not taken the previous snapshot yet. */
  readonly isBusy: boolean
  /** Whether its connection and its session are still open. */
  readonly isAllowed: () => boolean
  send(text: string): void
  end(): void
}

/** Number of snapshots over which the bitrate to viewers is averaged: segments leave in bursts. */
const SENT_SAMPLES = 10

/** Bounds of the time between two of its samples. */
const MIN_GAP_MS = 500
const MAX_GAP_MS = 10_000

/** Calling order: `add` listeners, `tick` once a second, `close`. */
export class Snapshots {
  readonly #control: Pick<StreamControl, 'list' | 'nodes'>
  readonly #roster: Roster
  readonly #sent: SentRate
  readonly #listeners = new Map<
    SnapshotListener,
    { readonly view: ListenerView; skipped: number }
  >()

  /** @param readSentBytes  bytes sent to viewers since the start */
  constructor(control: Pick<StreamControl, 'list' | 'nodes'>, readSentBytes: () => number) {
    this.#control = control
    this.#roster = new Roster(control)
    this.#sent = new SentRate(readSentBytes)
  }

  get isFull(): boolean {
    return this.#listeners.size >= MAX_LISTENERS
  }

  get isEmpty(): boolean {
    return this.#listeners.size === 0
  }

  /**
   * Adds a listener, and sends it a first snapshot. `remove` it when its connection closes.
   *
   * @returns see `tick`
   */
  add(listener: SnapshotListener, view: ListenerView, timeMs: number): Generator<Turn> {
    this.#listeners.set(listener, { view, skipped: 0 })
    return this.#sendFirst(listener, view, timeMs)
  }

  remove(listener: SnapshotListener): void {
    this.#listeners.delete(listener)
  }

  /**
   * Sends each listener its snapshot. One that has not taken the previous one gets none: nothing is queued.
   *
   * @returns iterator that has read a few streams at each step: packets are to be read between them
   */
  *tick(timeMs: number): Generator<Turn> {
    const due = [...this.#listeners].filter(([listener, state]) => {
      if (!listener.isAllowed() || state.skipped >= MAX_SKIPPED) {
        this.#end(listener)
        return false
      }
      state.skipped = listener.isBusy ? state.skipped + 1 : 0
      return state.skipped === 0
    })
    if (due.length === 0) return
    yield* this.#roster.read(timeMs)
    this.#sent.sample(timeMs)
    const texts = new Map<string, string>()
    for (const [listener, { view }] of due) {
      yield
      const key = JSON.stringify(view)
      const text = texts.get(key) ?? (yield* this.#render(view, timeMs))
      texts.set(key, text)
      // It may have left in between.
      if (this.#listeners.has(listener) && listener.isAllowed()) listener.send(text)
    }
  }

  close(): void {
    for (const listener of this.#listeners.keys()) this.#end(listener)
  }

  *#sendFirst(listener: SnapshotListener, view: ListenerView, timeMs: number): Generator<Turn> {
    if (!this.#listeners.has(listener)) return
    yield* this.#roster.open(timeMs)
    this.#sent.sample(timeMs)
    const text = yield* this.#render(view, timeMs)
    if (this.#listeners.has(listener)) listener.send(text)
  }

  #end(listener: SnapshotListener): void {
    this.#listeners.delete(listener)
    listener.end()
  }

  /** An event of `text/event-stream` (HTML Living Standard, section 9.2). */
  *#render({ stream, ...list }: ListenerView, timeMs: number): Generator<Turn, string> {
    const { rows, isCut, publicUrl, service } = this.#roster
    const selected = stream === undefined ? undefined : rows.find(({ id }) => id === stream)
    const nodes = yield* settled<readonly ClusterNode[]>(this.#control.nodes?.() ?? [], [])
    const snapshot: Snapshot = {
      timeMs,
      ...pageOf(rows, list),
      totals: totalsOf(rows, this.#sent.bitsPerSec),
      ...(isCut && { isCut }),
      ...(selected && { selected }),
      ...(nodes.length > 0 && { nodes }),
      ...(publicUrl !== undefined && { publicUrl }),
      ...(service && {
        load: {
          loopDelayMs: service.loopDelayMsP99,
          httpConnections: service.http.connections,
          ...(service.kernelDrops !== undefined && { kernelDrops: service.kernelDrops }),
        },
      }),
    }
    return `data: ${JSON.stringify(snapshot)}\n\n`
  }
}

/** Bitrate to viewers over HTTP. */
class SentRate {
  readonly #readBytes: () => number
  readonly #samples: { readonly timeMs: number; readonly bytes: number }[] = []

  constructor(readBytes: () => number) {
    this.#readBytes = readBytes
  }

  sample(timeMs: number): void {
    const last = this.#samples.at(-1)
    // Before it there was no dashboard, or the clock was set back.
    if (last !== undefined && Math.abs(timeMs - last.timeMs) > MAX_GAP_MS) this.#samples.length = 0
    else if (last !== undefined && timeMs - last.timeMs < MIN_GAP_MS) return
    this.#samples.push({ timeMs, bytes: this.#readBytes() })
    if (this.#samples.length > SENT_SAMPLES) this.#samples.shift()
  }

  /** Undefined until there are two samples. */
  get bitsPerSec(): number | undefined {
    const [first] = this.#samples
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || first === last) return undefined
    return Math.round((8000 * (last.bytes - first.bytes)) / (last.timeMs - first.timeMs))
  }
}

/** Bitrate to readers over SRT and to listeners. */
function srtBpsTo({ readers, pushes = [] }: StreamRow): number {
  return pushes.reduce((all, { bitrateBps = 0 }) => all + bitrateBps, readers?.bitrateBps ?? 0)
}

/** @param httpBps  undefined at first */
function totalsOf(rows: readonly StreamRow[], httpBps: number | undefined): ListTotals {
  const sum = (read: (row: StreamRow) => number) => rows.reduce((all, row) => all + read(row), 0)
  return {
    live: sum(({ live }) => Number(live)),
    viewers: sum(({ viewers }) => viewers),
    inBps: rows.flatMap(encodersOf).reduce((all, { bitrateBps }) => all + bitrateBps, 0),
    ...(httpBps !== undefined && { outBps: httpBps + sum(srtBpsTo) }),
    warned: sum(({ warnings }) => Number(warnings.length > 0)),
  }
}
