/**
 * Options, decisions and counters of the cut planner.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import type { SourceFact } from '../source-fact.ts'
import type { TargetDurations } from '../target-durations.ts'
import type { PartEnd, SegmentEnd, SegmentPlan, SequenceNumbers } from './segment-plan.ts'
import type { TargetsOptions } from './targets.ts'

export interface CutPlannerOptions extends TargetsOptions {
  readonly sequenceStart?: SequenceNumbers
  readonly maxSegmentBytes: number
  /** Media before the first segment; default: none. */
  readonly earlier?: EarlierMedia | undefined
}

/** What the playlists of an earlier process have fixed, which the next segment continues after a discontinuity. */
interface EarlierMedia {
  readonly targets: TargetDurations
  /** End of the newest segment, milliseconds since 1970. */
  readonly endMs: number
}

/**
 * `start` and `end` alternate; between them, if the segment has parts, `part` ends each of them. `target` follows the
 * third `end`, with low latency the second, unless `settle` has fixed it earlier or disconnects cut all these segments
 * short. If it has a PART-TARGET, the segments after the first that no disconnect cut short have parts. A new date range is
 * decided at the first PES packet at or after its start, while a segment is open.
 */
export type CutDecision =
  | { readonly type: 'start'; readonly plan: SegmentPlan }
  | { readonly type: 'end'; readonly end: SegmentEnd }
  | { readonly type: 'part'; readonly end: PartEnd }
  | ({ readonly type: 'target' } & TargetDurations)
  | { readonly type: 'date-range'; readonly dateRange: DateRange }
  | { readonly type: 'fact'; readonly fact: SourceFact }

/** End of a part, after which its segment goes on, or of a segment. */
export type Boundary = Extract<CutDecision, { type: 'part' | 'end' }>

export interface CutPlannerStats {
  /** PES packets of the reference track dropped before the first random access point of a timeline. */
  readonly packetsBeforeStart: number
  /** Segments that start inside a GOP. */
  readonly forcedCuts: number
  readonly discontinuities: number
  /** Announced splice points that were dropped before their time. */
  readonly missedSplices: number
}

export function partDecision(end: PartEnd): CutDecision {
  return { type: 'part', end }
}

export function dateRangeDecision(dateRange: DateRange): CutDecision {
  return { type: 'date-range', dateRange }
}

export function factDecision(fact: SourceFact): CutDecision {
  return { type: 'fact', fact }
}
