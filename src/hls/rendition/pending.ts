/**
 * Unfinished part or segment of a rendition.
 *
 * @module
 */
import type { Boundary } from '../cut/cut-decision.ts'
import type { SegmentPlan } from '../cut/segment-plan.ts'

/** Media of a segment up to the next boundary: a part, or all of a segment without parts. */
export interface Pending {
  readonly plan: SegmentPlan
  /** Time of the earliest media that belongs to the timeline of the segment, or to its rendition. */
  readonly fromTicks: number
  /** Whether it is the first of a timeline, or of the rendition. */
  readonly startsMedia: boolean
  /** Latest time of the part before it; undefined at the start of the segment. */
  readonly afterTicks: number | undefined
  end?: Boundary | undefined
  /** Progress of the reference track at which the wait for slower tracks ends. */
  dueTicks: number
}
