/**
 * Boundaries and numbers of a part, the same for all renditions.
 *
 * @module
 */

/** Properties of a part that are fixed when it ends. It starts where the previous part of its segment ends. */
export interface PartEnd {
  /** Number of the part in the stream. */
  readonly serial: number
  /** End of the part, and start of the next one. */
  readonly endTicks: number
  /** Latest time of a PES packet in the part, see `SegmentEnd`. */
  readonly untilTicks: number
  /** DURATION */
  readonly durationSec: number
  /** PART-TARGET */
  readonly maxSec: number
  /** Maximum duration of its segment. */
  readonly maxSegmentSec: number
}
