/**
 * Metrics for Prometheus, from figures that exist anyway: they are read for each scrape.
 *
 * @module
 */
import { Counter, Gauge, Registry } from 'prom-client'
import type { StreamState } from '../../api/records.ts'
import type { ErrorCode } from '../../errors.ts'
import type { LiveStream } from '../../stream/live-stream.ts'
import { readProcess } from '../process-usage.ts'
import type { AudienceOf } from '../records.ts'
import { SentBytes } from './sent-bytes.ts'
import type { MetricFamily } from './metric-family.ts'
import { SERVICE_FAMILIES, type ServiceFamily, type ServiceFigures } from './service-families.ts'
import { StreamSeries, StreamSums } from './stream-series.ts'

interface MetricsOptions {
  /** Whether streams have series of their own; `auto`: up to 500 of them. */
  readonly perStream: 'auto' | 'always' | 'never'
  readonly listStreams: () => Iterable<LiveStream>
  readonly audienceOf: AudienceOf
  readonly readFigures: () => Omit<ServiceFigures, 'streams' | 'rejects' | 'refusals' | 'process'>
  /** Metrics of the cluster; default: there is no cluster. */
  readonly clusterFamilies?: readonly MetricFamily<void>[] | undefined
}

/** Maximum number of streams with series of their own if `perStream` is `auto`. */
const MAX_AUTO_STREAMS = 500

/** Number of streams to read per turn of the event loop: they take about 6 ms. */
const STREAMS_PER_TURN = 20

/** Counts, `render` at each scrape. */
export class Metrics {
  readonly sent = new SentBytes()
  readonly #options: MetricsOptions
  readonly #registry = new Registry()
  readonly #sums = new StreamSums()
  readonly #rejects: Record<string, number> = {}
  readonly #refusals: Record<string, number> = {}
  #figures: ServiceFigures | undefined
  #rendering: Promise<string> | undefined

  constructor(options: MetricsOptions) {
    this.#options = options
    for (const family of SERVICE_FAMILIES) {
      this.#declare(family, () => this.#figures && family.read(this.#figures))
    }
    for (const family of options.clusterFamilies ?? []) this.#declare(family, () => family.read())
  }

  /** Counts a rejected encoder or SRT reader. */
  countReject(reason: ErrorCode): void {
    this.#rejects[reason] = (this.#rejects[reason] ?? 0) + 1
  }

  /** Counts a refused request of the API or of metrics. */
  countRefusal(reason: ErrorCode): void {
    this.#refusals[reason] = (this.#refusals[reason] ?? 0) + 1
  }

  /** @returns all metrics in the text format of Prometheus; simultaneous scrapes share one result */
  render(): Promise<string> {
    this.#rendering ??= this.#render().finally(() => (this.#rendering = undefined))
    return this.#rendering
  }

  async #render(): Promise<string> {
    const { perStream, listStreams, audienceOf, readFigures } = this.#options
    const listed = [...listStreams()].filter(({ forgotten }) => !forgotten)
    // Before its first encoder, and without a slate, a stream has no figures; there may be 100,000 such streams.
    const measured = listed.filter(({ status, onAir }) => status !== 'READY' || onAir !== undefined)
    const isFew = measured.length <= MAX_AUTO_STREAMS
    const hasOwn = perStream === 'always' || (perStream === 'auto' && isFew)
    const series = hasOwn ? new StreamSeries() : this.#sums.begin()
    for (let at = 0; at < measured.length; at += STREAMS_PER_TURN) {
      const batch = measured.slice(at, at + STREAMS_PER_TURN)
      series.add(
        batch.map((stream) => ({
          stream,
          report: stream.report(),
          packaging: stream.packaging,
          ...audienceOf(stream),
          sent: this.sent.of(stream),
        })),
      )
      await new Promise(setImmediate)
    }
    this.#figures = {
      ...readFigures(),
      streams: countStates(listed),
      rejects: this.#rejects,
      refusals: this.#refusals,
      process: readProcess(),
    }
    return (await this.#registry.metrics()) + series.text
  }

  #declare(
    { name, help, type, label = '' }: Omit<ServiceFamily, 'read'>,
    readValues: () => ReturnType<ServiceFamily['read']>,
  ): void {
    const options = {
      name,
      help,
      labelNames: label === '' ? [] : [label],
      registers: [this.#registry],
      collect(this: Counter | Gauge) {
        this.reset()
        const values = readValues() ?? {}
        if (typeof values === 'number') return this.inc(values)
        for (const [value, number] of Object.entries(values)) this.inc({ [label]: value }, number)
      },
    }
    void (type === 'counter' ? new Counter(options) : new Gauge(options))
  }
}

function countStates(streams: readonly LiveStream[]): Record<StreamState, number> {
  const states = { READY: 0, STREAMING: 0, INTERRUPTED: 0, STOPPED: 0 }
  for (const { status } of streams) states[status]++
  return states
}
