/**
 * Rate and drift of the clock of a source's timestamps, against the clock of this machine.
 *
 * Network delay varies, but its minimum hardly does, so each span of 10 s contributes only the sample with the least
 * delay. The drift is the median of the slopes between all pairs of these samples (Theil-Sen estimator): outages and
 * route changes hardly affect it.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import { JUMP_TICKS } from './track-times.ts'

/** Duration of a span, which contributes one sample. */
const SPAN_US = 10_000_000
const SPANS_REMEMBERED = 60
/** Minimum number of spans for a drift: 3 minutes, in which 200 ppm amount to 36 ms. */
const MIN_SPANS = 18

const SECOND_US = 1_000_000
/** Number of rates, one per second, in the median: it ignores a stall, the burst after it, and a discontinuity. */
const RATED_SECONDS = 12

interface Sample {
  readonly atUs: number
  /** Arrival time minus DTS. The two clocks have different epochs, so only changes are meaningful. */
  readonly lagUs: number
}

/** Inputs: `observe` about 4 times a second. */
export class SourceClock {
  /** For each span, the sample with the least delay; oldest first. */
  readonly #samples: Sample[] = []
  #spanUs = -Infinity
  /** Sample with the least delay in the current span. */
  #best: Sample | undefined
  #latestTicks = NaN
  #driftPpm: number | undefined
  /** Newest rates, in seconds of media per second, oldest first. */
  readonly #rates: number[] = []
  #second: { readonly ticks: number; readonly atUs: number } | undefined

  /** Median of the newest rates, in seconds of media per second; undefined for the first 12 s. */
  get rate(): number | undefined {
    return this.#rates.length < RATED_SECONDS ? undefined : median(this.#rates)
  }

  /** Drift in ppm, positive if the source's clock is fast; undefined for 3 minutes after a start or discontinuity. */
  get driftPpm(): number | undefined {
    return this.#driftPpm
  }

  /** @param ticks  DTS of the newest frame; NaN before the first */
  observe(ticks: number, nowUs: number): void {
    if (Number.isNaN(ticks)) return
    this.#rate(ticks, nowUs)
    if (ticks === this.#latestTicks) return
    if (Math.abs(ticks - this.#latestTicks) >= JUMP_TICKS) this.#reset()
    this.#latestTicks = ticks
    if (nowUs - this.#spanUs >= SPAN_US) this.#startSpan(nowUs)
    const lagUs = nowUs - (ticks / TICKS_PER_SEC) * 1e6
    if (this.#best === undefined || lagUs < this.#best.lagUs) this.#best = { atUs: nowUs, lagUs }
  }

  #rate(ticks: number, nowUs: number): void {
    this.#second ??= { ticks, atUs: nowUs }
    const elapsedUs = nowUs - this.#second.atUs
    // A pause in the media counts as one long second, so that it adds a single rate.
    if (elapsedUs < SECOND_US || ticks === this.#second.ticks) return
    this.#rates.push((ticks - this.#second.ticks) / TICKS_PER_SEC / (elapsedUs / SECOND_US))
    if (this.#rates.length > RATED_SECONDS) this.#rates.shift()
    this.#second = { ticks, atUs: nowUs }
  }

  #reset(): void {
    this.#samples.length = 0
    this.#best = undefined
    this.#spanUs = -Infinity
    this.#driftPpm = undefined
  }

  #startSpan(nowUs: number): void {
    this.#spanUs = nowUs
    if (this.#best === undefined) return
    this.#samples.push(this.#best)
    this.#best = undefined
    if (this.#samples.length > SPANS_REMEMBERED) this.#samples.shift()
    if (this.#samples.length >= MIN_SPANS) this.#driftPpm = -medianSlope(this.#samples) * 1e6
  }
}

function medianSlope(samples: readonly Sample[]): number {
  return median(
    samples.flatMap((a, index) =>
      samples.slice(index + 1).map((b) => (b.lagUs - a.lagUs) / (b.atUs - a.atUs)),
    ),
  )
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}
