/**
 * Timestamps of a program, continued past their 33 bits (ISO/IEC 13818-1 2.4.3.7).
 *
 * @module
 */
import { unwrapTimestamp33 } from '../binary/timestamp-33.ts'

export const TICKS_PER_SEC = 90_000

/** 90 kHz, unwrapped. */
export interface Times {
  readonly ptsTicks: number
  readonly dtsTicks: number
}

/**
 * All tracks are unwrapped against one reference, so that they stay together whatever jumps. The first timestamp
 * stands for itself; one that lies before it, across a wrap, becomes negative.
 */
export class TimestampUnwrapper {
  #latest: Times | undefined

  /** The times last given to `advance`. */
  get latest(): Times | undefined {
    return this.#latest
  }

  /** @returns times as sent, brought next to the latest */
  unwrap(ptsTicks: number, dtsTicks: number): Times {
    const dts = unwrapTimestamp33(dtsTicks, this.#latest?.dtsTicks ?? dtsTicks)
    return { ptsTicks: unwrapTimestamp33(ptsTicks, dts), dtsTicks: dts }
  }

  /** Makes these times the reference of those that follow. */
  advance(times: Times): void {
    this.#latest = times
  }
}
