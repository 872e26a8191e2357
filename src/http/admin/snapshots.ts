/**
 * Snapshots of the service for the dashboard: one a second for all that look at the same page of the list, none while
 * nobody looks.
 *
 * @module
 */
import type { ListRequest, StreamPage } from '../../contract/streams.ts'
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
  /** Whether its session is still open. */
  readonly isAllowed: () => boolean
  send(text: string): void
  end(): void
}

/** Streams of a snapshot: 50 rows have 10 to 20 KB. */
const ROWS = 50

/** Calling order: `add` listeners, `tick` once a second, `close`. */
export class Snapshots {
  readonly #list: (request: ListRequest) => StreamPage
  readonly #listeners = new Map<Listener, { readonly view: View; skipped: number }>()

  constructor(list: (request: ListRequest) => StreamPage) {
    this.#list = list
  }

  get isFull(): boolean {
    return this.#listeners.size >= MAX_LISTENERS
  }

  get isEmpty(): boolean {
    return this.#listeners.size === 0
  }

  /** Adds a listener and sends it a first snapshot. `remove` it when its connection closes. */
  add(listener: Listener, view: View, timeMs: number): void {
    this.#listeners.set(listener, { view, skipped: 0 })
    listener.send(this.#render(view, timeMs))
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener)
  }

  /** Sends each listener its snapshot. One that has not taken the previous one gets none: nothing is queued. */
  tick(timeMs: number): void {
    const texts = new Map<string, string>()
    for (const [listener, state] of this.#listeners) {
      if (!listener.isAllowed() || state.skipped >= MAX_SKIPPED) {
        this.#end(listener)
        continue
      }
      state.skipped = listener.isBusy ? state.skipped + 1 : 0
      if (state.skipped > 0) continue
      const key = JSON.stringify([state.view.status, state.view.after])
      const text = texts.get(key) ?? this.#render(state.view, timeMs)
      texts.set(key, text)
      listener.send(text)
    }
  }

  close(): void {
    for (const listener of this.#listeners.keys()) this.#end(listener)
  }

  #end(listener: Listener): void {
    this.#listeners.delete(listener)
    listener.end()
  }

  /** An event of `text/event-stream` (HTML Living Standard, section 9.2). */
  #render(view: View, timeMs: number): string {
    const { streams, next, service } = this.#list({ ...view, limit: ROWS })
    const snapshot: Snapshot = {
      timeMs,
      rows: streams.map(rowOf),
      ...(next !== undefined && { next }),
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
