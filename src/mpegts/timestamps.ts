/**
 * PTS and DTS (ISO/IEC 13818-1 2.4.3.7): ticks of 90 kHz in 33 bits, which wrap every 26.5 hours, and are unwrapped here.
 *
 * @module
 */

/** Frequency of PTS and DTS, in hertz. */
export const TICKS_PER_SEC = 90_000

/** Period after which a 33-bit timestamp wraps to 0, in ticks of 90 kHz. */
export const TIME_MODULUS = 2 ** 33

/** Unwrapped times, 90 kHz. */
export interface Times {
  readonly ptsTicks: number
  readonly dtsTicks: number
}

/**
 * Unwraps a timestamp.
 *
 * @param ticks  timestamp as sent, in [0, 2^33)
 * @param referenceTicks  unwrapped timestamp less than 13 hours away
 * @returns `ticks` plus the multiple of 2^33, which may be negative, that brings it nearest to the reference
 */
export function unwrapTimestamp(ticks: number, referenceTicks: number): number {
  // Bitwise operators truncate to 32 bits; `%` is exact for integers up to 2^53.
  const ahead = (((ticks - referenceTicks) % TIME_MODULUS) + TIME_MODULUS) % TIME_MODULUS
  return referenceTicks + (ahead < TIME_MODULUS / 2 ? ahead : ahead - TIME_MODULUS)
}

/**
 * Unwraps all tracks of a program against one reference, so that they stay in sync across wraps and jumps. The first
 * timestamp remains as sent; if it came after a wrap, timestamps from before that wrap become negative.
 */
export class TimestampUnwrapper {
  #latest: Times | undefined

  /** Current reference: the times of the latest `advance`; undefined before the first. */
  get latest(): Times | undefined {
    return this.#latest
  }

  /** @returns the DTS nearest to the reference, and the PTS nearest to that DTS */
  unwrap(ptsTicks: number, dtsTicks: number): Times {
    const dts = unwrapTimestamp(dtsTicks, this.#latest?.dtsTicks ?? dtsTicks)
    return { ptsTicks: unwrapTimestamp(ptsTicks, dts), dtsTicks: dts }
  }

  /** Makes these times the reference of the next `unwrap`. */
  advance(times: Times): void {
    this.#latest = times
  }
}
