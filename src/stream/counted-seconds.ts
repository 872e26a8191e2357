/**
 * What is counted of a source, second by second, and summed up over the newest of them.
 *
 * @module
 */

const NAMES = [
  'patSections',
  'pmtSections',
  'continuityErrors',
  'transportErrors',
  'scrambledPackets',
  /** Of the first video track. */
  'pictures',
  'pictureTicks',
  'gaps',
  'missingTicks',
  'gradualRefreshes',
  /** Of the first video track, or the first audio track where there is no video. */
  'playedTicks',
  /** Of both. */
  'repeated',
  'early',
] as const

export type Counts = Readonly<Record<(typeof NAMES)[number], number>>

interface Second {
  readonly counts: Counts
  readonly lengthUs: number
}

/** A sum, and over how long a time. */
export type Sum = Counts & { readonly seconds: number; readonly lengthUs: number }

/** `push` the counters about once a second. */
export class CountedSeconds {
  readonly #most: number
  /** Oldest first. */
  readonly #seconds: Second[] = []
  #last: { readonly totals: Counts; readonly atUs: number } | undefined

  /** @param most  seconds that are remembered */
  constructor(most: number) {
    this.#most = most
  }

  /**
   * @param totals  counters that only go up
   * @param isLeftOut  the second since the last call does not count
   * @returns what was counted in it
   */
  push(totals: Counts, nowUs: number, isLeftOut: boolean): Counts | undefined {
    const last = this.#last
    this.#last = { totals, atUs: nowUs }
    if (last === undefined || isLeftOut) return undefined
    const counts = tally((name) => totals[name] - last.totals[name])
    this.#seconds.push({ counts, lengthUs: nowUs - last.atUs })
    if (this.#seconds.length > this.#most) this.#seconds.shift()
    return counts
  }

  /** The counters begin anew. */
  restart(): void {
    this.#last = undefined
  }

  /** Of the newest seconds, fewer where there are not as many. */
  sum(newest: number): Sum {
    const seconds = this.#seconds.slice(-newest)
    return {
      ...tally((name) => seconds.reduce((sum, { counts }) => sum + counts[name], 0)),
      seconds: seconds.length,
      lengthUs: seconds.reduce((sum, { lengthUs }) => sum + lengthUs, 0),
    }
  }
}

function tally(count: (name: (typeof NAMES)[number]) => number): Counts {
  return Object.fromEntries(NAMES.map((name) => [name, count(name)])) as Counts
}
