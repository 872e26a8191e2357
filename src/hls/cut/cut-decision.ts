/**
 * Options, decisions and counters of the cut planner.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import type { SourceFact } from '../source-fact.ts'
import type { SegmentEnd, SegmentPlan, SequenceNumbers } from './segment-plan.ts'

export interface CutPlannerOptions {
  readonly sequenceStart?: SequenceNumbers
  readonly segmentSec: number
  readonly maxSegmentSec: number
  readonly maxSegmentBytes: number
}

/**
 * `start` and `end` alternate. `target` follows the third `end`, unless `settle` has fixed it earlier or disconnects
 * cut all three segments short. A new date range is decided at the first PES packet at or after its start, while a
 * segment is open.
 */
export type CutDecision =
  | { readonly type: 'start'; readonly plan: SegmentPlan }
  | { readonly type: 'end'; readonly end: SegmentEnd }
  /** EXT-X-TARGETDURATION, fixed from now on. */
  | { readonly type: 'target'; readonly targetSec: number }
  | { readonly type: 'date-range'; readonly dateRange: DateRange }
  | { readonly type: 'fact'; readonly fact: SourceFact }

export interface CutPlannerStats {
  /** PES packets of the reference track dropped before the first random access point of a timeline. */
  readonly unitsBeforeStart: number
  /** Segments that start inside a GOP. */
  readonly forcedCuts: number
  readonly discontinuities: number
  /** Announced splice points that were dropped before their time. */
  readonly missedSplices: number
}
