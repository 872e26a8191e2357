/**
 * Type of a row in the table of warnings, and helpers of several rows.
 *
 * @module
 */

/** Rule of a warning: it begins with a fact and ends when the fact is no longer observed. */
export interface WarningRule<Figures> {
  /** Whether the warning begins at these figures; default: at any. */
  readonly begins?: (figures: Figures) => boolean
  /** Whether the warning ends at these figures; default: when `begins` is false. */
  readonly ends?: (figures: Figures) => boolean
  /** Seconds for which the warning continues without the fact; default 0. Infinity: until another encoder connects. */
  readonly holdSec?: number | ((figures: Figures) => number)
  /** Codes of other warnings, any of which explains this one and suppresses it. */
  readonly unless?: readonly string[]
  /** Figures of a continuing warning; default: the newest. */
  readonly merge?: (before: Figures, now: Figures) => Figures
  readonly message: (figures: Figures) => string
}

/** Number of events in the latest `spanSec` seconds. */
export interface Events {
  readonly count: number
  readonly spanSec: number
}

/** Seconds for which the warning about a single event continues. */
export const EVENT_HOLD_SEC = 30

/** Hold time for a fact that every affected segment repeats: three segments without the fact, but at least 30 s. */
export function perSegment({ targetSec }: { readonly targetSec: number }): number {
  return Math.max(EVENT_HOLD_SEC, 3 * targetSec)
}

export function isSome({ count }: Events): boolean {
  return count > 0
}

/** Declares the type of the figures of a row, which TypeScript cannot infer. */
export function rule<Figures = object>(row: WarningRule<Figures>): WarningRule<Figures> {
  return row
}
