/**
 * Sums of a source's counters over the latest seconds, without skipped seconds.
 *
 * @module
 */

const NAMES = [
  // The transport stream:
  'patSections',
  'pmtSections',
  'continuityErrors',
  'transportErrors',
  'scrambledPackets',
  // The first video track:
  'frames',
  'frameTicks',
  'ptsGaps',
  'missingTicks',
  'intraRefreshes',
  // The first video track or, without video, the first audio track:
  'playedTicks',
  // The first video and the first audio track together:
  'dtsRepeated',
  'ptsBeforeDts',
] as const

type Counts = Readonly<Record<(typeof NAMES)[number], number>>

/** Increase of each counter in `seconds` seconds. */
type Sum = Counts & { readonly seconds: number }

const NOTHING = tally(() => 0)

/** Sliding window over counters: `push` their totals about once a second. */
export class CountedSeconds {
  readonly #capacity: number
  /** Running totals before the oldest remembered second and after each remembered second, oldest first. */
  readonly #sums: Counts[] = [NOTHING]
  #last: Counts | undefined

  /** @param capacity  number of seconds remembered */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /**
   * @param totals  cumulative counters
   * @param skipped  whether the time since the previous call is excluded from the sums
   */
  push(totals: Counts, skipped: boolean): void {
    const last = this.#last
    this.#last = totals
    if (last === undefined || skipped) return
    const before = this.#sums.at(-1)!
    this.#sums.push(tally((name) => before[name] + totals[name] - last[name]))
    if (this.#sums.length > this.#capacity + 1) this.#sums.shift()
  }

  /** Prepares for counters that start at 0 again: the next `push` adds nothing to the sums. */
  restart(): void {
    this.#last = undefined
  }

  /** Sum over the latest `maxSeconds` seconds; over fewer if the window has fewer. */
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
