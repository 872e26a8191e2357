/**
 * Snapshots of the service: one a second for all dashboards that show the same part of the list, none while no dashboard
 * is open.
 *
 * @module
 */
import type { ClusterNode } from '../api/records.ts'
import type { StreamControl } from '../api/control.ts'
import { VERSION } from '../version.ts'
import type { ListTotals, ProcessFigures, Snapshot, StreamRow } from '../web/dashboard/wire.ts'
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

/** Figures of the process that serves the dashboard; sums are those since its start. */
export interface ProcessReading {
  readonly cpuSec: number
  /** Sent to viewers over HTTP. */
  readonly sentBytes: number
  readonly residentBytes: number
  readonly uptimeSec: number
  /** Whether other processes serve viewers, see `HTTP_WORKERS`. */
  readonly hasWorkers?: boolean
}

/** Number of snapshots over which sums of the process are averaged, for 10 s: segments leave in bursts. */
const PROCESS_SAMPLES = 11

/** Bounds of the time between two samples. */
const MIN_GAP_MS = 500
const MAX_GAP_MS = 10_000

/** Calling order: `add` listeners, `tick` once a second, `close`. */
export class Snapshots {
  readonly #control: Pick<StreamControl, 'list' | 'nodes'>
  readonly #roster: Roster
  readonly #process: ProcessSamples
  readonly #listeners = new Map<
    SnapshotListener,
    { readonly view: ListenerView; skipped: number }
  >()

  constructor(control: Pick<StreamControl, 'list' | 'nodes'>, readProcess: () => ProcessReading) {
    this.#control = control
    this.#roster = new Roster(control)
    this.#process = new ProcessSamples(readProcess)
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
    this.#process.sample(timeMs)
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
    this.#process.sample(timeMs)
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
      totals: totalsOf(rows, this.#process.perSec('sentBytes')),
      process: this.#process.figures,
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

/** Calling order: `sample` once a second, then the figures. */
class ProcessSamples {
  readonly #read: () => ProcessReading
  readonly #samples: { readonly timeMs: number; readonly reading: ProcessReading }[] = []

  constructor(read: () => ProcessReading) {
    this.#read = read
  }

  sample(timeMs: number): void {
    const last = this.#samples.at(-1)
    // Before it there was no dashboard, or the clock was set back.
    if (last !== undefined && Math.abs(timeMs - last.timeMs) > MAX_GAP_MS) this.#samples.length = 0
    else if (last !== undefined && timeMs - last.timeMs < MIN_GAP_MS) return
    this.#samples.push({ timeMs, reading: this.#read() })
    if (this.#samples.length > PROCESS_SAMPLES) this.#samples.shift()
  }

  get figures(): ProcessFigures {
    const { residentBytes, uptimeSec, hasWorkers } = this.#samples.at(-1)!.reading
    const cpu = this.perSec('cpuSec')
    return {
      version: VERSION,
      uptimeSec: Math.floor(uptimeSec),
      residentBytes,
      ...(hasWorkers && { hasWorkers }),
      ...(cpu !== undefined && { cpuPercent: Math.round(100 * cpu) }),
    }
  }

  /** Growth of a sum; undefined until there are two samples. */
  perSec(sum: 'cpuSec' | 'sentBytes'): number | undefined {
    const [first, last] = [this.#samples[0]!, this.#samples.at(-1)!]
    if (first === last) return undefined
    return (1000 * (last.reading[sum] - first.reading[sum])) / (last.timeMs - first.timeMs)
  }
}

/** Bitrate to readers over SRT and to listeners. */
function srtBpsTo({ readers, pushes = [] }: StreamRow): number {
  return pushes.reduce((all, { bitrateBps = 0 }) => all + bitrateBps, readers?.bitrateBps ?? 0)
}

/** @param sentPerSec  bytes per second sent over HTTP; undefined at first */
function totalsOf(rows: readonly StreamRow[], sentPerSec: number | undefined): ListTotals {
  const sum = (read: (row: StreamRow) => number) => rows.reduce((all, row) => all + read(row), 0)
  return {
    live: sum(({ live }) => Number(live)),
    viewers: sum(({ viewers }) => viewers),
    inBps: rows.flatMap(encodersOf).reduce((all, { bitrateBps }) => all + bitrateBps, 0),
    ...(sentPerSec !== undefined && { outBps: Math.round(8 * sentPerSec) + sum(srtBpsTo) }),
    warned: sum(({ warnings }) => Number(warnings.length > 0)),
  }
}
