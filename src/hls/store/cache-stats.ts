/**
 * Figures of the memory for segments.
 *
 * @module
 */
import type { ShortageCounters } from './holding.ts'

export interface SegmentCacheStats extends ShortageCounters {
  readonly maxBytes: number
  readonly bytes: number
  readonly listedBytes: number
  /** Media of all streams that is in no segment yet. */
  readonly queuedBytes: number
  /** Size at which the whole windows of all streams fit, with their retained segments. */
  readonly neededBytes: number
  /** Size to recommend when memory is short: always above `maxBytes`, since bitrates may have fallen meanwhile. */
  readonly advisedBytes: number
  readonly segments: number
}
