/**
 * Figures of the last 10 minutes of each encoder, in rings of fixed size, for the graphs of the dashboard.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import type { EncoderSource, PublisherReport } from '../api/records.ts'
import type { PlaybackSource } from '../playback/playback-source.ts'
import type { Journal } from './journal.ts'
import type { Clock } from '../timing/clock.ts'
import type { History } from '../web/dashboard/wire.ts'
import { findStream } from './previews.ts'

export interface HistoryOptions {
  /** Streams of this process. */
  readonly source: PlaybackSource
  /** Streams of all nodes; those of others, whether they exist or not, are asked for when a file is read. */
  readonly allStreams: PlaybackSource
  /** Streams with an encoder. */
  readonly listPublished: () => readonly WatchedStream[]
  /** Forgets the streams that have gone, as the history does. */
  readonly journal: Journal
  readonly clock: Clock
}

/** A stream as its graphs read it. */
export interface WatchedStream {
  readonly id: string
  /** The one on air. */
  readonly encoder: { readonly source?: EncoderSource; report(): PublisherReport } | undefined
  /** Estimated number of viewers. */
  countViewers(): number
}

/** Fastify plugin: `GET /streams/{id}/history`. */
export const history: FastifyPluginAsync<HistoryOptions> = async (app, options) => {
  const { source, allStreams, listPublished, journal, clock } = options
  const histories = new Histories()
  const isKnown = (id: string) => source.findStream(id) !== undefined
  const retain = () => {
    histories.retain(isKnown)
    journal.retain(isKnown)
  }
  const recorder = new HistoryRecorder(histories, listPublished, retain)
  const timer = setInterval(() => recorder.tick(clock.nowUs()), RECORDER_TICK_MS).unref()
  app.addHook('onClose', async () => clearInterval(timer))

  app.get<{ Params: { stream_id: string } }>('/streams/:stream_id/history', async ({ params }) => {
    // The history is empty for a stream of another node.
    findStream(allStreams, params.stream_id)
    const data = histories.read(params.stream_id, clock.nowUs(), clock.wallMs())
    return { success: true, data }
  })
}

export const STEP_SEC = 5

const STEPS = 120

/** Maximum number of streams with a history, 2 KiB each; those that come later have none. */
const MAX_STREAMS = 2000

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
  #source: EncoderSource | undefined

  constructor(step: number) {
    this.#lastStep = step - 1
  }

  record(step: number, stream: WatchedStream): void {
    this.advance(step)
    const { encoder } = stream
    if (encoder === undefined) return
    const report = encoder.report()
    this.bitrateBps.set(step, report.bitrateBps)
    this.rttMs.set(step, report.rttMs)
    this.viewers.set(step, stream.countViewers())
    const { packetsLost } = report
    if (packetsLost === undefined) return
    // A lower counter is that of another connection, which began at 0.
    const before = packetsLost < this.#lostInTotal ? 0 : this.#lostInTotal
    const { source = 'main' } = encoder
    // The other encoder has counted since long before the step.
    const isOther = this.#source !== undefined && source !== this.#source
    this.packetsLost.set(step, isOther ? undefined : packetsLost - before)
    this.#lostInTotal = packetsLost
    this.#source = source
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
export const RECORDER_TICK_MS = (STEP_SEC * 1000) / TICKS_PER_STEP

/** Reads all encoders once a step, a few at each tick: a thousand reports at once would delay packets. */
export class HistoryRecorder {
  readonly #histories: Histories
  readonly #listStreams: () => readonly WatchedStream[]
  readonly #onStep: () => void
  #step = 0
  #rest: readonly WatchedStream[] = []
  #perTick = 0

  /** @param onStep  called at the start of each step */
  constructor(
    histories: Histories,
    listStreams: () => readonly WatchedStream[],
    onStep: () => void,
  ) {
    this.#histories = histories
    this.#listStreams = listStreams
    this.#onStep = onStep
  }

  tick(nowUs: number): void {
    const step = stepAt(nowUs)
    if (step !== this.#step) {
      this.#step = step
      this.#onStep()
      this.#rest = this.#listStreams()
      // All within half of the step: ticks may be late.
      this.#perTick = Math.ceil(this.#rest.length / (TICKS_PER_STEP / 2))
    }
    for (const stream of this.#rest.slice(0, this.#perTick)) this.#histories.record(stream, nowUs)
    this.#rest = this.#rest.slice(this.#perTick)
  }
}
