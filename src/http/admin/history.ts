/**
 * Figures of the last 10 minutes of each encoder, in rings of fixed size, for the graphs of the dashboard.
 *
 * @module
 */
import type { PublisherReport } from '../../contract/report.ts'
import type { History } from './wire.ts'

export const STEP_SEC = 5

const STEPS = 120

/** Maximum number of streams with a history, 2 KiB each; those that come later have none. */
const MAX_STREAMS = 2000

/** A stream as the history reads it. */
export interface WatchedStream {
  readonly id: string
  readonly encoder: { report(): PublisherReport } | undefined
  /** Estimated number of viewers. */
  countViewers(): number
}

/** Values of consecutive steps; NaN: none. */
class Ring {
  readonly #values = new Float32Array(STEPS).fill(NaN)

  set(step: number, value: number | undefined): void {
    this.#values[step % STEPS] = value ?? NaN
  }

  /** Values of the steps before and including `last`. */
  read(last: number): (number | null)[] {
    return Array.from({ length: STEPS }, (_, index) => {
      const value = this.#values[(last + 1 + index) % STEPS]!
      return Number.isNaN(value) ? null : Math.round(value * 10) / 10
    })
  }
}

class Series {
  readonly bitrateBps = new Ring()
  readonly rttMs = new Ring()
  readonly packetsLost = new Ring()
  readonly viewers = new Ring()
  #lastStep: number
  /** Counter of the encoder at the last step. */
  #lostInTotal = 0

  constructor(step: number) {
    this.#lastStep = step - 1
  }

  record(step: number, stream: WatchedStream): void {
    this.advance(step)
    const report = stream.encoder?.report()
    if (report === undefined) return
    this.bitrateBps.set(step, report.bitrateBps)
    this.rttMs.set(step, report.rttMs)
    this.viewers.set(step, stream.countViewers())
    const { packetsLost } = report
    if (packetsLost === undefined) return
    // A lower counter is that of another connection, which began at 0.
    const before = packetsLost < this.#lostInTotal ? 0 : this.#lostInTotal
    this.packetsLost.set(step, packetsLost - before)
    this.#lostInTotal = packetsLost
  }

  /** Empties the steps after the last recorded one, up to and including `step`. */
  advance(step: number): void {
    const first = Math.max(this.#lastStep + 1, step - STEPS + 1)
    for (let each = first; each <= step; each++) {
      for (const ring of [this.bitrateBps, this.rttMs, this.packetsLost, this.viewers]) {
        ring.set(each, undefined)
      }
    }
    this.#lastStep = Math.max(this.#lastStep, step)
  }
}

/** Inputs: `record` for each stream with an encoder, once a step, and `retain`. Times are microseconds of a clock. */
export class Histories {
  readonly #series = new Map<string, Series>()

  record(stream: WatchedStream, nowUs: number): void {
    const step = stepAt(nowUs)
    let series = this.#series.get(stream.id)
    if (series === undefined) {
      if (this.#series.size >= MAX_STREAMS) return
      this.#series.set(stream.id, (series = new Series(step)))
    }
    series.record(step, stream)
  }

  /** Forgets the streams that are not known any more. */
  retain(isKnown: (streamId: string) => boolean): void {
    for (const id of this.#series.keys()) if (!isKnown(id)) this.#series.delete(id)
  }

  /**
   * @param wallMs  milliseconds since 1970 at `nowUs`
   * @returns empty graphs for a stream without a history
   */
  read(streamId: string, nowUs: number, wallMs: number): History {
    // The current step has no value before it is recorded.
    const last = stepAt(nowUs) - 1
    const series = this.#series.get(streamId) ?? new Series(last)
    series.advance(last)
    const sinceEndMs = (nowUs - (last + 1) * STEP_SEC * 1e6) / 1000
    return {
      stepSec: STEP_SEC,
      endMs: Math.round(wallMs - sinceEndMs),
      bitrateBps: series.bitrateBps.read(last),
      rttMs: series.rttMs.read(last),
      packetsLost: series.packetsLost.read(last),
      viewers: series.viewers.read(last),
    }
  }
}

function stepAt(nowUs: number): number {
  return Math.floor(nowUs / (STEP_SEC * 1e6))
}

/** Number of calls of `HistoryRecorder.tick` in a step. */
const TICKS_PER_STEP = 20

/** Interval of `HistoryRecorder.tick`, in milliseconds. */
export const TICK_MS = (STEP_SEC * 1000) / TICKS_PER_STEP

/** Reads all encoders once a step, a few at each tick: a thousand reports at once would delay packets. */
export class HistoryRecorder {
  readonly #histories: Histories
  readonly #listStreams: () => readonly WatchedStream[]
  readonly #isKnown: (streamId: string) => boolean
  #step = 0
  #rest: readonly WatchedStream[] = []
  #perTick = 0

  constructor(
    histories: Histories,
    listStreams: () => readonly WatchedStream[],
    isKnown: (streamId: string) => boolean,
  ) {
    this.#histories = histories
    this.#listStreams = listStreams
    this.#isKnown = isKnown
  }

  tick(nowUs: number): void {
    const step = stepAt(nowUs)
    if (step !== this.#step) {
      this.#step = step
      this.#histories.retain(this.#isKnown)
      this.#rest = this.#listStreams()
      // All within half of the step: ticks may be late.
      this.#perTick = Math.ceil(this.#rest.length / (TICKS_PER_STEP / 2))
    }
    for (const stream of this.#rest.slice(0, this.#perTick)) this.#histories.record(stream, nowUs)
    this.#rest = this.#rest.slice(this.#perTick)
  }
}
