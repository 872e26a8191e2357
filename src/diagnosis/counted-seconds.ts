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

/** A sum, and of how many seconds. */
export type Sum = Counts & { readonly seconds: number }

const NOTHING = tally(() => 0)

/** `push` the counters about once a second. */
export class CountedSeconds {
  readonly #most: number
  /** Of all seconds up to the end of each one that is remembered, oldest first. */
  readonly #sums: Counts[] = [NOTHING]
  #last: Counts | undefined

  /** @param most  seconds that are remembered */
  constructor(most: number) {
    this.#most = most
  }

  /**
   * @param totals  counters that only go up
   * @param isLeftOut  the second since the last call does not count
   */
  push(totals: Counts, isLeftOut: boolean): void {
    const last = this.#last
    this.#last = totals
    if (last === undefined || isLeftOut) return
    const before = this.#sums.at(-1)!
    this.#sums.push(tally((name) => before[name] + totals[name] - last[name]))
    if (this.#sums.length > this.#most + 1) this.#sums.shift()
  }

  /** The counters begin anew. */
  restart(): void {
    this.#last = undefined
  }

  /** Of the newest seconds, fewer where there are not as many. */
  sum(newest: number): Sum {
    const seconds = Math.min(newest, this.#sums.length - 1)
    const from = this.#sums.at(-1 - seconds)!
    const to = this.#sums.at(-1)!
    return { ...tally((name) => to[name] - from[name]), seconds }
  }
}

function tally(count: (name: (typeof NAMES)[number]) => number): Counts {
  return Object.fromEntries(NAMES.map((name) => [name, count(name)])) as Counts
}
