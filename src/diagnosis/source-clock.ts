/**
 * How fast the clock behind the timestamps of a source runs, measured by ours.
 *
 * What the network adds to the way varies, but hardly the least of it: of every 10 s only the moment counts in which the
 * media was least late. The drift is the median of the slopes between all of those (Theil and Sen): neither an outage
 * nor a way that has become longer moves it much.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import { JUMP_TICKS } from './track-times.ts'

const SPAN_US = 10_000_000
const SPANS_REMEMBERED = 60
/** 3 minutes, in which 200 ppm make 36 ms. */
const LEAST_SPANS = 18

const SECOND_US = 1_000_000
/** The median of their rates: neither a stop that is made up for afterwards nor a jump counts. */
const RATED_SECONDS = 12

interface Moment {
  readonly atUs: number
  readonly lagUs: number
}

/** `observe` a few times a second. */
export class SourceClock {
  /** The least late of each span, oldest first. */
  readonly #moments: Moment[] = []
  #spanUs = -Infinity
  #best: Moment | undefined
  #latestTicks = NaN
  #driftPpm: number | undefined
  /** Seconds of media that came in each of the last seconds, oldest first. */
  readonly #rates: number[] = []
  #second: { readonly ticks: number; readonly atUs: number } | undefined

  /** Seconds of media that come in a second, as a rule of late; undefined until that can be said. */
  get rate(): number | undefined {
    return this.#rates.length < RATED_SECONDS ? undefined : median(this.#rates)
  }

  /** How much too fast it runs, in millionths; negative if too slow; undefined until that can be said. */
  get driftPpm(): number | undefined {
    return this.#driftPpm
  }

  /** @param ticks  decoding time of the newest unit; NaN before the first */
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
    // A silence is one long second, whose rate is one among others.
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
    if (this.#moments.length >= LEAST_SPANS) this.#driftPpm = -medianSlope(this.#moments) * 1e6
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
