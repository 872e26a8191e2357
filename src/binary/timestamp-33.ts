/**
 * A 33-bit clock of 90 kHz that wraps every 26.5 hours: PTS and DTS (ISO/IEC 13818-1 2.4.3.7).
 *
 * @module
 */

const MODULUS = 2 ** 33

/**
 * Continues a wrapping timestamp without end.
 *
 * @param ticks  timestamp as sent, in [0, 2^33)
 * @param referenceTicks  an unwrapped timestamp less than 13 hours away from it
 * @returns `ticks` plus the multiple of 2^33, which may be negative, that brings it nearest to the reference
 */
export function unwrapTimestamp33(ticks: number, referenceTicks: number): number {
  // 33 bits are one more than bitwise operators hold; `%` is exact up to 2^53.
  const ahead = (((ticks - referenceTicks) % MODULUS) + MODULUS) % MODULUS
  return referenceTicks + (ahead < MODULUS / 2 ? ahead : ahead - MODULUS)
}
