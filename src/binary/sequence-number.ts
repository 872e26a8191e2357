/**
 * SRT packet sequence numbers (draft-sharabayko-srt 3.1): a 31-bit counter that wraps.
 *
 * Two numbers are compared by the shorter way round, which is unambiguous up to a distance of 2^30 - 1.
 *
 * @module
 */

/** Largest sequence number; the next one is 0. */
export const MAX_SEQUENCE_NUMBER = 0x7fffffff

/** `sequence + count`, wrapped; `count` may be negative. */
export function addToSequence(sequence: number, count: number): number {
  return (sequence + count) & MAX_SEQUENCE_NUMBER
}

/** Steps from `from` to `to`, in [-2^30, 2^30 - 1]; negative where `to` is older. */
export function sequenceDistance(from: number, to: number): number {
  return ((to - from) << 1) >> 1
}
