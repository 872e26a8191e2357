/**
 * The shape of a row in the table of warnings, and what several rows share.
 *
 * @module
 */

/** A fact begins a warning, which ends when the fact is seen no more. */
export interface WarningRule<Figures> {
  /** Figures from which it begins; any unless told. */
  readonly begins?: (figures: Figures) => boolean
  /** Figures at which it ends; those that would not begin it unless told. */
  readonly ends?: (figures: Figures) => boolean
  /** Seconds for which it goes on without the fact; 0 unless told. Infinity: until another encoder connects. */
  readonly holdSec?: number | ((figures: Figures) => number)
  /** Codes of warnings that explain it: it does not hold beside them. */
  readonly unless?: readonly string[]
  /** Figures of a warning that goes on, where they are not the newest. */
  readonly merge?: (before: Figures, now: Figures) => Figures
  readonly message: (figures: Figures) => string
}

/** Events in the newest seconds. */
export interface Events {
  readonly count: number
  readonly spanSec: number
}

/** A single event stays in view for so long. */
export const EVENT_HOLD_SEC = 30

/** What each segment shows anew has ended when three in a row are without. */
export function perSegment({ targetSec }: { readonly targetSec: number }): number {
  return Math.max(EVENT_HOLD_SEC, 3 * targetSec)
}

export function isSome({ count }: Events): boolean {
  return count > 0
}

/** Infers nothing: the figures of a row are named. */
export function rule<Figures = object>(row: WarningRule<Figures>): WarningRule<Figures> {
  return row
}
