/**
 * Snapshots of the service for the dashboard: one a second for all that look at the same page of the list, none while
 * nobody looks.
 *
 * @module
 */
import type { ClusterNode, ListRequest, StreamControl, StreamPage } from '../../contract/streams.ts'
import { rowOf } from './rows.ts'
import type { Snapshot } from './wire.ts'

/** Maximum number of open dashboards. */
const MAX_LISTENERS = 32

/** Maximum number of snapshots in a row that a listener does not take, after which it is gone. */
const MAX_SKIPPED = 60

/** Part of the list that a listener looks at. */
export type View = Pick<ListRequest, 'status' | 'after'>

export interface Listener {
  /** Whether it has not taken the previous snapshot yet. */
  readonly isBusy: boolean
  /** Whether its connection and its session are still open. */
  readonly isAllowed: () => boolean
  send(text: string): void
  end(): void
}

/** Streams of a snapshot: 50 rows have 10 to 20 KB. */
const ROWS = 50

/** Streams that are read at once: 25 records take 1 to 3 ms. */
const ROWS_PER_TURN = 25

/** What comes before the next step: a promise, or a turn of the event loop. */
export type Turn = Promise<unknown> | void

/** Calling order: `add` listeners, `tick` once a second, `close`. */
export class Snapshots {
  readonly #control: Pick<StreamControl, 'list' | 'nodes'>
  readonly #listeners = new Map<Listener, { readonly view: View; skipped: number }>()

  constructor(control: Pick<StreamControl, 'list' | 'nodes'>) {
    this.#control = control
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
  *add(listener: Listener, view: View, timeMs: number): Generator<Turn> {
    this.#listeners.set(listener, { view, skipped: 0 })
    const text = yield* this.#render(view, timeMs)
    if (this.#listeners.has(listener)) listener.send(text)
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener)
  }

  /**
   * Sends each listener its snapshot. One that has not taken the previous one gets none: nothing is queued.
   *
   * @returns iterator that has read a few streams at each step: packets are to be read between them
   */
  *tick(timeMs: number): Generator<Turn> {
    const texts = new Map<string, string>()
    for (const [listener, state] of this.#listeners) {
      if (!listener.isAllowed() || state.skipped >= MAX_SKIPPED) {
        this.#end(listener)
        continue
      }
      state.skipped = listener.isBusy ? state.skipped + 1 : 0
      if (state.skipped > 0) continue
      const key = JSON.stringify([state.view.status, state.view.after])
      let text = texts.get(key)
      if (text === undefined) {
        texts.set(key, (text = yield* this.#render(state.view, timeMs)))
        yield
      }
      // It may have left in between.
      if (this.#listeners.has(listener)) listener.send(text)
    }
  }

  close(): void {
    for (const listener of this.#listeners.keys()) this.#end(listener)
  }

  #end(listener: Listener): void {
    this.#listeners.delete(listener)
    listener.end()
  }

  /** An event of `text/event-stream` (HTML Living Standard, section 9.2), a few streams at each step. */
  *#render(view: View, timeMs: number): Generator<Turn, string> {
    const streams: StreamPage['streams'][number][] = []
    let page: StreamPage
    let { after } = view
    do {
      if (streams.length > 0) yield
      const request = { ...view, ...(after !== undefined && { after }), limit: ROWS_PER_TURN }
      // While the registry of the cluster is away, the dashboard shows no streams.
      page = yield* settled(this.#control.list(request), { streams: [] })
      streams.push(...page.streams)
      after = page.next
    } while (after !== undefined && streams.length < ROWS)
    const { service } = page
    const nodes = yield* settled<readonly ClusterNode[]>(this.#control.nodes?.() ?? [], [])
    const snapshot: Snapshot = {
      timeMs,
      rows: streams.map(rowOf),
      ...(after !== undefined && { next: after }),
      ...(nodes.length > 0 && { nodes }),
      ...(streams[0] && { publicUrl: baseOf(streams[0].masterUrl) }),
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

function* settled<T>(answer: T | Promise<T>, otherwise: T): Generator<Turn, T> {
  if (!(answer instanceof Promise)) return answer
  let result = otherwise
  yield answer.then(
    (value) => void (result = value),
    () => undefined,
  )
  return result
}

/** URL below which the service has `/video` and `/watch`. */
function baseOf(masterUrl: string): string {
  return masterUrl.replace(/\/video\/[^/]+\/[^/]+$/, '')
}
