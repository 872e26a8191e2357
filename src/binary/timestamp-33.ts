/**
 * A 33-bit clock of 90 kHz that wraps every 26.5 hours: PTS and DTS (ISO/IEC 13818-1 2.4.3.7).
 *
 * @module
 */

/** Number of values of a 33-bit timestamp; the next one is 0 again. */
export const TIME_MODULUS = 2 ** 33

/**
 * Continues a wrapping timestamp without end.
 *
 * @param ticks  timestamp as sent, in [0, 2^33)
 * @param referenceTicks  an unwrapped timestamp less than 13 hours away from it
 * @returns `ticks` plus the multiple of 2^33, which may be negative, that brings it nearest to the reference
 */
export function unwrapTimestamp33(ticks: number, referenceTicks: number): number {
  // 33 bits are one more than bitwise operators hold; `%` is exact up to 2^53.
  const ahead = (((ticks - referenceTicks) % TIME_MODULUS) + TIME_MODULUS) % TIME_MODULUS
  return referenceTicks + (ahead < TIME_MODULUS / 2 ? ahead : ahead - TIME_MODULUS)
}
