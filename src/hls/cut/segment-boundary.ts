/**
 * Rules for the end of a segment on its timeline. Times are in ticks of 90 kHz.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { SegmentPlan } from './segment-plan.ts'

/** Fraction of `segmentSec` by which a segment may be shorter: a GOP may lack a frame, or have rounded timestamps. */
const EARLY_CUT_FRACTION = 0.1

/** Minimum duration of a segment, whatever its timestamps say; it bounds the number of segments in a playlist. */
const MIN_SEGMENT_TICKS = 0.01 * TICKS_PER_SEC

/** Minimum duration of a segment that ends although the next segment starts at no splice point. */
export function usualMinTicks(segmentSec: number): number {
  return segmentSec * TICKS_PER_SEC * (1 - EARLY_CUT_FRACTION)
}

/**
 * @param mediaEndTicks  end of the media so far
 * @param limitTicks  maximum duration of a segment
 * @returns end of the open segment if the PES packet at `ticks` is after its maximum duration; else undefined
 */
export function gapBefore(
  { startTicks }: SegmentPlan,
  ticks: number,
  mediaEndTicks: number,
  limitTicks: number,
): number | undefined {
  if (ticks - startTicks <= limitTicks) return undefined
  const minTicks = startTicks + MIN_SEGMENT_TICKS
  return Math.min(Math.max(mediaEndTicks, minTicks), startTicks + limitTicks)
}

/** Situation at a random access point. */
interface RandomAccessPoint {
  readonly ticks: number
  /** Whether a break has started or ended since the previous random access point. */
  readonly spliceIsDue: boolean
  /** Longest recent GOP. */
  readonly gopTicks: number
}

/** Whether the open segment ends before a random access point. */
export function isDueAt(
  { startTicks, keyTicks }: SegmentPlan,
  { ticks, spliceIsDue, gopTicks }: RandomAccessPoint,
  { minTicks, limitTicks }: { readonly minTicks: number; readonly limitTicks: number },
): boolean {
  const lengthTicks = ticks - startTicks
  if (keyTicks === undefined) return true
  if (lengthTicks >= minTicks) return true
  if (lengthTicks < MIN_SEGMENT_TICKS) return false
  // With one more GOP as long as the longest recent one, the segment would exceed its maximum duration.
  return spliceIsDue || lengthTicks + gopTicks > limitTicks
}

/** Duration of a segment with the given end: within the limits, whatever its timestamps say. */
export function segmentTicks(startTicks: number, endTicks: number, limitTicks: number): number {
  return Math.min(Math.max(endTicks - startTicks, MIN_SEGMENT_TICKS), limitTicks)
}
