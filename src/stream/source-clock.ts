/**
 * How fast the clock behind the timestamps of a source runs, measured by ours.
 *
 * What the network adds to the way varies, but hardly the least of it: of every 10 s only the moment counts in which the
 * media was least late. The drift is the median of the slopes between all of those (Theil and Sen): neither an outage
 * nor a way that has become longer moves it much.
 *
 * @module
 */
import { JUMP_TICKS, TICKS_PER_SEC } from './track-times.ts'

const SPAN_US = 10_000_000
const SPANS_REMEMBERED = 60
/** 3 minutes, in which 200 ppm make 36 ms. */
const LEAST_SPANS = 18

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

  /** How much too fast it runs, in millionths; negative if too slow; undefined until that can be said. */
  get driftPpm(): number | undefined {
    return this.#driftPpm
  }

  /** @param ticks  decoding time of the newest unit; NaN before the first */
  observe(ticks: number, nowUs: number): void {
    if (Number.isNaN(ticks) || ticks === this.#latestTicks) return
    if (Math.abs(ticks - this.#latestTicks) >= JUMP_TICKS) this.#reset()
    this.#latestTicks = ticks
    if (nowUs - this.#spanUs >= SPAN_US) this.#startSpan(nowUs)
    const lagUs = nowUs - (ticks / TICKS_PER_SEC) * 1e6
    if (this.#best === undefined || lagUs < this.#best.lagUs) this.#best = { atUs: nowUs, lagUs }
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
  const slopes = moments.flatMap((a, index) =>
    moments.slice(index + 1).map((b) => (b.lagUs - a.lagUs) / (b.atUs - a.atUs)),
  )
  return slopes.toSorted((a, b) => a - b)[slopes.length >> 1]!
}
