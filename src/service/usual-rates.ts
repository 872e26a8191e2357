/**
 * Usual bitrates, to find who causes an overload: the sources that send far more than they did in the minutes before.
 *
 * Sans-IO: `learn` takes the rates of each second without overload, `findSurges` those of a second of overload.
 *
 * @module
 */

/** Time over which a usual rate is averaged. Rates that rise more slowly are no surge. */
const AVERAGE_SEC = 120

/** Minimum number of seconds that make a usual rate. */
const MIN_SEC = 10

/** Minimum ratio of a surge to the usual rate. Scenes with much motion stay below it. */
const MIN_RATIO = 2

/** Minimum share of a surge, less the usual rate, in the rate of all sources. Less would bring no relief. */
const MIN_SHARE = 0.05

export interface Surge<Source> {
  readonly source: Source
  readonly bitsPerSecond: number
  /** Usual rate in bits per second. */
  readonly usual: number
}

interface Average {
  bitsPerSecond: number
  seconds: number
}

/** Usual rates by source. A source that is absent for a while keeps its own. */
export class UsualRates<Source extends object> {
  readonly #averages = new WeakMap<Source, Average>()

  /** @param rates  bits per second of each source in the last second; 0 teaches nothing */
  learn(rates: ReadonlyMap<Source, number>): void {
    for (const [source, bitsPerSecond] of rates) {
      if (bitsPerSecond === 0) continue
      const average = this.#averages.get(source) ?? { bitsPerSecond: 0, seconds: 0 }
      average.seconds = Math.min(average.seconds + 1, AVERAGE_SEC)
      average.bitsPerSecond += (bitsPerSecond - average.bitsPerSecond) / average.seconds
      this.#averages.set(source, average)
    }
  }

  /** @returns surges among the given rates, the furthest above its usual rate first */
  findSurges(rates: ReadonlyMap<Source, number>): Surge<Source>[] {
    const sum = [...rates.values()].reduce((total, rate) => total + rate, 0)
    return [...rates]
      .flatMap(([source, bitsPerSecond]) => {
        const { seconds, bitsPerSecond: usual } = this.#averages.get(source) ?? NO_AVERAGE
        const isSurge =
          seconds >= MIN_SEC &&
          bitsPerSecond >= usual * MIN_RATIO &&
          bitsPerSecond - usual >= sum * MIN_SHARE
        return isSurge ? [{ source, bitsPerSecond, usual }] : []
      })
      .toSorted((a, b) => b.bitsPerSecond - b.usual - (a.bitsPerSecond - a.usual))
  }
}

const NO_AVERAGE: Readonly<Average> = { bitsPerSecond: 0, seconds: 0 }
