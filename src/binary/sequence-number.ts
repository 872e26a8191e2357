/**
 * SRT packet sequence numbers (draft-sharabayko-srt 3.1): a 31-bit counter that wraps.
 *
 * The distance of two numbers is the shorter way around the circle, unambiguous up to 2^30 - 1.
 *
 * @module
 */

/** Largest sequence number; the next one is 0. */
export const MAX_SEQUENCE_NUMBER = 0x7fffffff

/** `sequence + count`, wrapped; `count` may be negative. */
export function addToSequence(sequence: number, count: number): number {
  return (sequence + count) & MAX_SEQUENCE_NUMBER
}

/** Number of steps from `from` to `to`, in [-2^30, 2^30 - 1]; negative if `to` is older. */
export function sequenceDistance(from: number, to: number): number {
  return ((to - from) << 1) >> 1
}
