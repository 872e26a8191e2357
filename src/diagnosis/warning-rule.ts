/**
 * Type of the rows in the table of warnings, and the values that several rows use.
 *
 * @module
 */

/** Rule of a warning, which begins with a fact and ends when the fact is no longer observed. */
export interface WarningRule<Figures> {
  /** Whether the warning begins at these figures; default: at any. */
  readonly begins?: (figures: Figures) => boolean
  /** Whether the warning ends at these figures; default: when `begins` is false. */
  readonly ends?: (figures: Figures) => boolean
  /** Seconds that the warning outlasts the fact; default 0. Infinity: until an encoder connects or the stream stops. */
  readonly holdSec?: number | ((figures: Figures) => number)
  /** Codes of other warnings; while any of them is active, it explains this warning and suppresses it. */
  readonly unless?: readonly string[]
  /** Combines the figures of an active warning with new figures; default: the new figures. */
  readonly merge?: (before: Figures, now: Figures) => Figures
  readonly message: (figures: Figures) => string
}

/** Number of events in the latest `spanSec` seconds without packet loss on the connection. */
export interface Events {
  readonly count: number
  readonly spanSec: number
}

/** Seconds for which the warning about a single event continues. */
export const EVENT_HOLD_SEC = 30

/** Hold time, in seconds, of a fact that each affected segment repeats: three target durations, but at least 30 s. */
export function perSegment({ targetSec }: { readonly targetSec: number }): number {
  return Math.max(EVENT_HOLD_SEC, 3 * targetSec)
}

export function isSome({ count }: Events): boolean {
  return count > 0
}

/** Returns the row; the type argument states its figures, which TypeScript cannot infer. */
export function rule<Figures = object>(row: WarningRule<Figures>): WarningRule<Figures> {
  return row
}
