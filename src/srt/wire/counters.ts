/**
 * Counters in the header of a packet, which wrap (draft-sharabayko-srt 3, 3.1):
 *
 * - sequence number: 31 bits. The distance of two numbers is the shorter way around the circle, unambiguous up to
 *   2^30 - 1.
 * - message number: 26 bits, from 1 on. Zero marks packets without a message, such as FEC packets.
 * - timestamp: microseconds in 32 bits, which wrap every 71 min 35 s.
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

const MAX_MESSAGE_NUMBER = 0x03ffffff

/** Message number after `message`. */
export function nextMessageNumber(message: number): number {
  return message === MAX_MESSAGE_NUMBER ? 1 : message + 1
}

/**
 * Unwraps timestamps by the signed distance of each to the previous one. Correct for steps of up to 35 minutes in
 * either direction, so packets may be reordered or late.
 */
export class PacketTimestamps {
  #last: number

  /** @param first  first timestamp (u32), which unwraps to itself */
  constructor(first: number) {
    this.#last = first
  }

  /** @returns `timestamp` plus the multiple of 2^32 that brings it nearest to the previous result */
  unwrap(timestamp: number): number {
    this.#last += (timestamp - this.#last) | 0
    return this.#last
  }
}
