/**
 * Rate and drift of the clock behind the timestamps of a source, measured by ours.
 *
 * The delay of the network varies, but hardly its minimum: of every 10 s only the moment counts in which the media was
 * least late. The drift is the median of the slopes between all of these moments (Theil and Sen), which neither an outage
 * nor a longer route moves much.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import { JUMP_TICKS } from './track-times.ts'

const SPAN_US = 10_000_000
const SPANS_REMEMBERED = 60
/** 3 minutes, in which 200 ppm make 36 ms. */
const MIN_SPANS = 18

const SECOND_US = 1_000_000
/** The rate is the median of so many: neither a stop that is made up for afterwards nor a jump counts. */
const RATED_SECONDS = 12

interface Moment {
  readonly atUs: number
  readonly lagUs: number
}

/** `observe` a few times a second. */
export class SourceClock {
  /** Least late moment of each span, oldest first. */
  readonly #moments: Moment[] = []
  #spanUs = -Infinity
  #best: Moment | undefined
  #latestTicks = NaN
  #driftPpm: number | undefined
  /** Seconds of media in each of the last seconds, oldest first. */
  readonly #rates: number[] = []
  #second: { readonly ticks: number; readonly atUs: number } | undefined

  /** Seconds of media that arrive in a second, a median; undefined for the first 12 s. */
  get rate(): number | undefined {
    return this.#rates.length < RATED_SECONDS ? undefined : median(this.#rates)
  }

  /** Drift in millionths, positive if the clock runs too fast; undefined for the first 3 minutes. */
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
    // A silence is one long second: one rate among others.
    if (elapsedUs < SECOND_US || ticks === this.#second.ticks) return
    this.#rates.push((ticks - this.#second.ticks) / TICKS_PER_SEC / (elapsedUs / SECOND_US))
    if (this.#rates.length > RATED_SECONDS) this.#rates.shift()
    this.#second = { ticks, atUs: nowUs }
  }

  #reset(): void {
    this.#moments.length = 0
    this.#best = undefined
    this.#spanUs = -Infinity
    this.#driftPpm = undefined
  }

  #startSpan(nowUs: number): void {
    this.#spanUs = nowUs
    if (this.#best === undefined) return
    this.#moments.push(this.#best)
    this.#best = undefined
    if (this.#moments.length > SPANS_REMEMBERED) this.#moments.shift()
    if (this.#moments.length >= MIN_SPANS) this.#driftPpm = -medianSlope(this.#moments) * 1e6
  }
}

function medianSlope(moments: readonly Moment[]): number {
  return median(
    moments.flatMap((a, index) =>
      moments.slice(index + 1).map((b) => (b.lagUs - a.lagUs) / (b.atUs - a.atUs)),
    ),
  )
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}
