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
  /** Size of the media of all streams that is in no segment yet. */
  readonly queuedBytes: number
  /** Size that holds the configured windows of all streams, their retained segments and their queues. */
  readonly neededBytes: number
  /** Size to recommend after a shortage. Always above `maxBytes`: `neededBytes` falls when bitrates fall. */
  readonly advisedBytes: number
  readonly segments: number
}
