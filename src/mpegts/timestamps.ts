/**
 * Timestamps of a program, unwrapped past 33 bits (ISO/IEC 13818-1 2.4.3.7).
 *
 * @module
 */
import { unwrapTimestamp33 } from '../binary/timestamp-33.ts'

/** Frequency of PTS and DTS, in hertz. */
export const TICKS_PER_SEC = 90_000

/** Unwrapped times, 90 kHz. */
export interface Times {
  readonly ptsTicks: number
  readonly dtsTicks: number
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
    const dts = unwrapTimestamp33(dtsTicks, this.#latest?.dtsTicks ?? dtsTicks)
    return { ptsTicks: unwrapTimestamp33(ptsTicks, dts), dtsTicks: dts }
  }

  /** Makes these times the reference of the next `unwrap`. */
  advance(times: Times): void {
    this.#latest = times
  }
}
