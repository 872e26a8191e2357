/**
 * Counters of a source by second, and their sums over the latest seconds.
 *
 * @module
 */

const NAMES = [
  'patSections',
  'pmtSections',
  'continuityErrors',
  'transportErrors',
  'scrambledPackets',
  // The first video track:
  'frames',
  'frameTicks',
  'gaps',
  'missingTicks',
  'intraRefreshes',
  // The first video track, or the first audio track where there is no video:
  'playedTicks',
  // The first video and the first audio track together:
  'repeated',
  'early',
] as const

export type Counts = Readonly<Record<(typeof NAMES)[number], number>>

/** Sums over `seconds` seconds. */
export type Sum = Counts & { readonly seconds: number }

const NOTHING = tally(() => 0)

/** `push` the counters about once a second. */
export class CountedSeconds {
  readonly #capacity: number
  /** Running totals at the end of each remembered second, oldest first. */
  readonly #sums: Counts[] = [NOTHING]
  #last: Counts | undefined

  /** @param capacity  number of seconds remembered */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /**
   * @param totals  counters that only increase
   * @param skipped  whether the sums leave out the time since the previous call
   */
  push(totals: Counts, skipped: boolean): void {
    const last = this.#last
    this.#last = totals
    if (last === undefined || skipped) return
    const before = this.#sums.at(-1)!
    this.#sums.push(tally((name) => before[name] + totals[name] - last[name]))
    if (this.#sums.length > this.#capacity + 1) this.#sums.shift()
  }

  /** Prepares for counters that start at 0 again, after which the next `push` adds nothing. */
  restart(): void {
    this.#last = undefined
  }

  /** Sum over the latest `maxSeconds` seconds, or over all remembered ones if those are fewer. */
  sum(maxSeconds = this.#capacity): Sum {
    const seconds = Math.min(maxSeconds, this.#sums.length - 1)
    const from = this.#sums.at(-1 - seconds)!
    const to = this.#sums.at(-1)!
    return { ...tally((name) => to[name] - from[name]), seconds }
  }
}

function tally(count: (name: (typeof NAMES)[number]) => number): Counts {
  return Object.fromEntries(NAMES.map((name) => [name, count(name)])) as Counts
}
