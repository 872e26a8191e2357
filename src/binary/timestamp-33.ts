/**
 * PTS and DTS (ISO/IEC 13818-1 2.4.3.7): ticks of 90 kHz in 33 bits, which wrap every 26.5 hours.
 *
 * @module
 */

/** Period after which a 33-bit timestamp wraps to 0, in ticks of 90 kHz. */
export const TIME_MODULUS = 2 ** 33

/**
 * Unwraps a timestamp.
 *
 * @param ticks  timestamp as sent, in [0, 2^33)
 * @param referenceTicks  unwrapped timestamp less than 13 hours away
 * @returns `ticks` plus the multiple of 2^33, which may be negative, that brings it nearest to the reference
 */
export function unwrapTimestamp33(ticks: number, referenceTicks: number): number {
  // Bitwise operators truncate to 32 bits; `%` is exact for integers up to 2^53.
  const ahead = (((ticks - referenceTicks) % TIME_MODULUS) + TIME_MODULUS) % TIME_MODULUS
  return referenceTicks + (ahead < TIME_MODULUS / 2 ? ahead : ahead - TIME_MODULUS)
}
