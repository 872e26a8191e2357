/**
 * Where time enters Millrace. Machines take the time as an argument; whoever drives them asks a `Clock`.
 *
 * @module
 */

/** Two readings of time: one that never goes back, one that a calendar understands. */
export interface Clock {
  /** Microseconds since an arbitrary origin; never goes back. */
  nowUs(): number
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  wallMs(): number
}

/** A difference between two readings that only a step of the wall clock can make. */
const MIN_JUMP_MS = 1000

/** A wall clock that was set right stays where it was set; one that was set wrong is set back sooner. */
const HOLD_US = 10 * 60 * 1_000_000

/**
 * A wall clock that does not jump: that of the source as it was first read, driven by `nowUs` from then on. What NTP, an
 * operator or a suspended machine make of the source's is taken over once it has stood for 10 minutes without another
 * jump; one that is taken back before that leaves no trace. Dates of media and stream keys come from here.
 *
 * Read it now and then (once a minute is plenty), or jumps are noticed late.
 */
export class SteadyClock implements Clock {
  readonly #source: Clock
  /** Added to `nowUs`, in milliseconds. */
  #offsetMs: number
  /** Where the source's wall clock stands; taken over if it still does after the hold. */
  #candidateMs: number
  #candidateSinceUs: number

  /** @param source  its wall clock may jump */
  constructor(source: Clock) {
    this.#source = source
    this.#candidateSinceUs = source.nowUs()
    this.#offsetMs = source.wallMs() - this.#candidateSinceUs / 1000
    this.#candidateMs = this.#offsetMs
  }

  nowUs(): number {
    return this.#source.nowUs()
  }

  /** Whole milliseconds since 1970-01-01T00:00:00Z; goes by `nowUs` but for corrections that have stood for 10 minutes. */
  wallMs(): number {
    const nowUs = this.#follow()
    return Math.round(nowUs / 1000 + this.#offsetMs)
  }

  /** How far the source's wall clock has jumped ahead (negative: back) and is not followed yet, in milliseconds; else 0. */
  get jumpMs(): number {
    this.#follow()
    const jumpMs = this.#candidateMs - this.#offsetMs
    return Math.abs(jumpMs) < MIN_JUMP_MS ? 0 : jumpMs
  }

  #follow(): number {
    const nowUs = this.#source.nowUs()
    const offsetMs = this.#source.wallMs() - nowUs / 1000
    const jumped = Math.abs(offsetMs - this.#candidateMs) >= MIN_JUMP_MS
    const held = nowUs - this.#candidateSinceUs >= HOLD_US
    if (jumped || held) {
      if (!jumped) this.#offsetMs = offsetMs
      this.#candidateMs = offsetMs
      this.#candidateSinceUs = nowUs
    }
    return nowUs
  }
}

/** This machine's clocks. For times that another machine compares with its own at once: requests and webhooks. */
export const machineClock: Clock = {
  nowUs: () => performance.now() * 1000,
  wallMs: () => Date.now(),
}

/** This machine's clocks, the wall clock steadied. */
export const systemClock = new SteadyClock(machineClock)
