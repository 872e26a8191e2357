/**
 * Where time enters Millrace. Machines take the time as an argument; whoever drives them asks a `Clock`.
 *
 * @module
 */

/** Two readings of time: one that never goes back, one that a calendar understands. */
export interface Clock {
  /** Microseconds since an arbitrary origin; never goes back. */
  nowUs(): number
  /** Milliseconds since 1970-01-01T00:00:00Z; may be stepped by the operator or NTP. */
  wallMs(): number
}

/** The machine's own clocks. */
export const systemClock: Clock = {
  nowUs: () => performance.now() * 1000,
  wallMs: () => Date.now(),
}
